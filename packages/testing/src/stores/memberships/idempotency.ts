/** Changes with an idempotency key. */

import { expect } from "@effect/vitest"
import { isReplayedResponse } from "@tenure/core/internal"
import {
  type IdempotencyKey,
  type MembershipStore,
  type Metadata,
  Outbox,
  type ProjectId,
  WebhookStore,
  formatGrantAnswer,
  metadataJson,
  noMetadata,
  replayedResponse,
} from "@tenure/core/store"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import fc from "fast-check"
import {
  change,
  in2028,
  in2029,
  occasion,
  once,
  p1,
  p2,
  u1,
  u2,
  u3,
  makeWebhook as newWebhook,
} from "../../support/fixtures.ts"
import { type StoreTests, undone } from "../declare.ts"
import { nowhere, prepared } from "./model.ts"

type Store = MembershipStore["Service"]

/** Makes a change with an idempotency key and a new event. */
type Make = (store: Store, key: IdempotencyKey) => Effect.Effect<unknown, unknown>

const common = (key: IdempotencyKey) => ({ ...change(p1), once: key })

const gold: Metadata = { plan: "gold" }

/** All kinds of changes. */
const kinds: ReadonlyArray<readonly [name: string, make: Make]> = [
  ["a grant", (store, key) => store.grant({ ...common(key), userId: u3, endDate: in2028 })],
  [
    "an import",
    (store, key) =>
      store.import({ ...common(key), memberships: [{ userId: u3, endDate: in2028 }] }),
  ],
  ["an extension", (store, key) => store.extend({ ...common(key), userId: u1, endDate: in2028 })],
  [
    "a bulk extension",
    (store, key) => store.extendAll({ ...common(key), bulk: { endDate: in2028, mode: "set" } }),
  ],
  [
    "a bulk extension that never shortens",
    (store, key) =>
      store.extendAll({ ...common(key), bulk: { endDate: in2028, mode: "neverShorten" } }),
  ],
  ["an ending", (store, key) => store.end({ ...common(key), userId: u1 })],
]

/** These, and changes without a delivery. */
const answered: typeof kinds = [
  ...kinds,
  [
    "a change of metadata",
    (store, key) =>
      store.setMetadata({ ...common(key), userId: u1, expected: noMetadata, metadata: gold }),
  ],
  [
    "the creation of a project",
    (store, key) => store.createProject(nowhere, { ...occasion, once: key }),
  ],
]

/** A store with members and a webhook, and a way to count a change's writes. */
const observed = Effect.gen(function* () {
  const store = yield* prepared
  const outbox = yield* Outbox
  const webhook = newWebhook(p1)
  yield* (yield* WebhookStore).add(webhook, 50, occasion)
  const before = (yield* store.history(p1, { userId: undefined, limit: 1000 })).length
  const counts = Effect.gen(function* () {
    const rows = yield* store.history(p1, { userId: undefined, limit: 1000 })
    const ref = { projectId: p1, webhookId: webhook.id }
    const deliveries = yield* outbox.deliveries(ref, { limit: 1000 })
    return { rows: rows.length - before, deliveries: deliveries.length }
  })
  return { store, counts }
})

const nothing = { rows: 0, deliveries: 0 }
const one = { rows: 1, deliveries: 1 }
const two = { rows: 2, deliveries: 2 }

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

const made = (store: Store, request: Request): Effect.Effect<unknown, unknown> => {
  const given = { ...change(request.projectId), endDate: in2028, once: onceOf(request) }
  return request.kind === "grant"
    ? store.grant({ ...given, userId: u3 })
    : store.extendAll({ ...given, bulk: { endDate: in2028, mode: "set" } })
}

/** Classifies a request: made, made before, or its key belongs to another request. */
const outcomeOf = (exit: Exit.Exit<unknown, unknown>) => {
  if (Exit.isFailure(exit)) return Cause.findErrorOption(exit.cause).pipe(Option.getOrUndefined)
  return isReplayedResponse(exit.value) ? "replayed" : "made"
}

const mismatch: unknown = expect.objectContaining({ _tag: "IdempotencyMismatch" })

