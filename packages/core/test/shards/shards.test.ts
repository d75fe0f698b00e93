/** What shards do beyond what every store does, which `storeSuite` tests. */

import { expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { TestClock } from "effect/testing"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { Millis } from "../../src/base/time.ts"
import { ProjectId } from "../../src/base/values.ts"
import { FeedStore } from "../../src/events/feed-store.ts"
import { ApiKeyStore } from "../../src/keys/store.ts"
import { EndDate } from "../../src/memberships/end-date.ts"
import { makeDecideAnnouncement, reminderLeads } from "../../src/memberships/expiry.ts"
import { MembershipStore } from "../../src/memberships/store.ts"
import { ProjectDirectory } from "../../src/shards/shard-map.ts"
import { type ShardsOptions, shardsLayer } from "../../src/shards/shards.ts"
import type { StorePorts } from "../../src/tenure.ts"
import { Outbox } from "../../src/webhooks/outbox.ts"
import { WebhookStore } from "../../src/webhooks/store.ts"

const { apiKey, change, event, in2027, occasion, once, p1, p2, u1, makeWebhook } = Fixture

/** Stores that are built once, so that several maps can be tried on them. */
const built = Effect.map(Layer.build(memory()), (context) => Layer.succeedContext(context))

type Store = MembershipStore["Service"]
type StoreLayer = Layer.Layer<StorePorts, unknown>

/** Runs a test on two shards. */
const onShards = <A, E>(
  [home, other]: readonly [StoreLayer, StoreLayer],
  projects: ShardsOptions["projects"],
  test: Effect.Effect<A, E, StorePorts>,
) =>
  Effect.provide(
    test,
    shardsLayer([
      { name: "home", projects, stores: home },
      { name: "other", projects: "others", stores: other },
    ]),
  )

const grant = (projectId: ProjectId) =>
  Effect.flatMap(MembershipStore, (store) =>
    store.grant({ ...change(projectId), userId: u1, endDate: in2027 }),
  )

const all = { within: "all", after: undefined, limit: 10 } as const

const idsIn = Effect.flatMap(MembershipStore, (store) =>
  Effect.map(store.listProjects(all), (found) => found.map(({ id }) => id)),
)

it.effect("a project that is in another shard than the map says is unavailable, not missing", () =>
  Effect.gen(function* () {
    const stores = [yield* built, yield* built] as const
    yield* onShards(
      stores,
      ["p1"],
      Effect.gen(function* () {
        const store = yield* MembershipStore
        yield* store.createProject(p1, occasion)
        yield* store.createProject(p2, occasion)
      }),
    )
    const swapped = Effect.gen(function* () {
      const store = yield* MembershipStore
      const outbox = yield* Outbox
      const feed = yield* FeedStore
      const size = { events: 1, bytes: 1 }
      for (const projectId of [p1, p2]) {
        const refusals: ReadonlyArray<Effect.Effect<unknown, unknown, StorePorts>> = [
          grant(projectId),
          store.find(projectId, u1),
          store.findProject(projectId),
          store.createProject(projectId, occasion),
          store.deleteProject(projectId, occasion),
          store.extend({ ...change(projectId), userId: u1, endDate: in2027 }),
          outbox.publish(event(projectId)),
          feed.read([projectId], "now", size),
          (yield* WebhookStore).list(projectId),
        ]
        for (const refused of refusals)
          expect(yield* Effect.flip(refused)).toMatchObject({
            _tag: "StoreUnavailable",
            cause: expect.stringContaining(`The project ${projectId} is not in the shard `),
          })
      }
      const missing = yield* Effect.flip(store.findProject(ProjectId("p3")))
      expect(missing._tag).toBe("ProjectNotFound")
    })
    yield* onShards(stores, ["p2"], swapped)
    yield* onShards(stores, ["p1"], Effect.andThen(grant(p1), grant(p2)))
  }),
)

it.effect("a project that no shard names cannot be created", () =>
  Effect.gen(function* () {
    const layer = shardsLayer([{ name: "home", projects: ["p1"], stores: memory() }])
    const created = Effect.flatMap(MembershipStore, (store) => store.createProject(p2, occasion))
    const error = yield* Effect.flip(Effect.provide(created, layer))
    expect(error).toMatchObject({ _tag: "InvalidInput", field: "projectId" })
  }),
)

it.effect("lists projects of all shards in pages, in the order of their ids", () =>
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
    const stores = [memory(), memory()] as const
    for (const isHome of [(id: string) => Number(id.at(-1)) % 3 === 0, () => true, () => false])
      yield* onShards(stores, isHome, test)
  }),
)

