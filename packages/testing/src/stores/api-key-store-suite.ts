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
import * as Fixture from "../support/fixtures.ts"
import { p1, p2 } from "../support/fixtures.ts"
import { type StoreTests, undone } from "./declare.ts"

const { apiKey, occasion } = Fixture

/** A store with two projects. */
const prepared = Effect.gen(function* () {
  const memberships = yield* MembershipStore
  yield* memberships.createProject(p1, occasion)
  yield* memberships.createProject(p2, occasion)
  return yield* ApiKeyStore
})

/** The same, with a key that opens the first project. */
const preparedKey = Effect.gen(function* () {
  const store = yield* prepared
  const key = apiKey("a token", p1)
  yield* store.add(key, occasion)
  return { key, store }
})

/** A page with all keys. */
const all = { after: undefined, limit: 1000, within: "all" } as const

/** Revokes a key. */
const revocation = ({ id }: ApiKey, at = 5) =>
  ({ ...occasion, keyId: id, at, within: "all" }) as const

/** Adds keys for all projects, the first, the second, both, and none. */
const mixed = Effect.fnUntraced(function* (store: ApiKeyStore["Service"]) {
  const keys = [
    { ...apiKey("all"), projects: "all" },
    apiKey("one", p1),
    apiKey("two", p2),
    apiKey("both", p1, p2),
    apiKey("none"),
  ] as const
  yield* Effect.forEach(keys, (key) => store.add(key, occasion))
  return keys
})

const listTests = ({ test }: StoreTests): void => {
  test("lists all keys, oldest first, and those that were revoked", function* () {
    const store = yield* prepared
    const keys = ["one", "two", "three"].map((token, at) => ({
      ...apiKey(token, p1),
      createdAt: at,
    }))
    yield* Effect.forEach(keys, (key) => store.add(key, occasion))
    yield* Effect.forEach(keys, (key) => store.revoke(revocation(key, 9)))
    expect(yield* store.list(all)).toEqual(keys.map((key) => ({ ...key, revokedAt: 9 })))
  })

  test("lists keys in pages", function* () {
    const store = yield* prepared
    const keys = ["one", "two", "three", "four", "five"].map((token) => apiKey(token, p1))
    yield* Effect.forEach(keys, (key) => store.add(key, occasion))
    const idsAfter = (after: ApiKey | undefined, limit = 2) =>
      Effect.map(store.list({ ...all, after: after?.id, limit }), (page) =>
        page.map(({ id }) => id),
      )
    const ids = keys.map(({ id }) => id)
    expect(yield* idsAfter(undefined)).toEqual(ids.slice(0, 2))
    expect(yield* idsAfter(keys[1])).toEqual(ids.slice(2, 4))
    expect(yield* idsAfter(keys[3])).toEqual(ids.slice(4))
    expect(yield* idsAfter(keys[4])).toEqual([])
  })

  test("refuses to list the keys after one that the caller may not see, as after none", function* () {
    const store = yield* prepared
    const [hidden] = yield* mixed(store)
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
    const keys = yield* mixed(store)
    const listed = yield* store.list({ ...all, within })
    expect(listed).toEqual(keys.filter((_, index) => expected.includes(index)))
    const page = yield* store.list({ ...all, limit: 2, within })
    expect(page).toEqual(listed.slice(0, 2))
  })
}