/** Keys across projects in one database. */
const projectTests = ({ test }: StoreTests): void => {
  test("makes one of two changes of different projects that have the same key at the same time", function* () {
    const { store } = yield* observed
    for (let round = 0; round < 10; round++) {
      const key = once()
      const grants = [p1, p2].map((projectId) => {
        const mine = { ...key, fingerprint: projectId }
        const granted = { ...change(projectId), userId: u3, endDate: in2028, once: mine }
        return Effect.exit(Effect.as(store.grant(granted), mine))
      })
      const exits = yield* Effect.all(grants, { concurrency: "unbounded" })
      const [first, ...others] = exits.flatMap((exit) => (Exit.isSuccess(exit) ? exit.value : []))
      expect(others).toEqual([])
      // A replay returns the same response again.
      expect(first && isReplayedResponse(yield* store.recall(first, p1))).toBe(true)
    }
  })
}

/** Consecutive and concurrent requests. */
const modelTests = ({ property }: StoreTests): void =>
  property(
    "makes one request of each owner and key, whatever its project, for any sequence of requests",
    fc.array(fc.array(requests, { minLength: 1, maxLength: 4 }), { maxLength: 12 }),
    Effect.fnUntraced(function* (sequence) {
      const store = yield* prepared
      const known = new Map<string, string>()
      for (const together of sequence) {
        const exits = yield* Effect.all(
          together.map((request) => Effect.exit(made(store, request))),
          { concurrency: "unbounded" },
        )
        const outcomes = exits.map(outcomeOf)
        const before = new Map(known)
        for (const [index, request] of together.entries()) {
          const name = `${request.owner} ${request.key}`
          // Any concurrent request may be the first.
          if (outcomes[index] !== "made") continue
          expect(known.get(name)).toBeUndefined()
          known.set(name, onceOf(request).fingerprint)
        }
        for (const [index, request] of together.entries()) {
          const name = `${request.owner} ${request.key}`
          const isFirst = !before.has(name) && outcomes[index] === "made"
          const isSame = known.get(name) === onceOf(request).fingerprint
          const expected = isFirst ? "made" : isSame ? "replayed" : mismatch
          expect(outcomes[index]).toEqual(expected)
        }
      }
      const rows = yield* Effect.forEach([p1, p2], (projectId) =>
        store.history(projectId, { userId: undefined, limit: 1000 }),
      )
      const changes = rows.flat().filter(({ to }) => to === in2028)
      expect(changes).toHaveLength(known.size)
    }),
  )

