/**
 * Linearizability: the results of concurrent operations of two processes are those of some sequential
 * order, in which each operation happens between its call and its return, and in which the sequences of
 * the changes of each member grow. With bulk extensions, these may be two orders: that of the results, and
 * that of the changes and their sequences. A bulk extension does not wait for an extension that is under way.
 * This has an earlier sequence, although others may read meanwhile what became of the date before.
 */

import { isEndsLater, isReplayedResponse } from "@tenure/core/internal"
import {
  type EndDate,
  type EndsLater,
  type Event as Stored,
  MembershipStore,
  type ReplayedResponse,
  UserId,
} from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import fc from "fast-check"
import { afterAll, beforeEach, describe, expect, it } from "vitest"
import { postgresLayer } from "../src/index.ts"
import { clientLayer, execute } from "./harness.ts"

const { change, date, occasion, p1, sequenceOf } = Fixture
const schema = "linearizability"
const users = [UserId("1"), UserId("2")]

type Operation =
  | {
      readonly _tag: "Extend" | "Lengthen" | "Grant"
      readonly user: UserId
      readonly endDate: EndDate
    }
  | {
      readonly _tag: "ExtendIf"
      readonly user: UserId
      readonly endDate: EndDate
      readonly expected: EndDate
    }
  | { readonly _tag: "End" | "Find"; readonly user: UserId }
  | { readonly _tag: "Import" | "ExtendAll" | "ExtendShorter"; readonly endDate: EndDate }

/** The result of an operation: the current date, a number of memberships, or whether there was a membership. */
type Result = number | "done" | "none"

/** What an operation has returned. */
interface Outcome {
  readonly result: Result
  /** The sequence of the change, if there was one. */
  readonly sequence?: number | undefined
}

/** The members and their end dates. */
type State = Readonly<Record<string, EndDate>>

/** The sequential model of a project. */
const apply = (state: State, operation: Operation): readonly [State, Result] => {
  switch (operation._tag) {
    case "Grant":
      return [{ ...state, [operation.user]: operation.endDate }, "done"]
    case "Import":
      return [Object.fromEntries(users.map((one) => [one, operation.endDate])), "done"]
    case "Extend":
      return operation.user in state
        ? [{ ...state, [operation.user]: operation.endDate }, "done"]
        : [state, "none"]
    case "Lengthen": {
      const current = state[operation.user]
      if (current === undefined) return [state, "none"]
      return current > operation.endDate
        ? [state, current]
        : [{ ...state, [operation.user]: operation.endDate }, "done"]
    }
    case "ExtendIf": {
      const current = state[operation.user]
      if (current === undefined) return [state, "none"]
      return current === operation.expected
        ? [{ ...state, [operation.user]: operation.endDate }, "done"]
        : [state, current]
    }
    case "End": {
      const { [operation.user]: ended, ...rest } = state
      return [rest, ended === undefined ? "none" : "done"]
    }
    case "Find":
      return [state, state[operation.user] ?? "none"]
    case "ExtendAll":
    case "ExtendShorter": {
      const isSet = (endDate: EndDate) =>
        operation._tag === "ExtendAll" || endDate < operation.endDate
      const entries = Object.entries(state)
      return [
        Object.fromEntries(
          entries.map(([user, endDate]) => [user, isSet(endDate) ? operation.endDate : endDate]),
        ),
        entries.length,
      ]
    }
  }
}

/** The users whom an operation concerns. */
const usersOf = (state: State, operation: Operation): ReadonlyArray<string> => {
  if ("user" in operation) return [operation.user]
  return operation._tag === "Import" ? users : Object.keys(state)
}

/** The sequence of the last change of each user. */
type Sequences = Readonly<Record<string, number>>

/** An operation, its outcome, and the times of its call and return. */
interface Event extends Outcome {
  readonly operation: Operation
  readonly called: number
  readonly returned: number
}

/** Whether some sequential order of the events has their outcomes and ends in the given state. */
const isLinearizable = (
  events: ReadonlyArray<Event>,
  state: State,
  end: State,
  sequences: Sequences = {},
): boolean => {
  if (events.length === 0) return JSON.stringify(state) === JSON.stringify(end)
  const firstReturn = Math.min(...events.map(({ returned }) => returned))
  return events.some((event) => {
    // An operation that was called after another returned cannot come before it.
    if (event.called > firstReturn) return false
    const [next, result] = apply(state, event.operation)
    if (result !== event.result) return false
    const { sequence } = event
    const concerned = sequence === undefined ? [] : usersOf(state, event.operation)
    if (concerned.some((one) => Number(sequence) <= (sequences[one] ?? 0))) return false
    return isLinearizable(
      events.filter((one) => one !== event),
      Object.fromEntries(Object.entries(next).toSorted(([a], [b]) => (a < b ? -1 : 1))),
      end,
      { ...sequences, ...Object.fromEntries(concerned.map((one) => [one, Number(sequence)])) },
    )
  })
}

const resultsOf = (events: ReadonlyArray<Event>): ReadonlyArray<Event> =>
  events.map((event) => ({ ...event, sequence: undefined }))

const changesOf = (events: ReadonlyArray<Event>): ReadonlyArray<Event> =>
  events.filter(({ sequence }) => sequence !== undefined)

