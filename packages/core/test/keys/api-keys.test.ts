import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { hostOrigin } from "../../src/base/change-context.ts"
import * as Setting from "../../src/base/setting.ts"
import { ProjectId } from "../../src/base/values.ts"
import {
  ApiKeys,
  type ApiKeysOptions,
  type Issue,
  apiKeysOptions as keyOptions,
} from "../../src/keys/api-keys.ts"
import { ApiKeyStore } from "../../src/keys/store.ts"
import { MembershipStore } from "../../src/memberships/store.ts"

/** A store that counts its calls, and whose answers can be held back. */
const watchedStore = () => {
  const state = { finds: 0, revocations: 0, answers: Latch.makeUnsafe(true) }
  const layer = Layer.provideMerge(
    Layer.effect(
      ApiKeyStore,
      Effect.map(ApiKeyStore, (store) => ({
        ...store,
        find: (digest) => {
          state.finds++
          return Effect.tap(store.find(digest), () => state.answers.await)
        },
        revoke: (revocation) => {
          state.revocations++
          return store.revoke(revocation)
        },
      })),
    ),
    memory(),
  )
  return { state, layer }
}

const withKeys = <A, E>(
  test: (
    keys: ApiKeys["Service"],
    state: ReturnType<typeof watchedStore>["state"],
  ) => Effect.Effect<A, E, ApiKeyStore>,
  options?: ApiKeysOptions,
) => {
  const { layer, state } = watchedStore()
  return Effect.gen(function* () {
    yield* (yield* MembershipStore).createProject(ProjectId("p1"), { origin: hostOrigin, at: 0 })
    return yield* test(yield* ApiKeys, state)
  }).pipe(
    Effect.provide(Layer.provideMerge(ApiKeys.layer(Setting.parse(keyOptions, options)), layer)),
  )
}

const aKey = { projects: ["p1"], token: "a token" }

/** A key to issue as plain JavaScript may describe it. */
const untyped = (json: string): Issue => JSON.parse(json)

describe("issuing a key", () => {
  it.effect.each([
    ["projects", "missing projects", untyped("{}")],
    ["projects", "no projects", { projects: [] }],
    ["projects", "projects that are not an array", untyped('{"projects":"p1"}')],
    ["projects[1]", "an invalid project id", { projects: ["p1", ""] }],
    ["projects[0]", "a project id that is not text", untyped('{"projects":[1]}')],
    ["projects", "another word for all projects", untyped('{"projects":"*"}')],
    ["role", "an unknown role", untyped('{"projects":["p1"],"role":"root"}')],
    ["role", "null for a role", untyped('{"projects":["p1"],"role":null}')],
    ["name", "an empty name", { ...aKey, name: "" }],
    ["name", "a name of 256 characters", { ...aKey, name: "a".repeat(256) }],
    ["name", "a name with a line break", { ...aKey, name: "a\nb" }],
    ["token", "an empty token", { ...aKey, token: "" }],
    ["token", "a token that is not text", untyped('{"projects":["p1"],"token":7}')],
    ["expiresAt", "an expiry in the past", { ...aKey, expiresAt: new Date(999_999) }],
    ["expiresAt", "an expiry in seconds", { ...aKey, expiresAt: 4_070_908_800 }],
    ["expiresAt", "an expiry that is now", { ...aKey, expiresAt: new Date(1_000_000) }],
    ["expiresAt", "an invalid Date", { ...aKey, expiresAt: new Date(NaN) }],
    ["expiresAt", "a fraction", { ...aKey, expiresAt: 2_000_000_000_000.5 }],
    ["expiresAt", "text of another form", { ...aKey, expiresAt: "2027-01-01" }],
    ["expiresAt", "null", untyped('{"projects":["p1"],"expiresAt":null}')],
  ] as const)("fails, naming %s, with %s", ([field, _name, key]) =>
    withKeys((keys) =>
      Effect.gen(function* () {
        yield* TestClock.setTime(1_000_000)
        const failure = yield* Effect.flip(keys.issue(key))
        expect(failure).toMatchObject({ _tag: "InvalidInput", field })
        expect(failure.message).toContain(`${field} must be `)
        expect(yield* keys.list()).toEqual([])
      }),
    ),
  )

  it.effect.each([
    ["a Date", new Date(1000)],
    ["text", "1970-01-01T00:00:01.000Z"],
  ] as const)("takes its expiry as %s", ([_name, expiresAt]) =>
    withKeys((keys) =>
      Effect.gen(function* () {
        const { id } = yield* keys.issue({ ...aKey, expiresAt })
        expect(yield* keys.list()).toMatchObject([{ id, expiresAt: 1000 }])
        yield* TestClock.adjust(999)
        expect((yield* keys.authenticate("a token"))?.id).toBe(id)
        yield* TestClock.adjust(1)
        expect(yield* keys.authenticate("a token")).toBeUndefined()
      }),
    ),
  )
})

