/** Certifies an `ApiKeyStore` and a `TicketStore`. */

import { expect } from "@effect/vitest"
import { digestToken, isReplayedResponse } from "@tenure/core/internal"
import {
  type ApiKey,
  ApiKeyId,
  ApiKeyStore,
  type KeyScope,
  MembershipStore,
  ProjectId,
  type Ticket,
  TicketStore,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { apiKey, context, idempotency, p1, p2 } from "../support/fixtures.ts"
import { type StoreTests, undone } from "./declare.ts"
import {
  answersToRepeated,
  createProjects,
  dayMillis,
  expectFailure,
  successesOf,
  times,
  together,
} from "./steps.ts"

/** A store with two projects. */
const prepared = Effect.andThen(createProjects, ApiKeyStore)

/** Adds keys, in their order. */
const addAll = (keys: ReadonlyArray<ApiKey>) =>
  ApiKeyStore.use((store) => Effect.forEach(keys, (key) => store.add(key, context)))

/** The same, with a key that opens the first project. */
const preparedKey = Effect.gen(function* () {
  const store = yield* prepared
  const key = apiKey("a token", p1)
  yield* store.add(key, context)
  return { key, store }
})

const nowhere = ProjectId("nowhere")

/** A page with all keys. */
const all = { after: undefined, limit: 1000, within: "all" } as const

/** Revokes a key. */
const revocation = ({ id }: ApiKey, at = 5) =>
  ({ ...context, keyId: id, at, within: "all" }) as const

/** Adds keys for all projects, the first, the second, both, and none. */
const mixed = Effect.gen(function* () {
  const keys = [
    { ...apiKey("all"), projects: "all" },
    apiKey("one", p1),
    apiKey("two", p2),
    apiKey("both", p1, p2),
    apiKey("none"),
  ] as const
  yield* addAll(keys)
  return keys
})

const listTests = ({ testsAfter }: StoreTests): void => {
  const { test } = testsAfter(prepared)
  test("lists all keys, oldest first, and those that were revoked", function* (store) {
    const keys = ["one", "two", "three"].map((token, createdAt) => ({
      ...apiKey(token, p1),
      createdAt,
    }))
    yield* addAll(keys)
    yield* Effect.forEach(keys, (key) => store.revoke(revocation(key, 9)))
    expect(yield* store.list(all)).toEqual(keys.map((key) => ({ ...key, revokedAt: 9 })))
  })

  test("lists keys in pages", function* (store) {
    const keys = ["one", "two", "three", "four", "five"].map((token) => apiKey(token, p1))
    yield* addAll(keys)
    for (const index of [0, 2, 4, 5]) {
      const page = yield* store.list({ ...all, after: keys[index - 1]?.id, limit: 2 })
      expect(page).toEqual(keys.slice(index, index + 2))
    }
  })

  test("refuses to list the keys after one that the caller may not see, as after none", function* (store) {
    const [hidden] = yield* mixed
    const within = new Set([p1])
    for (const { id } of [hidden, apiKey("unknown")]) {
      const error = yield* Effect.flip(store.list({ ...all, after: id, within }))
      expect(error).toMatchObject({ _tag: "ApiKeyNotFound", keyId: id })
    }
  })

  test.each<readonly [string, KeyScope, ReadonlyArray<number>]>([
    ["the first project", new Set([p1]), [1]],
    ["two projects", new Set([p1, p2]), [1, 2, 3]],
    ["a project that does not exist", new Set(["nowhere"]), []],
    ["no project", new Set(), []],
    ["all projects", "all", [0, 1, 2, 3, 4]],
  ])("lists the keys within %s", function* ([_name, within, expected]) {
    const store = yield* prepared
    const keys = yield* mixed
    const listed = yield* store.list({ ...all, within })
    expect(listed).toEqual(keys.filter((_, index) => expected.includes(index)))
    expect(yield* store.list({ ...all, limit: 2, within })).toEqual(listed.slice(0, 2))
  })
}

const addTests = ({ advance, testsAfter }: StoreTests): void => {
  const { test } = testsAfter(prepared)
  test("finds a key by the digest of its token, also when it has expired", function* (store) {
    const key: ApiKey = {
      ...apiKey("a token", p1, p2),
      role: "operator",
      name: "nightly import",
      createdAt: 5,
      expiresAt: 7,
    }
    expect(yield* store.add(key, context)).toEqual(key)
    const other = apiKey("another", p2)
    yield* store.add(other, context)
    yield* advance(10)
    const asked = ["another", "unknown", "a token", "another"].map(digestToken)
    const found = yield* together(asked.map((digest) => store.find(digest)))
    expect(found).toEqual([other, undefined, key, other])
    expect(yield* store.find(key.digest)).toEqual(key)
  })

  test("stores nothing and fails if a project does not exist", function* (store) {
    const key = apiKey("a token", p1, nowhere)
    yield* expectFailure("ProjectNotFound", store.add(key, context))
    expect(yield* store.find(key.digest)).toBeUndefined()
    yield* store.add(apiKey("a token", p1), context)
    yield* expectFailure("ProjectNotFound", store.add(apiKey("a token", p2, nowhere), context))
    expect((yield* store.find(key.digest))?.projects).toEqual(new Set([p1]))
  })

  test("adds the projects of a key whose token exists to the stored key, and changes nothing else", function* () {
    const { key, store } = yield* preparedKey
    const again = { ...apiKey("a token", p2), name: "again", expiresAt: 9 }
    const merged = yield* store.add(again, context)
    expect(merged).toEqual({ ...key, projects: new Set([p1, p2]) })
    expect(yield* store.find(key.digest)).toEqual(merged)
    expect(yield* store.list(all)).toEqual([merged])
  })

  test("stores a key that opens all projects, and lets a key with a known token open them", function* (store) {
    const key: ApiKey = { ...apiKey("a token"), projects: "all" }
    expect(yield* store.add(key, context)).toEqual(key)
    expect(yield* store.add(apiKey("a token", p1), context)).toEqual(key)
    const limited = apiKey("another", p1)
    yield* store.add(limited, context)
    const opened: ApiKey = { ...limited, projects: "all" }
    expect(yield* store.add({ ...apiKey("another"), projects: "all" }, context)).toEqual(opened)
    expect(yield* store.list(all)).toEqual([key, opened])
    const found = [yield* store.find(key.digest), yield* store.find(limited.digest)]
    expect(found).toEqual([key, opened])
  })

  test.each([
    ["projects", { projects: new Set([p2]) }],
    ["all projects", { projects: "all" }],
  ] as const)(
    "lets a key with a known token open %s only with the same role, and while it is not revoked",
    function* ([_name, wider]) {
      const { key, store } = yield* preparedKey
      const again = { ...apiKey("a token"), ...wider }
      const conflict = yield* Effect.flip(store.add({ ...again, role: "admin" }, context))
      expect(conflict).toMatchObject({ _tag: "ApiKeyConflict", keyId: key.id, role: "client" })
      expect(yield* store.find(key.digest)).toEqual(key)
      yield* store.revoke(revocation(key))
      const revoked = yield* Effect.flip(store.add(again, context))
      expect(revoked).toMatchObject({ _tag: "ApiKeyRevoked", keyId: key.id })
      expect(yield* store.find(key.digest)).toEqual({ ...key, revokedAt: 5 })
    },
  )

  test("keeps every project of keys that are added concurrently for one token", function* (store) {
    const projects = Array.from({ length: 10 }, (_, index) => ProjectId(`many-${index}`))
    const { createProject } = yield* MembershipStore
    yield* Effect.forEach(projects, (id) => createProject(id, context))
    const added = yield* together(
      projects.map((project) => store.add(apiKey("a token", project), context)),
    )
    const stored = yield* store.find(digestToken("a token"))
    expect(stored?.projects).toEqual(new Set(projects))
    const ids = added.map((one) => (isReplayedResponse(one) ? undefined : one.id))
    expect(new Set(ids)).toEqual(new Set([stored?.id]))
  })

  test("adds a key with an idempotency key once, and keeps none of one that it cannot add", function* () {
    const { store } = yield* preparedKey
    const keyed = { ...context, idempotency: idempotency() }
    yield* Effect.flip(store.add(apiKey("new", nowhere), keyed))
    yield* Effect.flip(store.add({ ...apiKey("a token", p2), role: "operator" }, keyed))
    const answers = yield* answersToRepeated(4, (index) =>
      store.add(apiKey(`token ${index}`, p1), keyed),
    )
    const [, added, ...others] = yield* store.list(all)
    expect(others).toEqual([])
    expect(answers).toEqual([added?.id, added?.id, added?.id])
    const other = { ...context, idempotency: { ...keyed.idempotency, fingerprint: "another" } }
    yield* expectFailure("IdempotencyMismatch", store.add(apiKey("new", p1), other))
  })
}

const revokeTests = ({ testsAfter }: StoreTests): void => {
  const { test } = testsAfter(prepared)
  test("keeps the time of the first revocation, and revokes no other key", function* () {
    const { key, store } = yield* preparedKey
    const other = apiKey("another", p1)
    yield* store.add(other, context)
    yield* store.revoke(revocation(key, 5))
    yield* store.revoke(revocation(key, 6))
    expect(yield* store.list(all)).toEqual([{ ...key, revokedAt: 5 }, other])
  })

  test("revokes a key for good, even if projects are added to it at the same time", function* () {
    const { key, store } = yield* preparedKey
    const additions = Array.from({ length: 5 }, () =>
      Effect.ignore(store.add(apiKey("a token", p2), context)),
    )
    yield* together([...additions, Effect.orDie(store.revoke(revocation(key))), ...additions])
    expect((yield* store.find(key.digest))?.revokedAt).toBe(5)
  })

  test("revokes no key that is unknown, or opens other projects than the caller's", function* (store) {
    const [ofAll, own, ...others] = yield* mixed
    const within = new Set([p1])
    yield* expectFailure(
      "ApiKeyNotFound",
      store.revoke({ ...revocation(own), keyId: ApiKeyId("none") }),
      ...[ofAll, ...others].map((key) => store.revoke({ ...revocation(key), within })),
    )
    yield* store.revoke({ ...revocation(own), within })
    const revoked = (yield* store.list(all)).filter(({ revokedAt }) => revokedAt !== undefined)
    expect(revoked).toEqual([{ ...own, revokedAt: 5 }])
  })

  test("revokes a key with an idempotency key once", function* (store) {
    const key = apiKey("a token", p1)
    const revoke = store.revoke({ ...revocation(key), idempotency: idempotency() })
    yield* expectFailure("ApiKeyNotFound", revoke)
    yield* store.add(key, context)
    yield* answersToRepeated(4, () => revoke)
    expect((yield* store.find(key.digest))?.revokedAt).toBe(5)
  })
}

export const apiKeyStoreSuite = (on: StoreTests): void => {
  const { test, transactional } = on.testsAfter(prepared)

  test("responds to a ping", function* () {
    yield* (yield* ApiKeyStore).ping
  })

  addTests(on)
  revokeTests(on)
  listTests(on)

  test("returns the names of keys, of those that have one", function* (store) {
    const [one, other, nameless] = [apiKey("one", p1), apiKey("two", p2), apiKey("three", p1)]
    yield* addAll([{ ...one, name: "nightly import" }, { ...other, name: "shop" }, nameless])
    yield* store.revoke(revocation(one))
    const asked = new Set([one.id, nameless.id, ApiKeyId("unknown")])
    expect(yield* store.names(asked)).toEqual(new Map([[one.id, "nightly import"]]))
    expect(yield* store.names(new Set())).toEqual(new Map())
  })

  test("records the last use of keys, and changes nothing else", function* (store) {
    const keys = [apiKey("one", p1), apiKey("two", p1), apiKey("three", p1)] as const
    const [one, other, unused] = keys
    yield* addAll(keys)
    const touch = (uses: Readonly<Record<string, number>>) =>
      store.touch(new Map(Object.entries(uses).map(([id, at]) => [ApiKeyId(id), at])))
    yield* touch({ [one.id]: 7 })
    yield* touch({ [one.id]: 6, [other.id]: 8, unknown: 9 })
    expect(yield* store.list(all)).toEqual([
      { ...one, lastUsedAt: 7 },
      { ...other, lastUsedAt: 8 },
      unused,
    ])
    yield* touch({ [one.id]: 10 })
    expect(yield* store.find(one.digest)).toEqual({ ...one, lastUsedAt: 10 })
  })

  transactional("undoes changes with a transaction of the host that fails", function* () {
    const { key, store } = yield* preparedKey
    yield* undone(store.add(apiKey("a token", p2), context))
    yield* undone(store.add(apiKey("another", p1), context))
    yield* undone(store.revoke(revocation(key)))
    expect(yield* store.list(all)).toEqual([key])
  })
}

const bounds = { lifeMillis: 60_000, most: 3 }

/** Creates a key's ticket. */
const ticketOf = (keyId: string): Ticket => ({
  digest: digestToken(crypto.randomUUID()),
  keyId: ApiKeyId(keyId),
  keyDigest: digestToken(`the token of ${keyId}`),
  projects: new Set([p1, p2]),
})

export const ticketStoreSuite = (on: StoreTests): void => {
  const { advance } = on
  const { test } = on.testsAfter(TicketStore)

  test.each([
    ["an API key", {}],
    ["whom else the host identified", { keyDigest: undefined, projects: new Set([p2]) }],
    ["who may use all projects", { projects: "all" }],
  ] as const)("returns a ticket as it was added, of %s", function* ([_name, fields]) {
    const store = yield* TicketStore
    const ticket: Ticket = { ...ticketOf("a key"), ...fields }
    yield* store.add(ticketOf("a key"), bounds)
    yield* store.add(ticket, bounds)
    expect(yield* store.take(digestToken("another"))).toBeUndefined()
    expect(yield* store.take(ticket.digest)).toEqual(ticket)
  })

  test("returns a ticket to one of many who take it at the same time", function* (store) {
    const ticket = ticketOf("a key")
    yield* store.add(ticket, bounds)
    const taken = yield* times(20, () => store.take(ticket.digest))
    expect(taken.filter((one) => one !== undefined)).toEqual([ticket])
    expect(yield* store.take(ticket.digest)).toBeUndefined()
  })

  test("returns a ticket until it expires", function* (store) {
    const [early, late] = [ticketOf("a key"), ticketOf("a key")]
    yield* store.add(early, bounds)
    yield* store.add(late, bounds)
    yield* advance(bounds.lifeMillis - 10_000)
    expect(yield* store.take(early.digest)).toEqual(early)
    yield* advance(10_001)
    expect(yield* store.take(late.digest)).toBeUndefined()
  })

  test("has as many tickets of a key as it may, of those that are added at the same time", function* (store) {
    for (const keyId of ["1", "2", "3", "4", "5"]) {
      const added = yield* successesOf(20, () => store.add(ticketOf(keyId), bounds))
      expect(added).toBe(bounds.most)
    }
  })

  test("has as many tickets of a key as it may, of those that live", function* (store) {
    const add = (keyId: string) => store.add(ticketOf(keyId), bounds)
    const expectFull = Effect.gen(function* () {
      const error = yield* Effect.flip(add("a key"))
      expect(error).toMatchObject({ _tag: "TicketLimitReached", keyId: "a key" })
    })
    const first = ticketOf("a key")
    yield* store.add(first, bounds)
    yield* add("a key")
    yield* add("a key")
    yield* expectFull
    yield* add("another")
    yield* store.take(first.digest)
    yield* add("a key")
    yield* expectFull
    yield* advance(bounds.lifeMillis + 1)
    yield* add("a key")
  })

  test("lets a ticket that was added while the clock was ahead live, and counts it, no longer than others", function* (store) {
    const tickets = Array.from({ length: bounds.most }, () => ticketOf("a key"))
    const other = ticketOf("another")
    yield* advance(dayMillis)
    yield* Effect.forEach([...tickets, other], (ticket) => store.add(ticket, bounds))
    yield* advance(-dayMillis)
    yield* advance(bounds.lifeMillis + 1)
    // Before another ticket is added, which may remove those that have expired.
    expect(yield* store.take(other.digest)).toBeUndefined()
    const ticket = ticketOf("a key")
    yield* store.add(ticket, bounds)
    expect(yield* store.take(ticket.digest)).toEqual(ticket)
    for (const { digest } of tickets) expect(yield* store.take(digest)).toBeUndefined()
  })
}