const run = Effect.fnUntraced(function* (operation: Operation) {
  const store = yield* MembershipStore
  const outcomeOf = (
    event: Stored | EndsLater | ReplayedResponse,
    result: Result = "done",
  ): Outcome => {
    if (isEndsLater(event)) return { result: event.endDate }
    return isReplayedResponse(event) ? { result } : { result, sequence: sequenceOf(event) }
  }
  const done = Effect.match({
    onSuccess: (event: Stored | EndsLater | ReplayedResponse) => outcomeOf(event),
    onFailure: (): Outcome => ({ result: "none" }),
  })
  switch (operation._tag) {
    case "Grant": {
      const { endDate, user } = operation
      return yield* store.grant({ ...change(p1), userId: user, endDate }).pipe(done)
    }
    case "Import": {
      const memberships = users.map((userId) => ({ userId, endDate: operation.endDate }))
      return yield* store.import({ ...change(p1), memberships }).pipe(done)
    }
    case "Extend": {
      const { endDate, user } = operation
      const extension = store.extend({ ...change(p1), userId: user, endDate })
      return yield* extension.pipe(Effect.catchTag("StoreUnavailable", Effect.die), done)
    }
    case "Lengthen": {
      const { endDate, user: userId } = operation
      const extension = { ...change(p1), userId, endDate, mode: "neverShorten" } as const
      return yield* store
        .extend(extension)
        .pipe(Effect.catchTag("StoreUnavailable", Effect.die), done)
    }
    case "ExtendIf": {
      const { endDate, expected: expectedEndDate, user: userId } = operation
      const extension = store.extend({ ...change(p1), userId, endDate, expectedEndDate })
      return yield* extension.pipe(
        Effect.catchTag("StoreUnavailable", Effect.die),
        Effect.match({
          onSuccess: (event) => outcomeOf(event),
          onFailure: (error): Outcome => ({
            result: error._tag === "EndDateConflict" ? error.currentEndDate : "none",
          }),
        }),
      )
    }
    case "End":
      return yield* store
        .end({ ...change(p1), userId: operation.user })
        .pipe(Effect.catchTag("StoreUnavailable", Effect.die), done)
    case "Find":
      return yield* store.find(p1, operation.user).pipe(
        Effect.catchTag("StoreUnavailable", Effect.die),
        Effect.match({
          onSuccess: (one): Outcome => ({ result: one.endDate }),
          onFailure: (): Outcome => ({ result: "none" }),
        }),
      )
    case "ExtendAll":
    case "ExtendShorter": {
      const mode = operation._tag === "ExtendAll" ? "set" : "neverShorten"
      const bulk = { ...change(p1), bulk: { endDate: operation.endDate, mode } } as const
      const extended = yield* store.extendAll(bulk)
      return isReplayedResponse(extended)
        ? expect.fail()
        : outcomeOf(extended.event, extended.total)
    }
  }
})

const dates = ["2027", "2028", "2029", "2030"].map((year) => date(`${year}-01-01T00:00:00.000Z`))
const user = fc.constantFrom(...users)
const endDate = fc.constantFrom(...dates)

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ _tag: fc.constant("Extend" as const), user, endDate }) },
  { weight: 4, arbitrary: fc.record({ _tag: fc.constant("Lengthen" as const), user, endDate }) },
  {
    weight: 4,
    arbitrary: fc.record({
      _tag: fc.constant("ExtendIf" as const),
      user,
      endDate,
      expected: endDate,
    }),
  },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("Grant" as const), user, endDate }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("Import" as const), endDate }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("End" as const), user }) },
  { weight: 3, arbitrary: fc.record({ _tag: fc.constant("Find" as const), user }) },
  { weight: 3, arbitrary: fc.record({ _tag: fc.constant("ExtendAll" as const), endDate }) },
  { weight: 3, arbitrary: fc.record({ _tag: fc.constant("ExtendShorter" as const), endDate }) },
)

/** The operations of several clients. Each client makes its calls one after another. */
const clients = fc.array(fc.array(operation, { minLength: 1, maxLength: 3 }), {
  minLength: 2,
  maxLength: 4,
})

/**
 * Declares the test.
 *
 * @param numRuns - the number of histories
 */
export const linearizabilitySuite = (numRuns: number): void => {
  const process = () => ManagedRuntime.make(Layer.provide(postgresLayer({ schema }), clientLayer()))
  const processes = [process(), process()]
  afterAll(() => Promise.all(processes.map((one) => one.dispose())))

  beforeEach(() => Effect.runPromise(execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)))

  describe("concurrent operations", () => {
    it("are linearizable", async () => {
      const [first] = processes
      const inFirst = first ?? expect.fail("no process")
      await inFirst.runPromise(
        Effect.flatMap(MembershipStore, (store) => store.createProject(p1, occasion)),
      )
      const read = Effect.gen(function* () {
        const store = yield* MembershipStore
        const members = yield* store.list(p1, { after: undefined, limit: 10 })
        return Object.fromEntries(members.map((member) => [member.userId, member.endDate]))
      })
      await fc.assert(
        fc.asyncProperty(clients, async (scripts) => {
          const before = await inFirst.runPromise(read)
          const events: Array<Event> = []
          await Promise.all(
            scripts.map(async (script, index) => {
              const runtime = processes[index % 2] ?? inFirst
              for (const one of script) {
                const called = performance.now()
                const outcome = await runtime.runPromise(run(one))
                events.push({ operation: one, ...outcome, called, returned: performance.now() })
              }
            }),
          )
          const after = await inFirst.runPromise(read)
          const parts = events.some(({ operation: { _tag } }) =>
            /^Extend(?:All|Shorter)$/.test(_tag),
          )
            ? [resultsOf(events), changesOf(events)]
            : [events]
          for (const part of parts) expect(isLinearizable(part, before, after)).toBe(true)
        }),
        { numRuns },
      )
    })
  })
}