describe("a key", () => {
  it.effect("has the role client, no name and its projects, by default", () =>
    withKeys((keys) =>
      Effect.gen(function* () {
        const { id } = yield* keys.issue(aKey)
        const expected = { id, role: "client", name: undefined, projects: new Set(["p1"]) }
        expect(yield* keys.authenticate("a token")).toMatchObject(expected)
        expect(yield* keys.list()).toMatchObject([expected])
      }),
    ),
  )

  it.effect(
    "has the role, the name and the projects that it was issued with, in the cache too",
    () =>
      withKeys((keys) =>
        Effect.gen(function* () {
          const given = { role: "admin", name: "Ada's laptop", projects: "all" } as const
          const { id } = yield* keys.issue({ ...given, token: "a token" })
          yield* keys.authenticate("a token")
          for (const find of [keys.authenticate, keys.recall]) {
            expect(yield* find("a token")).toMatchObject({ id, ...given })
          }
        }),
      ),
  )

  it.effect("cannot be issued for the token of a key with another role", () =>
    withKeys((keys) =>
      Effect.gen(function* () {
        const { id } = yield* keys.issue(aKey)
        const failure = yield* Effect.flip(keys.issue({ ...aKey, projects: "all", role: "admin" }))
        expect(failure.message).toBe(
          `The token is that of the API key "${id}", whose role is client.`,
        )
        expect(yield* keys.authenticate("a token")).toMatchObject({ role: "client" })
      }),
    ),
  )
})

describe("the list of keys", () => {
  it.effect("has pages of a hundred keys", () =>
    withKeys((keys) =>
      Effect.gen(function* () {
        for (let count = 0; count < 101; count++) yield* keys.issue({ projects: ["p1"] })
        const first = yield* keys.list()
        expect(first.length).toBe(100)
        const [last, ...others] = yield* keys.list({ after: first.at(-1)?.id })
        expect(others).toEqual([])
        expect(last).not.toHaveProperty("digest")
        expect(yield* keys.list({ limit: 1 })).toEqual(first.slice(0, 1))
      }),
    ),
  )

  it.effect.each([
    ["after", { after: "" }],
    ["after", { after: "unknown" }],
    ["limit", { limit: 0 }],
    ["limit", { limit: 10_001 }],
  ] as const)("fails, naming %s, with %j", ([field, page]) =>
    withKeys((keys) =>
      Effect.gen(function* () {
        const failure = yield* Effect.flip(keys.list(page))
        expect(failure).toMatchObject({ _tag: "InvalidInput", field })
      }),
    ),
  )

  it.effect("and revoking can be limited to keys within some projects", () =>
    withKeys((keys) =>
      Effect.gen(function* () {
        const { id } = yield* keys.issue({ projects: "all" })
        const within = new Set(["p1"])
        expect(yield* keys.list({ within })).toEqual([])
        expect(yield* Effect.flip(keys.revoke(id, {}, { within }))).toMatchObject({ keyId: id })
        const limited = yield* keys.issue(aKey)
        expect(yield* keys.list({ within })).toMatchObject([{ id: limited.id }])
        yield* keys.revoke(limited.id, {}, { within })
        expect(yield* keys.authenticate("a token")).toBeUndefined()
      }),
    ),
  )
})

describe("revoking a key", () => {
  it.effect.each(["", "\u0000", "a\nb", "\ud800", "a".repeat(256), JSON.parse("7")])(
    "fails without asking the store if it cannot be an id: %j",
    (keyId) =>
      withKeys((keys, state) =>
        Effect.gen(function* () {
          const failure = yield* Effect.flip(keys.revoke(keyId))
          expect(failure).toMatchObject({ _tag: "ApiKeyNotFound", keyId })
          expect(failure.message).not.toMatch(/\p{Cc}/u)
          expect(state.revocations).toBe(0)
        }),
      ),
  )

  it.effect("fails if the key does not exist", () =>
    withKeys((keys) =>
      Effect.gen(function* () {
        const failure = yield* Effect.flip(keys.revoke("nobody"))
        expect(failure.message).toBe('The API key "nobody" does not exist.')
      }),
    ),
  )
})

