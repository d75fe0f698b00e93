/** Behavior specific to cells; `storeSuite` tests the behavior common to all stores. */

import { memory } from "@tenure/memory"
import { Fixture } from "@tenure/testing/conformance"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { expect } from "vitest"
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
import { test } from "../support/test.ts"

const { apiKey, change, event, in2027, context, idempotency, u1, makeWebhook } = Fixture

type StoreLayer = Layer.Layer<StorePorts, unknown>

const projectIn = (cell: number): ProjectId => {
  const ids = Array.from({ length: 100 }, (_, n) => ProjectId(`p${n}`))
  return ids.find((id) => cellNumber(id, 2) === cell) ?? ids[0] ?? ProjectId("p")
}

/** A project in the first cell, and one in the second. */
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

/** Returns memory stores with one store changed. */
const memoryWith = <Port extends StorePorts, Service>(
  port: Context.Key<Port, Service>,
  replace: (store: Service) => Service,
) => Layer.provideMerge(Layer.effect(port, Effect.map(port, replace)), memory())

/** Returns the services on a home and two cells. */
const cellsOn = Effect.fnUntraced(function* ({
  first = memory(),
  second = memory(),
  home = memory(),
}: Partial<Record<"first" | "second" | "home", StoreLayer>> = {}) {
  const own = yield* Layer.build(home)
  const cells = [yield* cellOn("first", first), yield* cellOn("second", second)] as const
  const stores = yield* makeCellStores({
    home: {
      memberships: Context.get(own, MembershipStore),
      apiKeys: Context.get(own, ApiKeyStore),
    },
    cells,
    changes: cells.map(({ name, outbox }) => ({ name, next: outbox.nextChange })),
  })
  const services = Context.merge(own, stores)
  const store = Context.get(services, MembershipStore)
  return {
    store,
    keys: Context.get(services, ApiKeyStore),
    webhooks: Context.get(services, WebhookStore),
    outbox: Context.get(services, Outbox),
    feed: Context.get(services, FeedStore),
    /** All project ids. */
    ids: Effect.map(store.listProjects(all), (found) => found.map(({ id }) => id)),
  }
})

const all = { within: "all", after: undefined, limit: 10 } as const

test("lists projects of all cells in pages, in the order of their ids", function* () {
  const { store } = yield* cellsOn()
  const ids = Array.from({ length: 25 }, (_, index) => ProjectId(`p${100 + index}`))
  yield* Effect.forEach(ids.toReversed(), (id) => store.createProject(id, context))
  const found: Array<ProjectId> = []
  for (;;) {
    const page = yield* store.listProjects({ ...all, after: found.at(-1), limit: 4 })
    found.push(...page.map(({ id }) => id))
    if (page.length < 4) break
  }
  expect(found).toEqual(ids)
})

test("a deletion that has stopped halfway is completed by its repetition", function* () {
  let isDown = false
  const failing = memoryWith(MembershipStore, (own) => ({
    ...own,
    deleteProject: (...asked) => (isDown ? down : own.deleteProject(...asked)),
  }))
  const { ids, keys, store } = yield* cellsOn({ first: failing })
  yield* store.createProject(p1, context)
  const key = apiKey("a token", p1)
  yield* keys.add(key, context)
  const deletion = store.deleteProject(p1, { ...context, idempotency: idempotency() })
  isDown = true
  expect((yield* Effect.flip(deletion))._tag).toBe("StoreUnavailable")
  // Even if the deletion stays incomplete, no key opens the project any more.
  expect((yield* keys.find(key.digest))?.projects).toEqual(new Set())
  isDown = false
  yield* deletion
  expect((yield* Effect.flip(store.findProject(p1)))._tag).toBe("ProjectNotFound")
  expect(yield* deletion).toMatchObject({ _tag: "Replayed" })
  expect(yield* ids).toEqual([])
})