/** Declares the tests. */
export const apiKeyStoreSuite = (on: StoreTests): void => {
  const { advance, test, transactional } = on

  on.test("responds to a ping", function* () {
    yield* (yield* ApiKeyStore).ping
  })

  test("finds a key by the digest of its token, also when it has expired", function* () {
    const store = yield* prepared
    const key: ApiKey = {
      ...apiKey("a token", p1, p2),
      role: "operator",
      name: "nightly import",
      createdAt: 5,
      expiresAt: 7,
    }
    expect(yield* store.add(key, occasion)).toEqual(key)
    yield* advance(10)
    expect(yield* store.find(digestToken("a token"))).toEqual(key)
    expect(yield* store.find(digestToken("another"))).toBeUndefined()
  })

  test("finds for each of several tokens at the same time its own key", function* () {
    const store = yield* prepared
    const [first, second] = [apiKey("a token", p1), apiKey("another", p2)]
    yield* store.add(first, occasion)
    yield* store.add(second, occasion)
    const asked = ["another", "unknown", "a token", "another"]
    const found = yield* Effect.forEach(asked, (token) => store.find(digestToken(token)), {
      concurrency: "unbounded",
    })
    expect(found).toEqual([second, undefined, first, second])
  })

  test("stores nothing and fails if a project does not exist", function* () {
    const store = yield* prepared
    const key = apiKey("a token", p1, ProjectId("nowhere"))
    expect((yield* Effect.flip(store.add(key, occasion)))._tag).toBe("ProjectNotFound")
    expect(yield* store.find(key.digest)).toBeUndefined()
    yield* store.add(apiKey("a token", p1), occasion)
    const further = yield* Effect.flip(
      store.add(apiKey("a token", p2, ProjectId("nowhere")), occasion),
    )
    expect(further._tag).toBe("ProjectNotFound")
    expect((yield* store.find(key.digest))?.projects).toEqual(new Set([p1]))
  })

  test("adds the projects of a key whose token exists to the stored key, and changes nothing else", function* () {
    const store = yield* prepared
    const first = apiKey("a token", p1)
    yield* store.add(first, occasion)
    const merged = yield* store.add(
      { ...apiKey("a token", p2), name: "again", expiresAt: 9 },
      occasion,
    )
    expect(merged).toEqual({
      ...first,
      projects: new Set([p1, p2]),
    })
    expect(yield* store.find(first.digest)).toEqual(merged)
    expect(yield* store.list(all)).toEqual([merged])
  })

  test("stores a key that opens all projects, and lets a key with a known token open them", function* () {
    const store = yield* prepared
    const key: ApiKey = { ...apiKey("a token"), projects: "all" }
    expect(yield* store.add(key, occasion)).toEqual(key)
    expect(yield* store.add(apiKey("a token", p1), occasion)).toEqual(key)
    expect(yield* store.find(key.digest)).toEqual(key)
    const limited = apiKey("another", p1)
    yield* store.add(limited, occasion)
    const opened: ApiKey = { ...limited, projects: "all" }
    expect(yield* store.add({ ...apiKey("another"), projects: "all" }, occasion)).toEqual(opened)
    expect(yield* store.find(limited.digest)).toEqual(opened)
  })

  test.each([
    ["projects", { projects: new Set([p2]) }],
    ["all projects", { projects: "all" }],
  ] as const)(
    "does not let a key with a known token and another role open %s",
    function* ([_name, wider]) {
      const { key, store } = yield* preparedKey
      const error = yield* Effect.flip(
        store.add({ ...apiKey("a token"), ...wider, role: "admin" }, occasion),
      )
      expect(error).toMatchObject({ _tag: "ApiKeyConflict", keyId: key.id, role: "client" })
      expect(yield* store.find(key.digest)).toEqual(key)
    },
  )

  test("keeps every project of keys that are added concurrently for one token", function* () {
    const store = yield* prepared
    const projects = Array.from({ length: 10 }, (_, index) => ProjectId(`many-${index}`))
    const { createProject } = yield* MembershipStore
    yield* Effect.forEach(projects, (id) => createProject(id, occasion))
    const added = yield* Effect.forEach(
      projects,
      (project) => store.add(apiKey("a token", project), occasion),
      { concurrency: "unbounded" },
    )
    const stored = yield* store.find(digestToken("a token"))
    expect(stored?.projects).toEqual(new Set(projects))
    const ids = added.map((one) => (isReplayedResponse(one) ? undefined : one.id))
    expect(new Set(ids)).toEqual(new Set([stored?.id]))
  })

  test("keeps the time of the first revocation, and revokes no other key", function* () {
    const store = yield* prepared
    const key = apiKey("a token", p1)
    const other = apiKey("another", p1)
    yield* Effect.forEach([key, other], (one) => store.add(one, occasion))
    yield* store.revoke(revocation(key, 5))
    yield* store.revoke(revocation(key, 6))
    expect(yield* store.find(key.digest)).toEqual({ ...key, revokedAt: 5 })
    expect(yield* store.find(other.digest)).toEqual(other)
  })

  test("revokes a key for good, even if projects are added to it at the same time", function* () {
    const { key, store } = yield* preparedKey
    const additions = Array.from({ length: 10 }, () =>
      Effect.ignore(store.add(apiKey("a token", p2), occasion)),
    )
    const steps = [...additions.slice(0, 5), store.revoke(revocation(key)), ...additions.slice(5)]
    yield* Effect.all(steps, { concurrency: "unbounded" })
    expect((yield* store.find(key.digest))?.revokedAt).toBe(5)
  })

  test("fails to add projects to a revoked key", function* () {
    const { key, store } = yield* preparedKey
    yield* store.revoke(revocation(key))
    const wider: ApiKey = { ...apiKey("a token"), projects: "all" }
    for (const again of [apiKey("a token", p2), wider]) {
      const error = yield* Effect.flip(store.add(again, occasion))
      expect(error).toMatchObject({ _tag: "ApiKeyRevoked", keyId: key.id })
    }
    expect((yield* store.find(key.digest))?.projects).toEqual(new Set([p1]))
  })

  test("fails to revoke an unknown key", function* () {
    const store = yield* prepared
    const error = yield* Effect.flip(
      store.revoke(revocation({ ...apiKey("a token"), id: ApiKeyId("none") })),
    )
    expect(error._tag).toBe("ApiKeyNotFound")
  })

  test("revokes no key that opens other projects than the caller's", function* () {
    const store = yield* prepared
    const keys = yield* mixed(store)
    const within = new Set([p1])
    for (const key of keys) {
      yield* Effect.ignore(store.revoke({ ...revocation(key), within }))
    }
    const revoked = (yield* store.list(all)).filter(({ revokedAt }) => revokedAt !== undefined)
    expect(revoked.map(({ id }) => id)).toEqual([keys[1].id])
    const error = yield* Effect.flip(store.revoke({ ...revocation(keys[2]), within }))
    expect(error._tag).toBe("ApiKeyNotFound")
  })

  test("adds a key with an idempotency key once, and keeps none of one that it cannot add", function* () {
    const store = yield* prepared
    const keyed = { ...occasion, once: Fixture.once() }
    const role = "operator"
    yield* store.add(apiKey("a token", p1), occasion)
    yield* Effect.flip(store.add(apiKey("new", ProjectId("nowhere")), keyed))
    yield* Effect.flip(store.add({ ...apiKey("a token", p2), role }, keyed))
    const keys = Array.from({ length: 4 }, (_, index) => apiKey(`token ${index}`, p1))
    const results = yield* Effect.forEach(keys, (key) => store.add(key, keyed), {
      concurrency: "unbounded",
    })
    const [, added, ...others] = yield* store.list(all)
    expect(others).toEqual([])
    const replays = results.filter(isReplayedResponse)
    expect(replays.map(({ answer }) => answer)).toEqual([added?.id, added?.id, added?.id])
    const other = { ...occasion, once: { ...keyed.once, fingerprint: "another" } }
    const error = yield* Effect.flip(store.add(apiKey("new", p1), other))
    expect(error._tag).toBe("IdempotencyMismatch")
  })

  test("revokes a key with an idempotency key once", function* () {
    const store = yield* prepared
    const key = apiKey("a token", p1)
    const once = Fixture.once()
    yield* Effect.flip(store.revoke({ ...revocation(key), once }))
    yield* store.add(key, occasion)
    const revocations = Array.from({ length: 4 }, () => store.revoke({ ...revocation(key), once }))
    const results = yield* Effect.all(revocations, { concurrency: "unbounded" })
    expect(results.filter(isReplayedResponse)).toHaveLength(3)
    expect((yield* store.find(key.digest))?.revokedAt).toBe(5)
  })

  listTests(on)

  test("returns the names of keys, of those that have one", function* () {
    const store = yield* prepared
    const [one, other, nameless] = [apiKey("one", p1), apiKey("two", p2), apiKey("three", p1)]
    yield* store.add({ ...one, name: "nightly import" }, occasion)
    yield* store.add({ ...other, name: "shop" }, occasion)
    yield* store.add(nameless, occasion)
    yield* store.revoke(revocation(one))
    const asked = new Set([one.id, nameless.id, ApiKeyId("unknown")])
    expect(yield* store.names(asked)).toEqual(new Map([[one.id, "nightly import"]]))
    expect(yield* store.names(new Set())).toEqual(new Map())
  })

  test("records the last use of keys, and changes nothing else", function* () {
    const store = yield* prepared
    const keys = [apiKey("one", p1), apiKey("two", p1), apiKey("three", p1)] as const
    yield* Effect.forEach(keys, (key) => store.add(key, occasion))
    yield* store.touch(new Map([[keys[0].id, 7]]))
    yield* store.touch(
      new Map([
        [keys[0].id, 6],
        [keys[1].id, 8],
        [ApiKeyId("unknown"), 9],
      ]),
    )
    expect(yield* store.list(all)).toEqual([
      { ...keys[0], lastUsedAt: 7 },
      { ...keys[1], lastUsedAt: 8 },
      keys[2],
    ])
    yield* store.touch(new Map([[keys[0].id, 10]]))
    expect(yield* store.find(keys[0].digest)).toEqual({ ...keys[0], lastUsedAt: 10 })
  })

  transactional("undoes changes with a transaction of the host that fails", function* () {
    const { key, store } = yield* preparedKey
    yield* undone(store.add(apiKey("a token", p2), occasion))
    yield* undone(store.add(apiKey("another", p1), occasion))
    yield* undone(store.revoke(revocation(key)))
    expect(yield* store.list(all)).toEqual([key])
  })
}