describe("the cache of keys", () => {
  it.effect("asks the store for a token once in ten seconds", () =>
    withKeys((keys, state) =>
      Effect.gen(function* () {
        const { id } = yield* keys.issue(aKey)
        for (let second = 0; second < 10; second++) {
          expect((yield* keys.authenticate("a token"))?.id).toBe(id)
          expect(yield* keys.authenticate("unknown")).toBeUndefined()
          yield* TestClock.adjust("1 second")
        }
        expect(state.finds).toBe(2)
        yield* keys.authenticate("a token")
        expect(state.finds).toBe(3)
      }),
    ),
  )

  it.effect("asks the store each time if its life is 0", () =>
    withKeys(
      (keys, state) =>
        Effect.gen(function* () {
          yield* keys.authenticate("a token")
          yield* keys.authenticate("a token")
          expect(state.finds).toBe(2)
        }),
      { keyCacheTtl: 0 },
    ),
  )

  it.effect("knows at once that this process issued or revoked a key", () =>
    withKeys((keys) =>
      Effect.gen(function* () {
        expect(yield* keys.authenticate("a token")).toBeUndefined()
        const { id } = yield* keys.issue(aKey)
        expect((yield* keys.authenticate("a token"))?.id).toBe(id)
        yield* keys.revoke(id)
        expect(yield* keys.authenticate("a token")).toBeUndefined()
      }),
    ),
  )

  it.effect("knows within ten seconds that another process revoked a key", () =>
    withKeys((keys) =>
      Effect.gen(function* () {
        const { id } = yield* keys.issue(aKey)
        yield* keys.authenticate("a token")
        yield* (yield* ApiKeyStore).revoke({ origin: hostOrigin, keyId: id, at: 0, within: "all" })
        expect((yield* keys.authenticate("a token"))?.id).toBe(id)
        yield* TestClock.adjust("10 seconds")
        expect(yield* keys.authenticate("a token")).toBeUndefined()
      }),
    ),
  )

  it.effect("drops an answer that a revocation overtook", () =>
    withKeys((keys, state) =>
      Effect.gen(function* () {
        const { id } = yield* keys.issue(aKey)
        yield* state.answers.close
        const asking = yield* Effect.forkChild(keys.authenticate("a token"), {
          startImmediately: true,
        })
        yield* keys.revoke(id)
        yield* state.answers.open
        yield* Fiber.join(asking)
        expect(yield* keys.authenticate("a token")).toBeUndefined()
      }),
    ),
  )

  it.effect("lasts as long after the clock was set back", () =>
    withKeys((keys, state) =>
      Effect.gen(function* () {
        yield* TestClock.setTime(1_000_000)
        yield* keys.issue(aKey)
        yield* keys.authenticate("a token")
        yield* TestClock.setTime(0)
        yield* TestClock.adjust(9999)
        yield* keys.authenticate("a token")
        expect(state.finds).toBe(1)
        yield* TestClock.adjust(1)
        yield* keys.authenticate("a token")
        expect(state.finds).toBe(2)
      }),
    ),
  )

  it.effect("is recalled without the store, as long as it is live", () =>
    withKeys((keys, state) =>
      Effect.gen(function* () {
        const { id } = yield* keys.issue(aKey)
        expect(yield* keys.recall("a token")).toBeUndefined()
        expect(yield* keys.recall("not a token\n")).toBeUndefined()
        expect(state.finds).toBe(0)
        yield* keys.authenticate("a token")
        expect((yield* keys.recall("a token"))?.id).toBe(id)
        yield* keys.revoke(id)
        expect(yield* keys.recall("a token")).toBeUndefined()
        expect(state.finds).toBe(1)
      }),
    ),
  )

  it.effect("keeps a key however many tokens are guessed", () =>
    withKeys((keys, state) =>
      Effect.gen(function* () {
        yield* keys.issue(aKey)
        yield* keys.authenticate("a token")
        for (let guess = 0; guess < 10_001; guess++) yield* keys.authenticate(`guess-${guess}`)
        const before = state.finds
        yield* keys.authenticate("a token")
        yield* keys.authenticate("guess-10000")
        expect(state.finds).toBe(before)
        yield* keys.authenticate("guess-0")
        expect(state.finds).toBe(before + 1)
      }),
    ),
  )

  it.effect("evicts the least recently used key beyond 10,000", () =>
    withKeys((keys, state) =>
      Effect.gen(function* () {
        for (let count = 0; count < 10_001; count++) {
          yield* keys.issue({ projects: ["p1"], token: `t${count}` })
          yield* keys.authenticate(`t${count}`)
        }
        const before = state.finds
        yield* keys.authenticate("t10000")
        expect(state.finds).toBe(before)
        yield* keys.authenticate("t0")
        expect(state.finds).toBe(before + 1)
      }),
    ),
  )
})