test("changes no project if the idempotency key belongs to another request", function* () {
  const { ids, store } = yield* cellsOn()
  const key = idempotency()
  yield* store.createProject(p1, { ...context, idempotency: key })
  const other = { ...context, idempotency: { ...key, fingerprint: "another" } }
  const refusal = { _tag: "IdempotencyMismatch" }
  expect(yield* Effect.flip(store.createProject(p2, other))).toMatchObject(refusal)
  expect((yield* Effect.flip(store.findProject(p2)))._tag).toBe("ProjectNotFound")
  const granting = idempotency()
  yield* store.grant({ ...change(p1), userId: u1, endDate: in2027, idempotency: granting })
  const deletion = { ...context, idempotency: { ...granting, fingerprint: "another" } }
  expect(yield* Effect.flip(store.deleteProject(p1, deletion))).toMatchObject(refusal)
  expect(yield* ids).toEqual([p1])
})

test("completes a creation that has stopped halfway when it is repeated", function* () {
  let isDown = true
  const home = memoryWith(MembershipStore, (own) => ({
    ...own,
    createProject: (...asked) => (isDown ? down : own.createProject(...asked)),
  }))
  const { ids, store } = yield* cellsOn({ home })
  const creation = store.createProject(p1, { ...context, idempotency: idempotency() })
  expect((yield* Effect.flip(creation))._tag).toBe("StoreUnavailable")
  expect(yield* ids).toEqual([])
  isDown = false
  yield* creation
  expect(yield* ids).toEqual([p1])
  expect(yield* creation).toMatchObject({ _tag: "Replayed" })
})

test("claims from a cell that answers while another does not", function* () {
  let isDown = false
  const failing = memoryWith(Outbox, (own) => ({
    ...own,
    claim: (options) => (isDown ? down : own.claim(options)),
  }))
  const { outbox, store, webhooks } = yield* cellsOn({ second: failing })
  const claim = outbox.claim({
    limit: 4,
    failing: 4,
    perWebhook: { least: 10, most: 10 },
    perProject: 100,
    ahead: new Map(),
    leaseMillis: 1000,
  })
  for (const projectId of [p1, p2]) {
    yield* store.createProject(projectId, context)
    yield* webhooks.add(makeWebhook(projectId), 10, context)
    for (let n = 0; n < 10; n++) yield* outbox.publish(event(projectId))
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

test("follows the feed of each cell by itself", function* () {
  const { feed, store } = yield* cellsOn()
  yield* store.createProject(p1, context)
  yield* store.createProject(p2, context)
  const size = { events: 10, bytes: 1000 }
  const here = yield* feed.read([p1], "now", size)
  const expired = yield* Effect.flip(feed.read([p2], here.cursor, size))
  expect(expired._tag).toBe("CursorExpired")
  expect(feed.histories?.all).toHaveLength(2)
  expect(feed.histories?.of(p1)).not.toBe(feed.histories?.of(p2))
})

test("announces ends in all cells, each watched since the first sweep that reaches it", function* () {
  const { store } = yield* cellsOn()
  const expiry = store.expiry ?? expect.fail("no expiry")
  const since = yield* expiry.watch([Millis(0)])
  const decide = makeDecideAnnouncement({ leads: reminderLeads([]), since })
  const ended = Effect.map(expiry.sweep(10, decide), ({ events }) =>
    events.map(({ projectId }) => projectId).toSorted(),
  )
  expect(yield* ended).toEqual([])
  for (const projectId of [p1, p2]) {
    yield* store.createProject(projectId, context)
    yield* store.grant({ ...change(projectId), userId: u1, endDate: EndDate(5000) })
  }
  yield* TestClock.adjust("10 seconds")
  expect(yield* ended).toEqual([p1, p2].toSorted())
})

test("keeps what a silent cell has said of encryption keys, and fails if all are silent", function* () {
  const silent = new Set<string>()
  const storesOf = (name: string, keyId: string) =>
    memoryWith(WebhookStore, (own) => ({
      ...own,
      encryptionKeys: () =>
        Effect.suspend(() => (silent.has(name) ? down : Effect.succeed([{ keyId, samples: [] }]))),
    }))
  const { webhooks } = yield* cellsOn({
    first: storesOf("first", "k1"),
    second: storesOf("second", "k2"),
  })
  const ids = Effect.map(webhooks.encryptionKeys(0), (uses) => uses.map(({ keyId }) => keyId))
  expect(yield* ids).toEqual(["k1", "k2"])
  silent.add("second")
  expect(yield* ids).toEqual(["k1", "k2"])
  silent.add("first")
  expect(yield* Effect.flip(ids)).toMatchObject({ _tag: "StoreUnavailable" })
})
