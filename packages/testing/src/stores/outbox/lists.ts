/** Certifies that lists show what became of deliveries, whichever were settled together or replayed. */

import { expect } from "@effect/vitest"
import { newEventId } from "@tenure/core/internal"
import type {
  Attempt,
  AttemptPosition,
  AttemptResult,
  Delivery,
  EventId,
  Outbox,
  WebhookRef,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import { event, p1 } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { at } from "../steps.ts"
import { claims, preparedWebhook, released, replayed, settle } from "./steps.ts"

/** A step. An index is taken modulo the number of candidates. */
type Step =
  /** Publishes events. Their ids are of times this many milliseconds after one another. */
  | { readonly publish: ReadonlyArray<number> }
  /** Settles what is due, all at once. Each element says how one ends. */
  | { readonly settle: ReadonlyArray<"alike" | "differently" | "fails" | "released"> }
  | { readonly replay: number }
  /** Replays all that were delivered, from this event on. */
  | { readonly replayAll: true }

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      publish: fc.array(fc.constantFrom(0, 1, 1023, 3000), { maxLength: 12 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      settle: fc.array(
        fc.oneof(
          { weight: 5, arbitrary: fc.constant("alike" as const) },
          fc.constantFrom("differently" as const, "fails" as const, "released" as const),
        ),
        { minLength: 1, maxLength: 12, size: "max" },
      ),
    }),
  },
  { weight: 3, arbitrary: fc.record({ replay: fc.nat(50) }) },
  { weight: 1, arbitrary: fc.constant({ replayAll: true } as const) },
)

/** What is known of a delivery. */
interface Known {
  readonly id: EventId
  state: Delivery["state"]
  attempts: ReadonlyArray<Attempt>
}

/** Reads a list page by page. */
const walk = Effect.fnUntraced(function* <Place>(
  read: (place: Place | undefined) => Effect.Effect<ReadonlyArray<Delivery>, unknown>,
  placeOf: (last: Delivery) => Place,
) {
  const all: Array<Delivery> = []
  let place: Place | undefined
  for (;;) {
    const page = yield* read(place)
    const last = page.at(-1)
    if (last === undefined) return all
    all.push(...page)
    place = placeOf(last)
  }
})

const shown = ({ attempts, eventId, state }: Delivery): Known => ({ id: eventId, state, attempts })

const attemptPlace = ({ attemptedAt = 0, eventId }: Delivery): AttemptPosition => ({
  attemptedAt,
  eventId,
})

/** The latest attempt first and, with the same time, the greatest event id. */
const byAttempt = (one: Delivery, other: Delivery): number =>
  (other.attemptedAt ?? 0) - (one.attemptedAt ?? 0) || (one.eventId < other.eventId ? 1 : -1)

/** Checks all lists of a webhook's deliveries. */
const expectLists = Effect.fnUntraced(function* (
  outbox: Outbox["Service"],
  ref: WebhookRef,
  known: ReadonlyArray<Known>,
) {
  const newest = known.toReversed()
  for (const state of [undefined, "delivered", "failed"] as const) {
    const expected = newest.filter((one) => state === undefined || one.state === state)
    const listed = yield* walk(
      (olderThan: EventId | undefined) => outbox.deliveries(ref, { state, olderThan, limit: 3 }),
      ({ eventId }) => eventId,
    )
    expect(listed.map(shown)).toEqual(expected)
    const attempted = yield* walk(
      (before: AttemptPosition | undefined) => outbox.attempted(ref, { state, before, limit: 3 }),
      attemptPlace,
    )
    expect(attempted).toEqual(
      listed.filter(({ attempts }) => attempts.length > 0).toSorted(byAttempt),
    )
  }
  const latest = (yield* outbox.progress(ref.projectId, [ref.webhookId])).get(ref.webhookId)
  const attempted = yield* outbox.attempted(ref, { limit: 100 })
  const ofLatest = attempted.filter(({ attemptedAt }) => attemptedAt === attempted[0]?.attemptedAt)
  if (attempted.length === 0) expect(latest?.latestAttempt).toBeUndefined()
  else
    expect(ofLatest.map(({ attempts }) => attempts.at(-1)?.at)).toContain(latest?.latestAttempt?.at)
  for (const { id, ...one } of known.slice(0, 3)) {
    const { deliveries } = yield* outbox.find(p1, id)
    expect(deliveries).toMatchObject([one])
  }
})

/** Declares the tests. */
export const listsTests = ({ property }: StoreTests): void => {
  property(
    "lists what became of deliveries, whichever were settled together or replayed",
    fc.array(steps, { minLength: 4, maxLength: 12, size: "max" }),
    Effect.fnUntraced(function* (all) {
      const { outbox, ref } = yield* preparedWebhook
      const known: Array<Known> = []
      let time = Date.UTC(2026, 0)
      let count = 0

      /** Ends an attempt that no other equals. */
      const resultOf = (
        how: "alike" | "differently" | "fails",
      ): Exclude<AttemptResult, { readonly _tag: "Released" }> => {
        count++
        const body = how === "alike" ? "ok" : `response ${count}`
        const attempt: Attempt = {
          at: count,
          durationMillis: count / 3,
          result: { _tag: "Answered", status: how === "fails" ? 400 : 200, body },
        }
        return how === "fails"
          ? { _tag: "Failed", attempt, holdMillis: 0 }
          : { _tag: "Delivered", attempt }
      }

      const settleTogether = Effect.fnUntraced(function* (
        hows: ReadonlyArray<"alike" | "differently" | "fails" | "released">,
      ) {
        const claimed = yield* claims()
        const settling = claimed.map((claim, index) => {
          const how = hows[index] ?? "released"
          if (how === "released") return settle(claim, released)
          const result = resultOf(how)
          const one = at(
            known,
            known.findIndex(({ id }) => id === claim.event.id),
          )
          one.state = how === "fails" ? "failed" : "delivered"
          one.attempts = [...one.attempts, result.attempt]
          return settle(claim, result)
        })
        const settled = yield* Effect.all(settling, { concurrency: "unbounded" })
        for (const one of settled) expect(one).toBe("Settled")
      })

      for (const step of all) {
        if ("publish" in step) {
          for (const later of step.publish) {
            time += later
            const id = newEventId(crypto, time)
            yield* outbox.publish({ ...event(p1), id })
            known.push({ id, state: "waiting", attempts: [] })
          }
        } else if ("settle" in step) {
          yield* settleTogether(step.settle)
        } else if ("replayAll" in step) {
          const delivered = known.filter(({ state }) => state === "delivered")
          expect(yield* replayed(ref, ["delivered"])).toBe(delivered.length)
          for (const one of delivered) one.state = "waiting"
        } else if (known.length > 0) {
          const one = at(known, step.replay % known.length)
          expect(yield* outbox.replay(ref, one.id)).toBe(one.state === "waiting" ? 0 : 1)
          one.state = "waiting"
        }
      }
      yield* expectLists(outbox, ref, known)
    }),
  )
}