it.effect("a deletion that has stopped halfway is completed by its repetition", () =>
  Effect.gen(function* () {
    const [home, other] = [yield* built, yield* built]
    let isDown = false
    const failing = Layer.provideMerge(
      Layer.effect(
        MembershipStore,
        Effect.map(MembershipStore, (store) => ({
          ...store,
          deleteProject: (...asked: Parameters<typeof store.deleteProject>) =>
            isDown
              ? Effect.fail(new StoreUnavailable({ cause: "down" }))
              : store.deleteProject(...asked),
        })),
      ),
      other,
    )
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
    yield* onShards([home, failing], [], test)
  }),
)

/** Stores in memory, of which the `MembershipStore` is changed. */
const altered = (alter: (store: Store) => Partial<Store>): StoreLayer =>
  Layer.provideMerge(
    Layer.effect(
      MembershipStore,
      Effect.map(MembershipStore, (store) => ({ ...store, ...alter(store) })),
    ),
    memory(),
  )

it.effect(
  "a project that is created while it is being deleted can be created and deleted again",
  () =>
    Effect.gen(function* () {
      let meanwhile: Effect.Effect<unknown, unknown> = Effect.void
      const other = altered((store) => ({
        deleteProject: (...asked) =>
          Effect.andThen(Effect.orDie(meanwhile), store.deleteProject(...asked)),
      }))
      const test = Effect.gen(function* () {
        const store = yield* MembershipStore
        const keys = yield* ApiKeyStore
        for (const [repair, token] of [
          [store.deleteProject, "a token"],
          [store.createProject, "another token"],
        ] as const) {
          const key = apiKey(token, p1)
          yield* store.createProject(p1, occasion)
          meanwhile = Effect.andThen(store.createProject(p1, occasion), keys.add(key, occasion))
          yield* store.deleteProject(p1, occasion)
          meanwhile = Effect.void
          expect((yield* Effect.flip(store.findProject(p1)))._tag).toBe("ProjectNotFound")
          expect((yield* Effect.flip(grant(p1)))._tag).toBe("ProjectNotFound")
          expect(yield* idsIn).toEqual([])
          yield* repair(p1, occasion)
          expect((yield* keys.find(key.digest))?.projects).toEqual(new Set())
        }
        expect(yield* idsIn).toEqual([p1])
        yield* store.deleteProject(p1, occasion)
        expect((yield* Effect.flip(store.deleteProject(p1, occasion)))._tag).toBe("ProjectNotFound")
      })
      yield* onShards([memory(), other], [], test)
    }),
)

it.effect("a project that others create at the same time is created", () =>
  Effect.gen(function* () {
    let meanwhile: Effect.Effect<unknown, unknown> = Effect.void
    const other = altered((store) => ({
      findProject: (projectId) =>
        Effect.flatMap(Effect.exit(store.findProject(projectId)), (found) => {
          const created = Effect.orDie(meanwhile)
          meanwhile = Effect.void
          return Effect.andThen(created, found)
        }),
    }))
    const test = Effect.gen(function* () {
      const store = yield* MembershipStore
      meanwhile = store.createProject(p1, occasion)
      yield* store.createProject(p1, occasion)
      expect(yield* idsIn).toEqual([p1])
      const rows = yield* store.history(undefined, { userId: undefined, limit: 10 })
      expect(rows.map(({ action }) => action)).toEqual(["project_created"])
    })
    yield* onShards([memory(), other], [], test)
  }),
)

