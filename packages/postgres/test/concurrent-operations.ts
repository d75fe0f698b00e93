/**
 * Linearizability: two processes' concurrent operations have the results that some sequential order leads to, in which
 * each operation happens between its call and its return, and each member's sequences grow. With bulk extensions, these
 * may be two orders: one for the results, and one for the changes and their sequences. A bulk extension does not wait
 * for an extension that is under way. This has an earlier sequence, although others may read meanwhile what became of
 * the date before.
 */

import { type EndDate, MembershipStore, UserId } from "@tenure/core/store"
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

/** Whether the events have these answers in some sequential order, and end with the given dates. */
const isLinearizable = (
  events: ReadonlyArray<Event>,
  ledger: Ledger,
  end: string,
  sequences: Sequences = new Map(),
): boolean => {
  if (events.length === 0) return textOf(datesOf(ledger)) === end
  const firstReturn = Math.min(...events.map(({ returned }) => returned))
  return events.some((event) => {
    // An operation that was called after another returned cannot come before it.
    if (event.called > firstReturn) return false
    const [next, answer] = applyChange(ledger, event.operation)
    if (JSON.stringify(answer) !== JSON.stringify(event.answer)) return false
    const { sequence = NaN } = event
    const concerned = event.sequence === undefined ? [] : [...usersOf(ledger, event.operation)]
    if (concerned.some((one) => sequence <= (sequences.get(one) ?? 0))) return false
    return isLinearizable(
      events.filter((one) => one !== event),
      next,
      end,
      new Map([...sequences, ...concerned.map((one) => [one, sequence] as const)]),
    )
  })
}

const withoutSequences = (events: ReadonlyArray<Event>): ReadonlyArray<Event> =>
  events.map((event) => ({ ...event, sequence: undefined }))

const changesOf = (events: ReadonlyArray<Event>): ReadonlyArray<Event> =>
  events.filter(({ sequence }) => sequence !== undefined)

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
          const parts = events.some(({ operation: { _tag } }) => _tag === "ExtendAll")
            ? [withoutSequences(events), changesOf(events)]
            : [events]
          for (const part of parts)
            expect(isLinearizable(part, ledgerOf(before), textOf(after))).toBe(true)
        }),
        { numRuns },
      )
    })
  })
}
