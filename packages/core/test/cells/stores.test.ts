/** What cells do beyond what every store does, which `storeSuite` tests. */

import { expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import { Fixture } from "@tenure/testing/conformance"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { Millis } from "../../src/base/time.ts"
import { ProjectId } from "../../src/base/values.ts"
import { type Cell, cellNumber } from "../../src/cells/cell.ts"
import { makeCellStores } from "../../src/cells/stores.ts"
import { FeedStore } from "../../src/events/feed-store.ts"
import { ApiKeyStore } from "../../src/keys/store.ts"
import { EndDate } from "../../src/memberships/end-date.ts"
import { makeDecideAnnouncement, reminderLeads } from "../../src/memberships/expiry.ts"
import { MembershipStore } from "../../src/memberships/store.ts"
import type { StorePorts } from "../../src/tenure.ts"
import { Outbox } from "../../src/webhooks/outbox.ts"
import { WebhookStore } from "../../src/webhooks/store.ts"

const { apiKey, change, event, in2027, occasion, once, u1, makeWebhook } = Fixture

type StoreLayer = Layer.Layer<StorePorts, unknown>

const projectIn = (cell: number): ProjectId => {
  const ids = Array.from({ length: 100 }, (_, n) => ProjectId(`p${n}`))
  return ids.find((id) => cellNumber(id, 2) === cell) ?? ids[0] ?? ProjectId("p")
}

/** A project of the first cell, and one of the second. */
const [p1, p2] = [projectIn(0), projectIn(1)]

const cellOn = (name: string, layer: StoreLayer) =>
  Effect.map(Layer.build(layer), (stores): Cell => ({
    name,
    memberships: Context.get(stores, MembershipStore),
    webhooks: Context.get(stores, WebhookStore),
    outbox: Context.get(stores, Outbox),
    feed: Context.get(stores, FeedStore),
  }))

const down = Effect.fail(new StoreUnavailable({ cause: "down" }))

/** Stores in memory, in one of which something is replaced. */
const memoryWith = <Port extends StorePorts, Service>(
  port: Context.Key<Port, Service>,
  replace: (store: Service) => Service,
) => Layer.provideMerge(Layer.effect(port, Effect.map(port, replace)), memory())

/** Runs a test on a home and two cells. */
const onCells = <A, E>(
  layers: readonly [StoreLayer, StoreLayer],
  test: Effect.Effect<A, E, StorePorts>,
  home: StoreLayer = memory(),
) =>
  Effect.gen(function* () {
    const own = yield* Layer.build(home)
    const first = yield* cellOn("first", layers[0])
    const second = yield* cellOn("second", layers[1])
    const stores = yield* makeCellStores({
      home: {
        memberships: Context.get(own, MembershipStore),
        apiKeys: Context.get(own, ApiKeyStore),
      },
      cells: [first, second],
      changes: [first, second].map(({ name, outbox }) => ({ name, next: outbox.nextChange })),
    })
    return yield* Effect.provideContext(test, Context.merge(own, stores))
  }).pipe(Effect.scoped)

const all = { within: "all", after: undefined, limit: 10 } as const

const idsIn = Effect.flatMap(MembershipStore, (store) =>
  Effect.map(store.listProjects(all), (found) => found.map(({ id }) => id)),
)

it.effect("lists projects of all cells in pages, in the order of their ids", () =>
  Effect.gen(function* () {
    const ids = Array.from({ length: 25 }, (_, index) => ProjectId(`p${100 + index}`))
    const test = Effect.gen(function* () {
      const store = yield* MembershipStore
      yield* Effect.forEach(ids.toReversed(), (id) => store.createProject(id, occasion))
      const found: Array<ProjectId> = []
      for (;;) {
        const page = yield* store.listProjects({ ...all, after: found.at(-1), limit: 4 })
        found.push(...page.map(({ id }) => id))
        if (page.length < 4) break
      }
      expect(found).toEqual(ids)
    })
    yield* onCells([memory(), memory()], test)
  }),
)

it.effect("a deletion that has stopped halfway is completed by its repetition", () =>
  Effect.gen(function* () {
    let isDown = false
    const failing = memoryWith(MembershipStore, (store) => ({
      ...store,
      deleteProject: (...asked) => (isDown ? down : store.deleteProject(...asked)),
    }))
    const test = Effect.gen(function* () {
      const store = yield* MembershipStore
      const keys = yield* ApiKeyStore
      yield* store.createProject(p1, occasion)
      const key = apiKey("a token", p1)
      yield* keys.add(key, occasion)
      const deletion = store.deleteProject(p1, { ...occasion, once: once() })
      isDown = true
      expect((yield* Effect.flip(deletion))._tag).toBe("StoreUnavailable")
      // Whatever becomes of it, no key opens it any more.
      expect((yield* keys.find(key.digest))?.projects).toEqual(new Set())
      isDown = false
      yield* deletion
      expect((yield* Effect.flip(store.findProject(p1)))._tag).toBe("ProjectNotFound")
      expect(yield* deletion).toMatchObject({ _tag: "Replayed" })
      expect(yield* idsIn).toEqual([])
    })
    yield* onCells([failing, memory()], test)
  }),
)

it.effect("changes no project if the idempotency key belongs to another request", () =>
  onCells(
    [memory(), memory()],
    Effect.gen(function* () {
      const store = yield* MembershipStore
      const key = once()
      yield* store.createProject(p1, { ...occasion, once: key })
      const other = { ...occasion, once: { ...key, fingerprint: "another" } }
      const refusal = { _tag: "IdempotencyMismatch" }
      expect(yield* Effect.flip(store.createProject(p2, other))).toMatchObject(refusal)
      expect((yield* Effect.flip(store.findProject(p2)))._tag).toBe("ProjectNotFound")
      const granting = once()
      yield* store.grant({ ...change(p1), userId: u1, endDate: in2027, once: granting })
      const deletion = { ...occasion, once: { ...granting, fingerprint: "another" } }
      expect(yield* Effect.flip(store.deleteProject(p1, deletion))).toMatchObject(refusal)
      expect(yield* idsIn).toEqual([p1])
    }),
  ),
)

it.effect("completes a creation that has stopped halfway when it is repeated", () =>
  Effect.gen(function* () {
    let isDown = true
    const home = memoryWith(MembershipStore, (store) => ({
      ...store,
      createProject: (...asked) => (isDown ? down : store.createProject(...asked)),
    }))
    const test = Effect.gen(function* () {
      const store = yield* MembershipStore
      const creation = store.createProject(p1, { ...occasion, once: once() })
      expect((yield* Effect.flip(creation))._tag).toBe("StoreUnavailable")
      expect(yield* idsIn).toEqual([])
      isDown = false
      yield* creation
      expect(yield* idsIn).toEqual([p1])
      expect(yield* creation).toMatchObject({ _tag: "Replayed" })
    })
    yield* onCells([memory(), memory()], test, home)
  }),
)

it.effect("claims from a cell that answers while another does not", () =>
  Effect.gen(function* () {
    let isDown = false
    const failing = memoryWith(Outbox, (outbox) => ({
      ...outbox,
      claim: (options) => (isDown ? down : outbox.claim(options)),
    }))
    const claim = Effect.flatMap(Outbox, (outbox) =>
      outbox.claim({
        limit: 4,
        failing: 4,
        perWebhook: { least: 10, most: 10 },
        perProject: 100,
        ahead: new Map(),
        leaseMillis: 1000,
      }),
    )
    const test = Effect.gen(function* () {
      const store = yield* MembershipStore
      for (const projectId of [p1, p2]) {
        yield* store.createProject(projectId, occasion)
        yield* (yield* WebhookStore).add(makeWebhook(projectId), 10, occasion)
        for (let n = 0; n < 10; n++) yield* (yield* Outbox).publish(event(projectId))
      }
      const projectsOf = Effect.map(claim, ({ claims }) =>
        claims.map((one) => one.webhook.projectId).toSorted(),
      )
      expect(yield* projectsOf).toEqual([p1, p1, p2, p2].toSorted())
      isDown = true
      const { claims, nextDueMillis } = yield* claim
      expect(claims.map((one) => one.webhook.projectId)).toEqual([p1, p1, p1, p1])
      expect(nextDueMillis).toBeLessThanOrEqual(1000)
    })
    yield* onCells([memory(), failing], test)
  }),
)

it.effect("follows the feed of each cell by itself", () =>
  Effect.gen(function* () {
    const test = Effect.gen(function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
      yield* store.createProject(p2, occasion)
      const feed = yield* FeedStore
      const size = { events: 10, bytes: 1000 }
      const here = yield* feed.read([p1], "now", size)
      const expired = yield* Effect.flip(feed.read([p2], here.cursor, size))
      expect(expired._tag).toBe("CursorExpired")
      expect(feed.histories?.all).toHaveLength(2)
      expect(feed.histories?.of(p1)).not.toBe(feed.histories?.of(p2))
    })
    yield* onCells([memory(), memory()], test)
  }),
)