it.effect("lists a project that is created twice at the same time, by the same request", () =>
  Effect.gen(function* () {
    let meanwhile: Effect.Effect<unknown, unknown> = Effect.void
    const home = yield* built
    const found = yield* Effect.provide(Effect.serviceOption(ProjectDirectory), home)
    const directory = yield* Effect.fromOption(found)
    const racing = Layer.merge(
      home,
      Layer.succeed(ProjectDirectory, {
        ...directory,
        remove: (...asked) => {
          const created = Effect.orDie(meanwhile)
          meanwhile = Effect.void
          return Effect.andThen(created, directory.remove(...asked))
        },
      }),
    )
    const test = Effect.gen(function* () {
      const store = yield* MembershipStore
      // As a creation and a deletion at the same time may leave it.
      yield* directory.add(p1, occasion)
      const creation = store.createProject(p1, { ...occasion, once: once() })
      meanwhile = creation
      yield* creation
      expect(yield* idsIn).toEqual([p1])
      yield* creation
      expect(yield* idsIn).toEqual([p1])
    })
    yield* onShards([racing, memory()], [], test)
  }),
)

it.effect("lists a project that is not where the map has it, once", () =>
  Effect.gen(function* () {
    const stores = [yield* built, yield* built] as const
    const create = Effect.flatMap(MembershipStore, (store) => store.createProject(p2, occasion))
    yield* onShards(stores, ["p1"], create)
    yield* onShards(
      stores,
      ["p2"],
      Effect.gen(function* () {
        expect(yield* idsIn).toEqual([p2])
      }),
    )
  }),
)

it.effect("changes no project if the idempotency key belongs to another request", () =>
  Effect.gen(function* () {
    const stores = [yield* built, yield* built, yield* built] as const
    const layer = shardsLayer([
      { name: "home", projects: [], stores: stores[0] },
      { name: "large", projects: ["p1"], stores: stores[1] },
      { name: "eu", projects: ["p2"], stores: stores[2] },
    ])
    const test = Effect.gen(function* () {
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
    })
    yield* Effect.provide(test, layer)
  }),
)

it.effect("claims from a shard that answers while another does not", () =>
  Effect.gen(function* () {
    let isDown = false
    const failing = Layer.provideMerge(
      Layer.effect(
        Outbox,
        Effect.map(Outbox, (outbox) => ({
          ...outbox,
          claim: (options: Parameters<typeof outbox.claim>[0]) =>
            isDown ? Effect.fail(new StoreUnavailable({ cause: "down" })) : outbox.claim(options),
        })),
      ),
      memory(),
    )
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
      expect(yield* projectsOf).toEqual([p1, p1, p2, p2])
      isDown = true
      const { claims, nextDueMillis } = yield* claim
      expect(claims.map((one) => one.webhook.projectId)).toEqual([p1, p1, p1, p1])
      expect(nextDueMillis).toBeLessThanOrEqual(1000)
    })
    yield* onShards([memory(), failing], ["p1"], test)
  }),
)

it.effect("opens a shard later if it cannot be opened at the start", () =>
  Effect.gen(function* () {
    let attempts = 0
    const late = Layer.unwrap(
      Effect.suspend(() =>
        ++attempts < 3 ? Effect.fail("down" as const) : Effect.succeed(memory()),
      ),
    )
    const layer = shardsLayer(
      [
        { name: "home", projects: ["p1"], stores: memory() },
        { name: "other", projects: "others", stores: late },
      ],
      (error) => error !== "down",
    )
    const test = Effect.gen(function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
      const error = yield* Effect.flip(store.createProject(p2, occasion))
      expect(error).toMatchObject({ _tag: "StoreUnavailable", cause: "down" })
      yield* TestClock.adjust("2 seconds")
      yield* store.createProject(p2, occasion)
      expect(attempts).toBe(3)
    })
    yield* Effect.provide(test, layer)
  }),
)

it.effect(
  "says once that a shard cannot be opened, watched and claimed from, and once that it is",
  () =>
    Effect.gen(function* () {
      let isUp = false
      const late = Layer.unwrap(
        Effect.suspend(() => (isUp ? Effect.succeed(memory()) : Effect.fail("down"))),
      )
      const ticking = Layer.effect(
        Outbox,
        Effect.map(Outbox, (outbox) => ({
          ...outbox,
          // As a database that is polled.
          nextChange: Effect.as(Effect.sleep("1 second"), { _tag: "Due" } as const),
        })),
      ).pipe(Layer.provideMerge(memory()))
      const layer = shardsLayer<unknown>(
        [
          { name: "home", projects: ["p1"], stores: ticking },
          { name: "other", projects: "others", stores: late },
        ],
        () => false,
      )
      const logged: Array<unknown> = []
      const logger = Logger.make<unknown, void>(({ message }) => void logged.push(message))
      const test = Effect.gen(function* () {
        const { nextChange } = yield* Outbox
        yield* Effect.forkScoped(Effect.forever(nextChange))
        yield* TestClock.adjust("10 seconds")
        expect(logged).toHaveLength(2)
        isUp = true
        yield* TestClock.adjust("10 seconds")
        expect(logged.slice(2)).toEqual([["The shard other is open now"]])
      })
      yield* Effect.provide(test, Layer.provideMerge(layer, Logger.layer([logger])))
    }),
)

