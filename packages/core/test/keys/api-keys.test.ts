import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { hostOrigin } from "../../src/base/change-context.ts"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { errorReporterLayer } from "../../src/base/faults.ts"
import * as Setting from "../../src/base/setting.ts"
import { type ApiKeyId, ProjectId } from "../../src/base/values.ts"
import { digestToken } from "../../src/keys/api-key.ts"
import { ApiKeys, type ApiKeysOptions, apiKeysOptions } from "../../src/keys/api-keys.ts"
import { ApiKeyStore } from "../../src/keys/store.ts"
import { MembershipStore } from "../../src/memberships/store.ts"

const makeState = () => ({
  finds: 0,
  revocations: 0,
  /** Answers about keys wait while it is closed. */
  answers: Latch.makeUnsafe(true),
  /** The written last uses. Writes wait while the gate is closed. */
  writes: Array<ReadonlyMap<ApiKeyId, number>>(),
  gate: Latch.makeUnsafe(true),
  isDown: false,
  faults: Array<string>(),
})

type State = ReturnType<typeof makeState>

/** Returns a store with counted, blockable calls. */
const watchedStore = (state: State) =>
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
      touch: (uses) => {
        state.writes.push(uses)
        return state.isDown
          ? Effect.fail(new StoreUnavailable({ cause: "away" }))
          : Effect.andThen(state.gate.await, store.touch(uses))
      },
    })),
  ).pipe(Layer.provideMerge(memory()))

/** Declares a test with a project. */
const test = (
  name: string,
  body: (keys: ApiKeys["Service"], state: State) => Effect.fn.Return<void, unknown, ApiKeyStore>,
  options?: ApiKeysOptions,
): void => {
  const state = makeState()
  const layer = ApiKeys.layer(Setting.parse(apiKeysOptions, options)).pipe(
    Layer.provideMerge(watchedStore(state)),
    Layer.provide(errorReporterLayer({ onError: ({ message }) => state.faults.push(message) })),
  )
  const run = Effect.gen(function* () {
    yield* (yield* MembershipStore).createProject(ProjectId("p1"), { origin: hostOrigin, at: 0 })
    const keys = yield* ApiKeys
    return yield* Effect.gen(() => body(keys, state))
  })
  it.effect(name, () => Effect.provide(run, layer))
}

const aKey = { projects: ["p1"], token: "a token" }

describe("issuing a key", () => {
  test("fails with the name of what is invalid", function* (keys) {
    yield* TestClock.setTime(1_000_000)
    for (const [field, invalid] of [
      ["projects", { projects: undefined }],
      ["projects", { projects: [] }],
      ["projects", { projects: "p1" }],
      ["projects[1]", { projects: ["p1", ""] }],
      ["projects[0]", { projects: [1] }],
      ["projects", { projects: "*" }],
      ["role", { role: "root" }],
      ["role", { role: null }],
      ["name", { name: "" }],
      ["name", { name: "a".repeat(256) }],
      ["name", { name: "a\nb" }],
      ["token", { token: "" }],
      ["token", { token: 7 }],
      ["expiresAt", { expiresAt: new Date(999_999) }],
      ["expiresAt", { expiresAt: 4_070_908_800 }],
      ["expiresAt", { expiresAt: new Date(1_000_000) }],
      ["expiresAt", { expiresAt: new Date(NaN) }],
      ["expiresAt", { expiresAt: 2_000_000_000_000.5 }],
      ["expiresAt", { expiresAt: "2027-01-01" }],
      ["expiresAt", { expiresAt: null }],
    ] as const) {
      // As plain JavaScript may describe it.
      const failure = yield* Effect.flip(
        keys.issue(JSON.parse("0", () => ({ ...aKey, ...invalid }))),
      )
      expect([invalid, failure]).toMatchObject([invalid, { _tag: "InvalidInput", field }])
      expect(failure.message).toContain(`${field} must be `)
    }
    expect(yield* keys.list()).toEqual([])
  })

  test("takes its expiry as a Date or as text", function* (keys) {
    for (const expiresAt of [new Date(1000), "1970-01-01T00:00:01.000Z"]) {
      const token = String(expiresAt)
      const { id } = yield* keys.issue({ projects: ["p1"], token, expiresAt })
      const issued = (yield* keys.list()).find((key) => key.id === id)
      expect(issued).toMatchObject({ expiresAt: 1000 })
      yield* TestClock.setTime(999)
      expect((yield* keys.authenticate(token))?.id).toBe(id)
      yield* TestClock.adjust(1)
      expect(yield* keys.authenticate(token)).toBeUndefined()
      yield* TestClock.setTime(0)
    }
  })

  test("gives the role, the name and the projects, in the cache too", function* (keys) {
    for (const [given, expected] of [
      [{ projects: ["p1"] }, { role: "client", name: undefined, projects: new Set(["p1"]) }],
      [
        { role: "admin", name: "Ada's laptop", projects: "all" },
        { role: "admin", name: "Ada's laptop", projects: "all" },
      ],
    ] as const) {
      const { id, token } = yield* keys.issue(given)
      expect(yield* keys.authenticate(token)).toMatchObject({ id, ...expected })
      expect(yield* keys.recall(token)).toMatchObject({ id, ...expected })
      const listed = (yield* keys.list()).find((key) => key.id === id)
      expect(listed).toMatchObject(expected)
    }
  })

  test("fails for the token of a key with another role", function* (keys) {
    const { id } = yield* keys.issue(aKey)
    const failure = yield* Effect.flip(keys.issue({ ...aKey, projects: "all", role: "admin" }))
    expect(failure.message).toBe(`The token is that of the API key "${id}", whose role is client.`)
    expect(yield* keys.authenticate("a token")).toMatchObject({ role: "client" })
  })
})

