/** What every `ApiKeyStore` must do. */

import { expect } from "@effect/vitest"
import { ApiKeyId, digest } from "@tenure/core/ApiKey"
import { ApiKeyStore } from "@tenure/core/ApiKeyStore"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { ProjectId } from "@tenure/core/Project"
import * as Effect from "effect/Effect"
import * as Fixture from "../support/fixtures.ts"
import { undone } from "./HostTransaction.ts"
import type { StoreTests } from "./storeTests.ts"

const { apiKey, p1, p2 } = Fixture

/** A store with two projects. */
const prepared = Effect.gen(function* () {
  const memberships = yield* MembershipStore
  yield* memberships.createProject(p1)
  yield* memberships.createProject(p2)
  return yield* ApiKeyStore
})

const addTests = ({ advance, test }: StoreTests): void => {
  test("finds a key by the digest of its token, also when it has expired", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      const key = { ...apiKey("a token", p1, p2), createdAt: 5, expiresAt: 7 }
      expect(yield* store.add(key)).toEqual(key)
      yield* advance(10)
      expect(yield* store.find(digest("a token"))).toEqual(key)
      expect(yield* store.find(digest("another"))).toBeUndefined()
    }))

  test("stores nothing and fails if a project does not exist", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      const key = apiKey("a token", p1, ProjectId("nowhere"))
      expect((yield* Effect.flip(store.add(key)))._tag).toBe("ProjectNotFound")
      expect(yield* store.find(key.digest)).toBeUndefined()
      yield* store.add(apiKey("a token", p1))
      const further = yield* Effect.flip(store.add(apiKey("a token", p2, ProjectId("nowhere"))))
      expect(further._tag).toBe("ProjectNotFound")
      expect((yield* store.find(key.digest))?.projects).toEqual(new Set([p1]))
    }))

  test("adds the projects of a key whose token exists to the stored key, and changes nothing else", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      const first = apiKey("a token", p1)
      yield* store.add(first)
      const merged = yield* store.add({ ...apiKey("a token", p2), expiresAt: 9 })
      expect(merged).toEqual({ ...first, projects: new Set([p1, p2]) })
      expect(yield* store.find(first.digest)).toEqual(merged)
      expect(yield* store.list).toEqual([merged])
    }))

  test("keeps every project of keys that are added concurrently for one token", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      const projects = Array.from({ length: 10 }, (_, index) => ProjectId(`many-${index}`))
      yield* Effect.forEach(projects, (yield* MembershipStore).createProject)
      const added = yield* Effect.forEach(
        projects,
        (project) => store.add(apiKey("a token", project)),
        { concurrency: "unbounded" },
      )
      const stored = yield* store.find(digest("a token"))
      expect(stored?.projects).toEqual(new Set(projects))
      expect(new Set(added.map(({ id }) => id))).toEqual(new Set([stored?.id]))
    }))
}

const revocationTests = ({ test }: StoreTests): void => {
  test("keeps the time of the first revocation, and revokes no other key", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      const key = apiKey("a token", p1)
      const other = apiKey("another", p1)
      yield* Effect.forEach([key, other], store.add)
      yield* store.revoke(key.id, 5)
      yield* store.revoke(key.id, 6)
      expect(yield* store.find(key.digest)).toEqual({ ...key, revokedAt: 5 })
      expect(yield* store.find(other.digest)).toEqual(other)
    }))

  test("revokes a key for good, even if projects are added to it at the same time", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      const key = apiKey("a token", p1)
      yield* store.add(key)
      const additions = Array.from({ length: 10 }, () =>
        Effect.ignore(store.add(apiKey("a token", p2))),
      )
      const all = [...additions.slice(0, 5), store.revoke(key.id, 5), ...additions.slice(5)]
      yield* Effect.all(all, { concurrency: "unbounded" })
      expect((yield* store.find(key.digest))?.revokedAt).toBe(5)
    }))

  test("fails to add projects to a revoked key", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      const key = apiKey("a token", p1)
      yield* store.add(key)
      yield* store.revoke(key.id, 5)
      const error = yield* Effect.flip(store.add(apiKey("a token", p2)))
      expect(error).toMatchObject({ _tag: "ApiKeyRevoked", keyId: key.id })
      expect((yield* store.find(key.digest))?.projects).toEqual(new Set([p1]))
    }))

  test("fails to revoke an unknown key", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      const error = yield* Effect.flip(store.revoke(ApiKeyId("no such key"), 5))
      expect(error._tag).toBe("ApiKeyNotFound")
    }))

  test("lists all keys, oldest first, and those that were revoked", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      const keys = ["one", "two", "three"].map((token, at) => ({
        ...apiKey(token, p1),
        createdAt: at,
      }))
      yield* Effect.forEach(keys, store.add)
      yield* Effect.forEach(keys, ({ id }) => store.revoke(id, 9))
      expect(yield* store.list).toEqual(keys.map((key) => ({ ...key, revokedAt: 9 })))
    }))
}

const transactionTests = ({ transactional }: StoreTests): void => {
  transactional("undoes changes with a transaction of the host that fails", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      const key = apiKey("a token", p1)
      yield* store.add(key)
      yield* undone(store.add(apiKey("a token", p2)))
      yield* undone(store.add(apiKey("another", p1)))
      yield* undone(store.revoke(key.id, 5))
      expect(yield* store.list).toEqual([key])
    }),
  )
}

/** Declares the tests. */
export const apiKeyStoreSuite = (on: StoreTests): void => {
  on.test("responds to a ping", () => ApiKeyStore.use((store) => store.ping))
  addTests(on)
  revocationTests(on)
  transactionTests(on)
}
