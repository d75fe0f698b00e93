/**
 * Linearizability: two processes' concurrent operations have the results that some sequential order leads to, in which
 * each operation happens between its call and its return, and each member's sequences grow. A bulk extension does not
 * wait for an extension that is under way, which has an earlier sequence: a read meanwhile may see what the bulk extension
 * made of the date before.
 */

import { EndDate, MembershipStore, Millis, UserId } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import fc from "fast-check"
import { afterAll, beforeEach, describe, expect, it } from "vitest"
import {
  type Answer,
  type Ledger,
  type MembershipChange,
  applyChange,
  datesOf,
  drawChanges,
  ledgerOf,
  makeChange,
} from "../../testing/src/stores/memberships/changes.ts"
import { postgresLayer } from "../src/index.ts"
import { clientLayer, execute } from "./harness.ts"

const { date, context, p1, sequenceOf } = Fixture
const schema = "linearizability"

/** The users whom an operation concerns. */
const usersOf = (ledger: Ledger, operation: MembershipChange): Iterable<UserId> => {
  if ("userId" in operation) return [operation.userId]
  return operation._tag === "Import" ? operation.endDates.keys() : datesOf(ledger).keys()
}

/** Each user's last sequence. */
type Sequences = ReadonlyMap<UserId, number>

/**
 * An operation, its answer, the change's sequence, if there was one, and the times at which it was called and returned.
 */
interface Event {
  readonly operation: MembershipChange
  readonly answer: Answer
  readonly sequence: number | undefined
  readonly called: number
  readonly returned: number
}

const textOf = (value: Iterable<readonly [UserId, EndDate]>): string =>
  JSON.stringify([...value].toSorted(([one], [other]) => (one < other ? -1 : 1)))

/** Returns the ledger after operations, in their order. */
const ledgerAfter = (ledger: Ledger, done: ReadonlyArray<Event>): Ledger =>
  done.reduce((before, { operation }) => applyChange(before, operation)[0], ledger)