describe("the list of keys", () => {
  test("has pages of a hundred keys", function* (keys) {
    yield* Effect.replicateEffect(keys.issue({ projects: ["p1"] }), 101)
    const first = yield* keys.list()
    expect(first.length).toBe(100)
    const [last, ...others] = yield* keys.list({ after: first.at(-1)?.id })
    expect(others).toEqual([])
    expect(last).not.toHaveProperty("digest")
    expect(yield* keys.list({ limit: 1 })).toEqual(first.slice(0, 1))
    for (const page of [{ after: "" }, { after: "unknown" }, { limit: 0 }, { limit: 10_001 }]) {
      const failure = yield* Effect.flip(keys.list(page))
      expect(failure).toMatchObject({ _tag: "InvalidInput", field: Object.keys(page)[0] })
    }
  })

  test("and revoking can be limited to keys within some projects", function* (keys) {
    const { id } = yield* keys.issue({ projects: "all" })
    const within = new Set(["p1"])
    expect(yield* keys.list({ within })).toEqual([])
    expect(yield* Effect.flip(keys.revoke(id, {}, { within }))).toMatchObject({ keyId: id })
    const limited = yield* keys.issue(aKey)
    expect(yield* keys.list({ within })).toMatchObject([{ id: limited.id }])
    yield* keys.revoke(limited.id, {}, { within })
    expect(yield* keys.authenticate("a token")).toBeUndefined()
  })
})

test("revoking fails if there is no such key, and asks no store about an invalid id", function* (keys, state) {
  for (const keyId of ["", "\u0000", "a\nb", "\ud800", "a".repeat(256), JSON.parse("7")]) {
    const failure = yield* Effect.flip(keys.revoke(keyId))
    expect(failure).toMatchObject({ _tag: "ApiKeyNotFound", keyId })
    expect(failure.message).not.toMatch(/\p{Cc}/u)
  }
  expect(state.revocations).toBe(0)
  const failure = yield* Effect.flip(keys.revoke("nobody"))
  expect(failure.message).toBe('The API key "nobody" does not exist.')
})

describe("the cache of keys", () => {
  test("asks the store for a token once in ten seconds", function* (keys, state) {
    const { id } = yield* keys.issue(aKey)
    for (let second = 0; second < 10; second++) {
      expect((yield* keys.authenticate("a token"))?.id).toBe(id)
      expect(yield* keys.authenticate("unknown")).toBeUndefined()
      yield* TestClock.adjust("1 second")
    }
    expect(state.finds).toBe(2)
    yield* keys.authenticate("a token")
    expect(state.finds).toBe(3)
  })

  test(
    "asks the store each time if its life is 0",
    function* (keys, state) {
      yield* keys.authenticate("a token")
      yield* keys.authenticate("a token")
      expect(state.finds).toBe(2)
    },
    { keyCacheTtl: 0 },
  )

  test("knows at once that this process issued or revoked a key", function* (keys) {
    expect(yield* keys.authenticate("a token")).toBeUndefined()
    const { id } = yield* keys.issue(aKey)
    expect((yield* keys.authenticate("a token"))?.id).toBe(id)
    yield* keys.revoke(id)
    expect(yield* keys.authenticate("a token")).toBeUndefined()
  })

  test("knows within ten seconds that another process revoked a key", function* (keys) {
    const { id } = yield* keys.issue(aKey)
    yield* keys.authenticate("a token")
    yield* (yield* ApiKeyStore).revoke({ origin: hostOrigin, keyId: id, at: 0, within: "all" })
    expect((yield* keys.authenticate("a token"))?.id).toBe(id)
    yield* TestClock.adjust("10 seconds")
    expect(yield* keys.authenticate("a token")).toBeUndefined()
  })

  test("drops an answer that a revocation overtook", function* (keys, state) {
    const { id } = yield* keys.issue(aKey)
    yield* state.answers.close
    const asking = yield* Effect.forkChild(keys.authenticate("a token"), {
      startImmediately: true,
    })
    yield* keys.revoke(id)
    yield* state.answers.open
    yield* Fiber.join(asking)
    expect(yield* keys.authenticate("a token")).toBeUndefined()
  })

  test("lasts as long after the clock was set back", function* (keys, state) {
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
  })

  test("is recalled without the store, as long as it is live", function* (keys, state) {
    const { id } = yield* keys.issue(aKey)
    expect(yield* keys.recall("a token")).toBeUndefined()
    expect(yield* keys.recall("not a token\n")).toBeUndefined()
    expect(state.finds).toBe(0)
    yield* keys.authenticate("a token")
    expect((yield* keys.recall("a token"))?.id).toBe(id)
    yield* keys.revoke(id)
    expect(yield* keys.recall("a token")).toBeUndefined()
    expect(state.finds).toBe(1)
  })

  test("evicts the least recently used of 10,000 keys, for no guess", function* (keys, state) {
    const findsFor = Effect.fnUntraced(function* (token: string) {
      const before = state.finds
      yield* keys.authenticate(token)
      return state.finds - before
    })
    for (let count = 0; count < 10_001; count++) {
      yield* keys.issue({ projects: ["p1"], token: `t${count}` })
      yield* keys.authenticate(`t${count}`)
    }
    for (let guess = 0; guess < 10_001; guess++) yield* keys.authenticate(`guess-${guess}`)
    expect([yield* findsFor("t10000"), yield* findsFor("t0")]).toEqual([0, 1])
    expect([yield* findsFor("guess-10000"), yield* findsFor("guess-0")]).toEqual([0, 1])
  })
})

