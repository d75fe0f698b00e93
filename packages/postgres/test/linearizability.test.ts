/**
 * Changes that race, made by two processes: whatever was answered can be explained by some order in
 * which they happened one after the other, each between its call and its answer.
 */

import type { EndDate } from "@tenure/core/EndDate"
import { UserId } from "@tenure/core/Membership"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { layer } from "@tenure/postgres"
import { Fixture } from "@tenure/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import fc from "fast-check"
import { afterAll, beforeEach, describe, expect, it } from "vitest"
import { clientLayer, execute } from "./harness.ts"

const { change, date, p1 } = Fixture
const schema = "linearizability"
const users = [UserId("1"), UserId("2")]

type Operation =
  | { readonly _tag: "Extend" | "Grant"; readonly user: UserId; readonly endDate: EndDate }
  | { readonly _tag: "End" | "Find"; readonly user: UserId }
  | { readonly _tag: "ExtendAll" | "ExtendShorter"; readonly endDate: EndDate }

/** What an operation answers: a date, a number of memberships, or that there is none. */
type Answer = number | "done" | "none"

/** The members and their end dates. */
type State = Readonly<Record<string, EndDate>>

/** What a project does to whom changes come one after the other. */
const apply = (state: State, operation: Operation): readonly [State, Answer] => {
  switch (operation._tag) {
    case "Grant":
      return [{ ...state, [operation.user]: operation.endDate }, "done"]
    case "Extend":
      return operation.user in state
        ? [{ ...state, [operation.user]: operation.endDate }, "done"]
        : [state, "none"]
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
        entries.filter(([, endDate]) => isSet(endDate)).length,
      ]
    }
  }
}

/** An operation with its answer, and when it was called and answered. */
interface Event {
  readonly operation: Operation
  readonly answer: Answer
  readonly called: number
  readonly answered: number
}

/** Whether the events can have happened one after the other, ending in the given state. */
const isExplicable = (events: ReadonlyArray<Event>, state: State, end: State): boolean => {
  if (events.length === 0) return JSON.stringify(state) === JSON.stringify(end)
  const firstAnswer = Math.min(...events.map(({ answered }) => answered))
  return events.some((event) => {
    // What was called after another was answered did not happen before it.
    if (event.called > firstAnswer) return false
    const [next, answer] = apply(state, event.operation)
    if (answer !== event.answer) return false
    return isExplicable(
      events.filter((one) => one !== event),
      Object.fromEntries(Object.entries(next).toSorted(([a], [b]) => (a < b ? -1 : 1))),
      end,
    )
  })
}

const run = Effect.fnUntraced(function* (operation: Operation) {
  const store = yield* MembershipStore
  const done = Effect.match({ onSuccess: (): Answer => "done", onFailure: (): Answer => "none" })
  switch (operation._tag) {
    case "Grant": {
      const { endDate, user } = operation
      return yield* store.grant({ ...change(p1), userId: user, endDate }).pipe(done)
    }
    case "Extend": {
      const { endDate, user } = operation
      const extension = store.extend({ ...change(p1), userId: user, endDate })
      return yield* extension.pipe(Effect.catchTag("StoreUnavailable", Effect.die), done)
    }
    case "End":
      return yield* store
        .end({ ...change(p1), userId: operation.user })
        .pipe(Effect.catchTag("StoreUnavailable", Effect.die), done)
    case "Find":
      return yield* store.find(p1, operation.user).pipe(
        Effect.catchTag("StoreUnavailable", Effect.die),
        Effect.match({
          onSuccess: (one): Answer => one.endDate,
          onFailure: (): Answer => "none",
        }),
      )
    case "ExtendAll":
    case "ExtendShorter": {
      const mode = operation._tag === "ExtendAll" ? "set" : "neverShorten"
      return yield* store.extendAll({ ...change(p1), endDate: operation.endDate, mode })
    }
  }
})

const process = () => ManagedRuntime.make(Layer.provide(layer({ schema }), clientLayer()))
const processes = [process(), process()]
afterAll(() => Promise.all(processes.map((one) => one.dispose())))

beforeEach(() => Effect.runPromise(execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)))

const dates = ["2027", "2028", "2029", "2030"].map((year) => date(`${year}-01-01T00:00:00.000Z`))
const user = fc.constantFrom(...users)
const endDate = fc.constantFrom(...dates)

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ _tag: fc.constant("Extend" as const), user, endDate }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("Grant" as const), user, endDate }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("End" as const), user }) },
  { weight: 3, arbitrary: fc.record({ _tag: fc.constant("Find" as const), user }) },
  { weight: 3, arbitrary: fc.record({ _tag: fc.constant("ExtendAll" as const), endDate }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("ExtendShorter" as const), endDate }) },
)

/** Clients that each make one call after the other. */
const clients = fc.array(fc.array(operation, { minLength: 1, maxLength: 3 }), {
  minLength: 2,
  maxLength: 4,
})

describe("changes that race", () => {
  it("can be explained by an order in which they happened", async () => {
    const [first] = processes
    const inFirst = first ?? expect.fail("no process")
    await inFirst.runPromise(Effect.flatMap(MembershipStore, (store) => store.createProject(p1)))
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
              const answer = await runtime.runPromise(run(one))
              events.push({ operation: one, answer, called, answered: performance.now() })
            }
          }),
        )
        expect(isExplicable(events, before, await inFirst.runPromise(read))).toBe(true)
      }),
      { numRuns: 400 },
    )
  }, 60_000)
})