/** Declares the tests. */
export const onceTests = (on: StoreTests): void => {
  const { test, transactional } = on

  on.describe("an idempotency key", () => {
    test.each(kinds)("makes %s once, one after another", function* ([_, make]) {
      const { counts, store } = yield* observed
      const key = once()
      expect(isReplayedResponse(yield* make(store, key))).toBe(false)
      expect(yield* counts).toEqual(one)
      expect(isReplayedResponse(yield* make(store, key))).toBe(true)
      expect(yield* counts).toEqual(one)
    })

    test.each(kinds)("makes %s once, at the same time", function* ([_, make]) {
      const { counts, store } = yield* observed
      const key = once()
      const results = yield* Effect.forEach(Array.from({ length: 12 }), () => make(store, key), {
        concurrency: "unbounded",
      })
      expect(results.filter((result) => !isReplayedResponse(result))).toHaveLength(1)
      expect(yield* counts).toEqual(one)
    })

    test("returns the total of the bulk extension that was made", function* () {
      const { store } = yield* observed
      const bulk = { ...common(once()), bulk: { endDate: in2028, mode: "set" } } as const
      yield* store.extendAll(bulk)
      yield* store.end({ ...change(p1), userId: u2 })
      const replayed = yield* store.extendAll({ ...bulk, ...change(p1) })
      expect(replayed).toEqual({ _tag: "Replayed", answer: "2" })
    })

    test.each(answered)("returns the answer that came with the key of %s", function* ([, make]) {
      const { store } = yield* observed
      const key = { ...once(), answer: "an answer" }
      yield* make(store, key)
      expect(yield* make(store, key)).toEqual(replayedResponse("an answer"))
    })

    test("returns when a grant was made, and the metadata that it has left or set", function* () {
      const { store } = yield* observed
      for (const metadata of [undefined, gold, undefined]) {
        const granted = { ...common(once()), userId: u1, endDate: in2028, metadata }
        yield* store.grant(granted)
        const left = metadataJson((yield* store.find(p1, u1)).metadata)
        yield* store.end({ ...change(p1), userId: u1 })
        const { at } = granted
        const replayed = yield* store.grant({ ...granted, ...change(p1), at: at + 1 })
        expect(replayed).toEqual(replayedResponse(formatGrantAnswer(at, left)))
        yield* store.grant({ ...change(p1), userId: u1, endDate: in2028, metadata: gold })
      }
    })

    test("knows a change that could not be made any more", function* () {
      const { store } = yield* observed
      const key = once()
      const extension = { userId: u1, endDate: in2029 }
      yield* store.extend({ ...common(key), ...extension })
      yield* store.end({ ...change(p1), userId: u1 })
      expect(isReplayedResponse(yield* store.extend({ ...common(key), ...extension }))).toBe(true)
    })

    test("refuses a key that came with another request", function* () {
      const { counts, store } = yield* observed
      const key = once()
      yield* store.extend({ ...common(key), userId: u1, endDate: in2028 })
      const other = { ...key, fingerprint: "another" }
      for (const [, make] of kinds) {
        const error = yield* Effect.flip(make(store, other))
        expect(error).toMatchObject({ _tag: "IdempotencyMismatch" })
      }
      expect(yield* Effect.flip(store.recall(other, p1))).toMatchObject({
        _tag: "IdempotencyMismatch",
      })
      expect(yield* counts).toEqual(one)
    })

    test("creates a project once, and does so with a new key for one that exists", function* () {
      const { store } = yield* observed
      for (const project of [nowhere, p1]) {
        const keyed = { ...occasion, once: once() }
        const results = [1, 2, 3].map(() => store.createProject(project, keyed))
        const all = yield* Effect.all(results, { concurrency: "unbounded" })
        expect(all.filter(isReplayedResponse)).toHaveLength(2)
        const other = { ...keyed, once: { ...keyed.once, fingerprint: "another" } }
        const error = yield* Effect.flip(store.createProject(p1, other))
        expect(error).toMatchObject({ _tag: "IdempotencyMismatch" })
      }
    })

    test("makes one of two changes that have the same key at the same time", function* () {
      const { counts, store } = yield* observed
      const key = once()
      const extensions = [u1, u2].map((userId) =>
        Effect.exit(
          store.extend({ ...common({ ...key, fingerprint: userId }), userId, endDate: in2028 }),
        ),
      )
      const exits = yield* Effect.all(extensions, { concurrency: "unbounded" })
      expect(exits.filter(({ _tag }) => _tag === "Success")).toHaveLength(1)
      expect(yield* counts).toEqual(one)
    })

    test("keeps the keys of each owner apart", function* () {
      const { counts, store } = yield* observed
      const key = once()
      for (const owner of ["one", "other"]) {
        const extension = { ...common({ ...key, owner }), userId: u1, endDate: in2028 }
        expect(isReplayedResponse(yield* store.extend(extension))).toBe(false)
      }
      expect(yield* counts).toEqual(two)
    })

    test("recalls what was answered", function* () {
      const { store } = yield* observed
      const key = once()
      expect(yield* store.recall(key, p1)).toBeUndefined()
      yield* store.extendAll({ ...common(key), bulk: { endDate: in2028, mode: "set" } })
      expect(yield* store.recall(key, p1)).toEqual({ _tag: "Replayed", answer: "2" })
    })

    test("keeps no key of a change that fails", function* () {
      const { counts, store } = yield* observed
      const key = once()
      const extension = { userId: u3, endDate: in2028 }
      yield* Effect.flip(store.extend({ ...common(key), ...extension }))
      yield* Effect.flip(store.end({ ...common(key), userId: u3 }))
      yield* Effect.flip(store.grant({ ...common(key), ...change(nowhere), ...extension }))
      const all = { bulk: { endDate: in2028, mode: "neverShorten" } } as const
      yield* Effect.flip(store.extendAll({ ...common(key), ...change(nowhere), ...all }))
      expect(yield* counts).toEqual(nothing)
      yield* store.grant({ ...change(p1), ...extension })
      expect(isReplayedResponse(yield* store.extend({ ...common(key), ...extension }))).toBe(false)
      expect(yield* counts).toEqual(two)
    })

    transactional("forgets the key with a transaction of the host that fails", function* () {
      const { counts, store } = yield* observed
      for (const [, make] of kinds) {
        const key = once()
        yield* undone(make(store, key))
        expect(yield* store.recall(key, p1)).toBeUndefined()
      }
      expect(yield* counts).toEqual(nothing)
    })

    if (on.hasSeveralDatabases) return
    projectTests(on)
    modelTests(on)
  })
}
