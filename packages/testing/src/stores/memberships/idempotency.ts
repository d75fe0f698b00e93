/** Changes with an idempotency key. */

import { expect } from "@effect/vitest"
import { isReplayedResponse } from "@tenure/core/internal"
import {
  EndDate,
  type IdempotencyKey,
  type MembershipStore,
  type ProjectId,
  formatBulkAnswer,
  formatGrantAnswer,
  metadataJson,
  replayedResponse,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import { change, in2027, in2028, idempotency, p1, p2, u1, u2, u3 } from "../../support/fixtures.ts"
import { type StoreTests, undone } from "../declare.ts"
import { answersToRepeated, expectFailure, firstOf, successesOf, together } from "../steps.ts"
import { changesAt, everything, gold, observe, writesOf } from "./every-change.ts"
import { nowhere, prepared } from "./every-change.ts"

type Store = MembershipStore["Service"]

const common = (key: IdempotencyKey) => ({ ...change(p1), idempotency: key })

/** A store with members, a bulk extension and a webhook, and a way to count a change's writes. */
const observed = Effect.gen(function* () {
  const store = yield* prepared
  yield* store.extendAll({ ...change(p1), bulk: { endDate: in2027, mode: "neverShorten" } })
  const counts = Effect.map(yield* observe(), ({ deliveries, rows }) => [
    rows.length,
    deliveries.length,
  ])
  return { store, counts }
})

/** A request: the same one has the same idempotency key and fingerprint. */
interface Request {
  readonly owner: string
  readonly key: string
  readonly projectId: ProjectId
  readonly kind: "grant" | "extendAll"
}

const requests: fc.Arbitrary<Request> = fc.record({
  owner: fc.constantFrom("one", "other"),
  key: fc.constantFrom("a", "b", "c"),
  projectId: fc.constantFrom(p1, p2),
  kind: fc.constantFrom("grant", "extendAll"),
})

const onceOf = ({ key, kind, owner, projectId }: Request): IdempotencyKey => ({
  owner,
  key,
  fingerprint: `${projectId} ${kind}`,
})

/** Makes a request, and tells whether it was made, or before, or why not. */
const outcomeOf = (store: Store, request: Request) => {
  const given = { ...change(request.projectId), endDate: in2028, idempotency: onceOf(request) }
  const made: Effect.Effect<unknown, { readonly _tag: string }> =
    request.kind === "grant"
      ? store.grant({ ...given, userId: u3 })
      : store.extendAll({ ...given, bulk: { endDate: in2028, mode: "set" } })
  return Effect.match(made, {
    onFailure: ({ _tag }) => _tag,
    onSuccess: (result) => (isReplayedResponse(result) ? "replayed" : "made"),
  })
}

/** Keys across projects in one database. */
const projectTests = ({ property, test }: StoreTests): void => {
  test("makes one of two changes of different projects that have the same key at the same time", function* () {
    const store = yield* prepared
    for (let round = 0; round < 10; round++) {
      const { key, owner } = idempotency()
      const same = [p1, p2].map((projectId): Request => ({ owner, key, projectId, kind: "grant" }))
      const outcomes = yield* together(same.map((request) => outcomeOf(store, request)))
      expect(outcomes.toSorted()).toEqual(["IdempotencyMismatch", "made"])
      const made = same.filter((_, index) => outcomes[index] === "made").map(onceOf)
      // A replay returns the same response again.
      for (const one of made) expect(isReplayedResponse(yield* store.recall(one, p1))).toBe(true)
    }
  })

  property(
    "makes one request of each owner and key, whatever its project, for any sequence of requests",
    fc.array(fc.array(requests, { minLength: 1, maxLength: 4 }), { maxLength: 12 }),
    Effect.fnUntraced(function* (sequence) {
      const store = yield* prepared
      const known = new Map<string, string>()
      for (const requested of sequence) {
        const outcomes = yield* together(requested.map((request) => outcomeOf(store, request)))
        const all = requested.map((request, index) => ({
          name: `${request.owner} ${request.key}`,
          fingerprint: onceOf(request).fingerprint,
          outcome: outcomes[index],
        }))
        // Any concurrent request may be the first.
        for (const { fingerprint, name, outcome } of all) {
          if (outcome !== "made") continue
          expect(known.has(name)).toBe(false)
          known.set(name, fingerprint)
        }
        for (const { fingerprint, name, outcome } of all) {
          const isSame = known.get(name) === fingerprint
          if (outcome !== "made" || !isSame)
            expect(outcome).toBe(isSame ? "replayed" : "IdempotencyMismatch")
        }
      }
      const rows = yield* Effect.forEach([p1, p2], (one) => store.history(one, everything))
      expect(rows.flat().filter(({ to }) => to === in2028)).toHaveLength(known.size)
    }),
  )
}

export const onceTests = (on: StoreTests): void => {
  const { test, transactional } = on.testsAfter(observed)
  const kinds = changesAt(on)

  on.describe("an idempotency key", () => {
    test.each(kinds)(
      "makes %s once, repeats its answer, and refuses another request",
      function* ([name, make]) {
        const { counts, store } = yield* observed
        // An erasure has its own answer.
        const answer = name === "an erasure" ? undefined : "an answer"
        const key = { ...idempotency(), answer }
        const answers = yield* answersToRepeated(12, () => make(store, common(key)))
        const repeated = answer ?? firstOf(answers)
        expect(new Set(answers)).toEqual(new Set([repeated]))
        expect(yield* make(store, common(key))).toEqual(replayedResponse(repeated))
        const other = { ...key, fingerprint: "another" }
        yield* expectFailure("IdempotencyMismatch", make(store, common(other)))
        expect(yield* counts).toEqual(writesOf(name))
      },
    )

    test.each(kinds)("makes %s once without an answer, too", function* ([name, make]) {
      const { counts, store } = yield* observed
      const key = idempotency()
      expect(isReplayedResponse(yield* make(store, common(key)))).toBe(false)
      expect(isReplayedResponse(yield* make(store, common(key)))).toBe(true)
      expect(yield* counts).toEqual(writesOf(name))
    })

    test("returns the total and the date of the bulk extension that was made, also if it is recalled", function* (world) {
      const { store } = world
      const key = idempotency()
      const bulk = { ...common(key), bulk: { endDate: in2028, mode: "set" } } as const
      expect(yield* store.recall(key, p1)).toBeUndefined()
      yield* store.extendAll(bulk)
      yield* store.end({ ...change(p1), userId: u2 })
      const replayed = replayedResponse(formatBulkAnswer(2, bulk.bulk))
      expect(yield* store.extendAll({ ...bulk, ...change(p1) })).toEqual(replayed)
      expect(yield* store.recall(key, p1)).toEqual(replayed)
      const other = { ...key, fingerprint: "another" }
      yield* expectFailure("IdempotencyMismatch", store.recall(other, p1))
    })

    test("returns the later date that an extension has left, whatever the answer is otherwise", function* (world) {
      const { store } = world
      yield* store.extend({ ...change(p1), userId: u1, endDate: in2028 })
      for (const [endDate, left] of [
        [EndDate(in2028 - 1), String(in2028)],
        [EndDate(in2028 + 1), "an answer"],
      ] as const) {
        const key = { ...idempotency(), answer: "an answer" }
        const extension = { ...common(key), userId: u1, endDate, mode: "neverShorten" } as const
        yield* store.extend(extension)
        expect(yield* store.extend(extension)).toEqual(replayedResponse(left))
      }
    })

    test("returns when a grant was made, and the metadata that it has left or set", function* (world) {
      const { store } = world
      for (const metadata of [undefined, gold, undefined]) {
        const granted = { ...common(idempotency()), userId: u1, endDate: in2028, metadata }
        yield* store.grant(granted)
        const left = metadataJson((yield* store.find(p1, u1)).metadata)
        yield* store.end({ ...change(p1), userId: u1 })
        const { at } = granted
        const replayed = yield* store.grant({ ...granted, ...change(p1), at: at + 1 })
        const answer = formatGrantAnswer({ ...granted, at, metadata: left, isLeft: false })
        expect(replayed).toEqual(replayedResponse(answer))
        yield* store.grant({ ...change(p1), userId: u1, endDate: in2028, metadata: gold })
      }
    })

    test("knows a change that could not be made any more", function* ({ store }) {
      const extension = { ...common(idempotency()), userId: u1, endDate: in2028 }
      yield* store.extend(extension)
      yield* store.end({ ...change(p1), userId: u1 })
      const again = yield* store.extend({ ...extension, ...change(p1) })
      expect(isReplayedResponse(again)).toBe(true)
    })

    test("makes one of two changes that have the same key at the same time", function* (world) {
      const { counts, store } = world
      const key = idempotency()
      const extend = (index: number) =>
        store.extend({
          ...common({ ...key, fingerprint: String(index) }),
          userId: index === 0 ? u1 : u2,
          endDate: in2028,
        })
      expect(yield* successesOf(2, extend)).toBe(1)
      expect(yield* counts).toEqual([1, 1])
    })

    test("keeps the keys of each owner apart", function* ({ counts, store }) {
      const key = idempotency()
      for (const owner of ["one", "other"]) {
        const extension = { ...common({ ...key, owner }), userId: u1, endDate: in2028 }
        expect(isReplayedResponse(yield* store.extend(extension))).toBe(false)
      }
      expect(yield* counts).toEqual([2, 2])
    })

    test("keeps no key of a change that fails", function* ({ counts, store }) {
      const key = idempotency()
      const extension = { userId: u3, endDate: in2028 }
      const extend = Effect.suspend(() => store.extend({ ...common(key), ...extension }))
      yield* expectFailure("MembershipNotFound", extend, store.end({ ...common(key), userId: u3 }))
      const elsewhere = { ...common(key), ...change(nowhere) }
      yield* expectFailure(
        "ProjectNotFound",
        store.grant({ ...elsewhere, ...extension }),
        store.extendAll({ ...elsewhere, bulk: { endDate: in2028, mode: "neverShorten" } }),
      )
      expect(yield* counts).toEqual([0, 0])
      yield* store.grant({ ...change(p1), ...extension })
      expect(isReplayedResponse(yield* extend)).toBe(false)
      expect(yield* counts).toEqual([2, 2])
    })

    transactional(
      "forgets the key with a transaction of the host that fails",
      function* ({ counts, store }) {
        for (const [, make] of kinds) {
          const key = idempotency()
          yield* undone(make(store, common(key)))
          expect(yield* store.recall(key, p1)).toBeUndefined()
        }
        expect(yield* counts).toEqual([0, 0])
      },
    )

    if (on.hasSeveralDatabases) return
    projectTests(on)
  })
}