it.effect("fails at the start if it is in vain to try a shard again", () =>
  Effect.gen(function* () {
    const layer = shardsLayer<unknown>([
      { name: "home", projects: [], stores: memory() },
      { name: "other", projects: [], stores: Layer.effectContext(Effect.fail("broken")) },
    ])
    expect(yield* Effect.flip(Layer.build(layer))).toBe("broken")
  }),
)

it.effect("refuses two shards with one name", () =>
  Effect.gen(function* () {
    const shard = { name: "main", projects: [], stores: memory() }
    expect(yield* Effect.flip(Layer.build(shardsLayer([shard, shard])))).toMatchObject({
      message: "[1].name is main, as that of an earlier entry",
    })
  }),
)

it.effect("follows the feed of each shard by itself", () =>
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
    yield* onShards([memory(), memory()], ["p1"], test)
  }),
)

it.effect("announces ends in all shards, each watched since the first sweep that reaches it", () =>
  Effect.gen(function* () {
    let isOpen = false
    const late = Layer.unwrap(
      Effect.suspend(() => (isOpen ? Effect.succeed(memory()) : Effect.fail("down"))),
    )
    const layer = shardsLayer<unknown>(
      [
        { name: "home", projects: ["p1"], stores: memory() },
        { name: "other", projects: "others", stores: late },
      ],
      () => false,
    )
    const test = Effect.gen(function* () {
      const store = yield* MembershipStore
      const since = yield* store.expiry?.watch([Millis(0)]) ?? Effect.die("no expiry")
      const judge = makeDecideAnnouncement({ leads: reminderLeads([]), since })
      const ended = Effect.map(
        store.expiry?.sweep(10, judge) ?? Effect.die("no expiry"),
        ({ events }) => events.map(({ projectId }) => projectId).toSorted(),
      )
      expect(yield* ended).toEqual([])
      isOpen = true
      yield* TestClock.adjust("1 second")
      expect(yield* ended).toEqual([])
      for (const projectId of [p1, p2]) {
        yield* store.createProject(projectId, occasion)
        const endDate = EndDate(5000)
        yield* store.grant({ ...change(projectId), userId: u1, endDate })
      }
      yield* TestClock.adjust("10 seconds")
      expect(yield* ended).toEqual([p1, p2])
    })
    yield* Effect.provide(test, layer)
  }),
)

it.effect(
  "keeps what a silent shard has said of encryption keys, and fails if all are silent",
  () =>
    Effect.gen(function* () {
      const down = new Set<string>()
      const storesOf = (name: string, keyId: string) =>
        Layer.effect(
          WebhookStore,
          Effect.map(WebhookStore, (store) =>
            WebhookStore.of({
              ...store,
              encryptionKeys: () =>
                Effect.suspend(() =>
                  down.has(name)
                    ? Effect.fail(new StoreUnavailable({ cause: "down" }))
                    : Effect.succeed([{ keyId, samples: [] }]),
                ),
            }),
          ),
        ).pipe(Layer.provideMerge(memory()))
      const keys = Effect.gen(function* () {
        const { encryptionKeys } = yield* WebhookStore
        const ids = Effect.map(encryptionKeys(0), (uses) => uses.map(({ keyId }) => keyId))
        expect(yield* ids).toEqual(["k1", "k2"])
        down.add("other")
        expect(yield* ids).toEqual(["k1", "k2"])
        down.add("home")
        expect(yield* Effect.flip(ids)).toMatchObject({ _tag: "StoreUnavailable" })
      })
      yield* onShards([storesOf("home", "k1"), storesOf("other", "k2")], ["p1"], keys)
    }),
)