describe("the last use of a key", () => {
  const issue = (keys: ApiKeys["Service"], token: string) => keys.issue({ projects: ["p1"], token })

  const lastUseOf = (token: string) =>
    ApiKeyStore.use((store) => Effect.map(store.find(digestToken(token)), (key) => key?.lastUsedAt))

  test("is recorded at once, and once a minute however many requests there are", function* (keys, {
    writes,
  }) {
    const { id } = yield* issue(keys, "a token")
    expect(yield* lastUseOf("a token")).toBeUndefined()
    for (let second = 0; second < 180; second++) {
      yield* Effect.replicateEffect(keys.authenticate("a token"), 5)
      yield* TestClock.adjust("1 second")
    }
    expect(writes).toEqual([0, 60_000, 120_000].map((at) => new Map([[id, at]])))
    expect(yield* keys.list()).toMatchObject([{ id, lastUsedAt: 120_000 }])
  })

  test("is recorded for many keys in one write a second", function* (keys, { writes }) {
    const tokens = Array.from({ length: 20 }, (_, index) => `token ${index}`)
    yield* Effect.forEach(tokens, (token) => issue(keys, token))
    yield* Effect.forEach(tokens, keys.authenticate)
    yield* TestClock.adjust("1 second")
    yield* Effect.forEach(tokens, keys.authenticate)
    yield* TestClock.adjust("10 seconds")
    expect(writes.length).toBeLessThanOrEqual(2)
    expect(writes.reduce((total, { size }) => total + size, 0)).toBe(20)
  })

  test("does not delay requests, and waits for one write at a time", function* (keys, {
    gate,
    writes,
  }) {
    yield* gate.close
    const { id } = yield* issue(keys, "a token")
    yield* issue(keys, "another")
    for (const token of ["a token", "another"]) {
      expect(yield* keys.authenticate(token)).toBeDefined()
      yield* TestClock.adjust("5 minutes")
    }
    expect(writes).toEqual([new Map([[id, 0]])])
    yield* gate.open
    yield* TestClock.adjust("1 second")
    expect(yield* lastUseOf("a token")).toBe(0)
    expect(yield* lastUseOf("another")).toBe(300_000)
  })

  test("is recorded when the store is back, whose outage is reported once", function* (keys, state) {
    yield* issue(keys, "a token")
    state.isDown = true
    for (let round = 0; round < 3; round++) {
      expect(yield* keys.authenticate("a token")).toBeDefined()
      yield* TestClock.adjust("10 seconds")
    }
    expect(state.writes.length).toBe(3)
    expect(state.faults).toEqual(["The last use of API keys cannot be recorded"])
    state.isDown = false
    yield* keys.authenticate("a token")
    yield* TestClock.adjust("1 second")
    expect(yield* lastUseOf("a token")).toBe(30_000)
  })

  test("is not recorded for guesses, and for revoked and expired keys", function* (keys, {
    writes,
  }) {
    const { id } = yield* issue(keys, "revoked")
    yield* keys.revoke(id)
    yield* keys.issue({ projects: ["p1"], token: "expired", expiresAt: new Date(1000) })
    yield* TestClock.adjust("1 second")
    for (const token of ["revoked", "expired", "a guess"]) yield* keys.authenticate(token)
    yield* TestClock.adjust("1 minute")
    expect(writes).toEqual([])
  })
})