const subsetsOf = <A>([first, ...others]: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> => {
  if (first === undefined) return [[]]
  const subsets = subsetsOf(others)
  return [...subsets, ...subsets.map((subset) => [first, ...subset])]
}

/** Whether an operation extends a membership, whatever its date is. */
const isUnconditional = ({ operation }: Event): boolean =>
  operation._tag === "Extend" &&
  operation.expectedEndDate === undefined &&
  operation.mode !== "neverShorten"

/** Returns the ledgers that an operation may see. After a bulk extension, a read may miss extensions under way. */
const seenBy = (
  { called, operation }: Event,
  ledger: Ledger,
  done: ReadonlyArray<Event>,
): ReadonlyArray<Ledger> => {
  const hasBulk = done.some((one) => one.operation._tag === "ExtendAll")
  if (operation._tag !== "Find" || !hasBulk) return [ledgerAfter(ledger, done)]
  const underWay = done.filter((one) => isUnconditional(one) && one.returned > called)
  return subsetsOf(underWay).map((missed) =>
    ledgerAfter(
      ledger,
      done.filter((one) => !missed.includes(one)),
    ),
  )
}

/**
 * Whether the events have these answers in some sequential order, and end with the given dates.
 *
 * @param done - the events before these, in that order
 */
const isLinearizable = (
  events: ReadonlyArray<Event>,
  ledger: Ledger,
  end: string,
  done: ReadonlyArray<Event> = [],
  sequences: Sequences = new Map(),
): boolean => {
  const before = ledgerAfter(ledger, done)
  if (events.length === 0) return textOf(datesOf(before)) === end
  const firstReturn = Math.min(...events.map(({ returned }) => returned))
  return events.some((event) => {
    // An operation that was called after another returned cannot come before it.
    if (event.called > firstReturn) return false
    const answer = JSON.stringify(event.answer)
    const isAnswered = seenBy(event, ledger, done).some(
      (seen) => JSON.stringify(applyChange(seen, event.operation)[1]) === answer,
    )
    if (!isAnswered) return false
    const { sequence = NaN } = event
    const concerned = event.sequence === undefined ? [] : [...usersOf(before, event.operation)]
    if (concerned.some((one) => sequence <= (sequences.get(one) ?? 0))) return false
    return isLinearizable(
      events.filter((one) => one !== event),
      ledger,
      end,
      [...done, event],
      new Map([...sequences, ...concerned.map((one) => [one, sequence] as const)]),
    )
  })
}

const dates = ["2027", "2028", "2029", "2030"].map((year) => date(`${year}-01-01T00:00:00.000Z`))
const drawn = drawChanges(fc.constantFrom(UserId("1"), UserId("2")), fc.constantFrom(...dates))

const operation: fc.Arbitrary<MembershipChange> = fc.oneof(
  { weight: 4, arbitrary: drawn.extend },
  { weight: 4, arbitrary: drawn.lengthen },
  { weight: 4, arbitrary: drawn.extendIf },
  { weight: 1, arbitrary: drawn.grant },
  { weight: 1, arbitrary: drawn.import },
  { weight: 1, arbitrary: drawn.end },
  { weight: 3, arbitrary: drawn.find },
  { weight: 6, arbitrary: drawn.extendAll },
)

/** What several clients call, each one call after another. */
const clients = fc.array(fc.array(operation, { minLength: 1, maxLength: 3 }), {
  minLength: 2,
  maxLength: 4,
})

/**
 * Declares the test.
 *
 * @param numRuns - how many histories to try
 */
export const linearizabilitySuite = (numRuns: number): void => {
  const process = () => ManagedRuntime.make(Layer.provide(postgresLayer({ schema }), clientLayer()))
  const processes = [process(), process()]
  afterAll(() => Promise.all(processes.map((one) => one.dispose())))

  beforeEach(() => Effect.runPromise(execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)))

  it("a read may miss an extension that a bulk extension did not wait for, and none that has returned", () => {
    const [userId, [before, after]] = [UserId("1"), dates]
    if (before === undefined || after === undefined) return expect.fail("no dates")
    const by = { mode: "extendBy", by: Millis(1000) } as const
    const extended = { operation: { _tag: "Extend", userId, endDate: after }, sequence: 1 } as const
    const bulk = { operation: { _tag: "ExtendAll", bulk: by }, sequence: 100_000 } as const
    const read = { operation: { _tag: "Find", userId }, sequence: undefined } as const
    const judge = (extensionReturned: number): boolean => {
      const events: ReadonlyArray<Event> = [
        { ...extended, answer: ["Done"], called: 0, returned: extensionReturned },
        { ...bulk, answer: ["Done", 1], called: 1, returned: 2 },
        { ...read, answer: ["Done", EndDate(before + 1000)], called: 3, returned: 4 },
      ]
      const end = new Map([[userId, EndDate(after + 1000)]])
      return isLinearizable(events, ledgerOf(new Map([[userId, before]])), textOf(end))
    }
    expect([judge(3.5), judge(2.5)]).toEqual([true, false])
  })

  describe("concurrent operations", () => {
    it("are linearizable", async () => {
      const [first] = processes
      const inFirst = first ?? expect.fail("no process")
      await inFirst.runPromise(
        Effect.flatMap(MembershipStore, (store) => store.createProject(p1, context)),
      )
      const read = Effect.gen(function* () {
        const store = yield* MembershipStore
        const members = yield* store.list(p1, { after: undefined, limit: 10 })
        return new Map(members.map((member) => [member.userId, member.endDate]))
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
                const { answer, event } = await runtime.runPromise(makeChange(one, []))
                const sequence = event && sequenceOf(event)
                const returned = performance.now()
                events.push({ operation: one, answer, sequence, called, returned })
              }
            }),
          )
          const after = await inFirst.runPromise(read)
          expect(isLinearizable(events, ledgerOf(before), textOf(after))).toBe(true)
        }),
        { numRuns },
      )
    })
  })
}