const bounds = { lifeMillis: 60_000, most: 3 }

/** Creates a key's ticket. */
const ticketOf = (keyId: string, text: string = crypto.randomUUID()): Ticket => ({
  digest: digestToken(text),
  keyId: ApiKeyId(keyId),
  keyDigest: digestToken(`the token of ${keyId}`),
  projects: new Set([p1, p2]),
})

/** Tickets added while the clock is ahead. */
const clockTests = ({ advance, test }: StoreTests): void => {
  const day = 86_400_000

  const addedAhead = Effect.fnUntraced(function* () {
    const store = yield* TicketStore
    const tickets = Array.from({ length: bounds.most }, () => ticketOf("a key"))
    yield* advance(day)
    yield* Effect.forEach(tickets, (ticket) => store.add(ticket, bounds))
    yield* advance(-day)
    return { store, tickets }
  })

  test("lets a ticket that was added while the clock was ahead live no longer than others", function* () {
    const { store, tickets } = yield* addedAhead()
    yield* advance(bounds.lifeMillis + 1)
    for (const { digest: one } of tickets) expect(yield* store.take(one)).toBeUndefined()
  })

  test("counts tickets that were added while the clock was ahead no longer than others", function* () {
    const { store } = yield* addedAhead()
    yield* advance(bounds.lifeMillis + 1)
    const ticket = ticketOf("a key")
    yield* store.add(ticket, bounds)
    expect(yield* store.take(ticket.digest)).toEqual(ticket)
  })
}