it.effect("announces ends in all cells, each watched since the first sweep that reaches it", () =>
  onCells(
    [memory(), memory()],
    Effect.gen(function* () {
      const store = yield* MembershipStore
      const since = yield* store.expiry?.watch([Millis(0)]) ?? Effect.die("no expiry")
      const judge = makeDecideAnnouncement({ leads: reminderLeads([]), since })
      const ended = Effect.map(
        store.expiry?.sweep(10, judge) ?? Effect.die("no expiry"),
        ({ events }) => events.map(({ projectId }) => projectId).toSorted(),
      )
      expect(yield* ended).toEqual([])
      for (const projectId of [p1, p2]) {
        yield* store.createProject(projectId, occasion)
        yield* store.grant({ ...change(projectId), userId: u1, endDate: EndDate(5000) })
      }
      yield* TestClock.adjust("10 seconds")
      expect(yield* ended).toEqual([p1, p2].toSorted())
    }),
  ),
)

it.effect("keeps what a silent cell has said of encryption keys, and fails if all are silent", () =>
  Effect.gen(function* () {
    const silent = new Set<string>()
    const storesOf = (name: string, keyId: string) =>
      memoryWith(WebhookStore, (store) => ({
        ...store,
        encryptionKeys: () =>
          Effect.suspend(() =>
            silent.has(name) ? down : Effect.succeed([{ keyId, samples: [] }]),
          ),
      }))
    const keys = Effect.gen(function* () {
      const { encryptionKeys } = yield* WebhookStore
      const ids = Effect.map(encryptionKeys(0), (uses) => uses.map(({ keyId }) => keyId))
      expect(yield* ids).toEqual(["k1", "k2"])
      silent.add("second")
      expect(yield* ids).toEqual(["k1", "k2"])
      silent.add("first")
      expect(yield* Effect.flip(ids)).toMatchObject({ _tag: "StoreUnavailable" })
    })
    yield* onCells([storesOf("first", "k1"), storesOf("second", "k2")], keys)
  }),
)
