/** What every `ApiKeyStore` must do. */

import { expect } from "@effect/vitest"
import { ApiKeyId, digest } from "@tenure/core/ApiKey"
import { ApiKeyStore } from "@tenure/core/ApiKeyStore"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { ProjectId } from "@tenure/core/Project"
import * as Effect from "effect/Effect"
import * as Fixture from "../support/fixtures.ts"
import type { StoreTests } from "./storeTests.ts"

const { apiKey, p1, p2 } = Fixture

/** A store with two projects. */
const prepared = Effect.gen(function* () {
  const memberships = yield* MembershipStore
  yield* memberships.createProject(p1)
  yield* memberships.createProject(p2)
  return yield* ApiKeyStore
})

const addTests = ({ test }: StoreTests): void => {
  test("finds a key by the digest of its token", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      const key = { ...apiKey("a token", p1, p2), createdAt: 5, expiresAt: 7 }
      expect(yield* store.add(key)).toEqual(key)
      expect(yield* store.find(digest("a token"))).toEqual(key)
      expect(yield* store.find(digest("another"))).toBeUndefined()
    }))

  test("stores nothing and fails if a project does not exist", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      const key = apiKey("a token", p1, ProjectId("nowhere"))
      expect((yield* Effect.flip(store.add(key)))._tag).toBe("ProjectNotFound")
      expect(yield* store.find(key.digest)).toBeUndefined()
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
      yield* Effect.forEach(projects, (project) => store.add(apiKey("a token", project)), {
        concurrency: "unbounded",
      })
      expect((yield* store.find(digest("a token")))?.projects).toEqual(new Set(projects))
    }))
}

const revocationTests = ({ test }: StoreTests): void => {
  test("keeps the time of the first revocation", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      const key = apiKey("a token", p1)
      yield* store.add(key)
      yield* store.revoke(key.id, 5)
      yield* store.revoke(key.id, 6)
      expect(yield* store.find(key.digest)).toEqual({ ...key, revokedAt: 5 })
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

  test("lists all keys, oldest first", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      const keys = ["one", "two", "three"].map((token, at) => ({
        ...apiKey(token, p1),
        createdAt: at,
      }))
      yield* Effect.forEach(keys, store.add)
      expect(yield* store.list).toEqual(keys)
    }))
}

/** Declares the tests. */
export const apiKeyStoreSuite = (on: StoreTests): void => {
  on.test("responds to a ping", () => ApiKeyStore.use((store) => store.ping))
  addTests(on)
  revocationTests(on)
}