/** Declares the tests. */
export const ticketStoreSuite = (on: StoreTests): void => {
  const { advance, test } = on

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

  test("returns a ticket to one of many who take it at the same time", function* () {
    const store = yield* TicketStore
    const ticket = ticketOf("a key")
    yield* store.add(ticket, bounds)
    const takes = Array.from({ length: 20 }, () => store.take(ticket.digest))
    const taken = yield* Effect.all(takes, { concurrency: "unbounded" })
    expect(taken.filter((one) => one !== undefined)).toEqual([ticket])
    expect(yield* store.take(ticket.digest)).toBeUndefined()
  })

  test("returns a ticket until it expires", function* () {
    const store = yield* TicketStore
    const [early, late] = [ticketOf("a key"), ticketOf("a key")]
    yield* store.add(early, bounds)
    yield* store.add(late, bounds)
    yield* advance(bounds.lifeMillis - 10_000)
    expect(yield* store.take(early.digest)).toEqual(early)
    yield* advance(10_001)
    expect(yield* store.take(late.digest)).toBeUndefined()
  })

  test("has as many tickets of a key as it may, of those that are added at the same time", function* () {
    const store = yield* TicketStore
    for (const keyId of ["1", "2", "3", "4", "5"]) {
      const adds = Array.from({ length: 20 }, () => store.add(ticketOf(keyId), bounds))
      const exits = yield* Effect.all(adds.map(Effect.exit), { concurrency: "unbounded" })
      expect(exits.filter(({ _tag }) => _tag === "Success")).toHaveLength(bounds.most)
    }
  })

  test("has as many tickets of a key as it may, of those that live", function* () {
    const store = yield* TicketStore
    const add = (keyId: string) => Effect.as(store.add(ticketOf(keyId), bounds), "added")
    const refused = { _tag: "TicketLimitReached", keyId: "a key" }
    const first = ticketOf("a key")
    yield* store.add(first, bounds)
    yield* add("a key")
    yield* add("a key")
    expect(yield* Effect.flip(add("a key"))).toMatchObject(refused)
    expect(yield* add("another")).toBe("added")
    yield* store.take(first.digest)
    expect(yield* add("a key")).toBe("added")
    expect(yield* Effect.flip(add("a key"))).toMatchObject(refused)
    yield* advance(bounds.lifeMillis + 1)
    expect(yield* add("a key")).toBe("added")
  })

  clockTests(on)
}
