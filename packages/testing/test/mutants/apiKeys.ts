/** Stores of API keys that are wrong. */

import type { ApiKey, ApiKeyId, TokenDigest } from "@tenure/core/ApiKey"
import { ApiKeyStore } from "@tenure/core/ApiKeyStore"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { mutantsOf } from "./Mutant.ts"

type Store = ApiKeyStore["Service"]

/** Changes keys as they are read. */
const reading =
  (change: (key: ApiKey) => ApiKey) =>
  ({ find, list }: Store): Partial<Store> => ({
    find: (digest) => Effect.map(find(digest), (key) => key && change(key)),
    list: Effect.map(list, (keys) => keys.map(change)),
  })

/** Opens the projects of a key one by one. */
const oneByOne = Effect.fnUntraced(function* (add: Store["add"], key: ApiKey) {
  let stored = key
  for (const project of key.projects) stored = yield* add({ ...key, projects: new Set([project]) })
  return stored
})

/** Stores of API keys that are wrong. */
export const apiKeys = mutantsOf(ApiKeyStore, {
  "rounds times to seconds": reading((key) => ({
    ...key,
    createdAt: Math.floor(key.createdAt / 1000) * 1000,
  })),

  "lists the newest first": ({ list }) => ({
    list: Effect.map(list, (keys) => keys.toReversed()),
  }),

  "does not list keys that were revoked": ({ list }) => ({
    list: Effect.map(list, (keys) => keys.filter(({ revokedAt }) => revokedAt === undefined)),
  }),

  "does not find keys that were revoked": ({ find }) => ({
    find: (digest) =>
      Effect.map(find(digest), (key) => (key?.revokedAt === undefined ? key : undefined)),
  }),

  "does not find keys that have expired": ({ find }) => ({
    find: Effect.fnUntraced(function* (digest) {
      const key = yield* find(digest)
      const now = yield* Clock.currentTimeMillis
      return (key?.expiresAt ?? Infinity) <= now ? undefined : key
    }),
  }),

  "returns a key as it was given": ({ add }) => ({
    add: (key) => Effect.as(add(key), key),
  }),

  "lets two callers each believe that theirs is the key": ({ add, find }) => ({
    add: Effect.fnUntraced(function* (key) {
      const known = yield* find(key.digest)
      yield* Effect.yieldNow
      const stored = yield* add(key)
      return known === undefined ? { ...stored, id: key.id } : stored
    }),
  }),

  "opens the projects of a new key one by one": ({ add }) => ({
    add: (key) => oneByOne(add, key),
  }),

  "opens further projects of a key one by one": ({ add, find }) => ({
    add: Effect.fnUntraced(function* (key) {
      const known = yield* find(key.digest)
      return yield* known === undefined ? add(key) : oneByOne(add, key)
    }),
  }),

  "replaces the projects of a key": ({ add, find }) => {
    const latest = new Map<TokenDigest, ApiKey["projects"]>()
    return {
      add: Effect.fnUntraced(function* (key) {
        const stored = yield* add(key)
        latest.set(key.digest, key.projects)
        return { ...stored, projects: key.projects }
      }),
      find: (digest) =>
        Effect.map(
          find(digest),
          (key) => key && { ...key, projects: latest.get(digest) ?? key.projects },
        ),
    }
  },

  "reads the projects of a key before its turn": ({ add, find }) => {
    const merged = new Map<TokenDigest, ApiKey["projects"]>()
    return {
      add: Effect.fnUntraced(function* (key) {
        const known = yield* find(key.digest)
        yield* Effect.yieldNow
        const stored = yield* add(key)
        merged.set(key.digest, new Set([...(known?.projects ?? []), ...key.projects]))
        return stored
      }),
      find: (digest) =>
        Effect.map(
          find(digest),
          (key) => key && { ...key, projects: merged.get(digest) ?? key.projects },
        ),
    }
  },

  "reads whether a key was revoked before its turn": ({ add, find }) => {
    const revived = new Set<TokenDigest>()
    return {
      add: Effect.fnUntraced(function* (key) {
        const known = yield* find(key.digest)
        yield* Effect.yieldNow
        return yield* Effect.catchTag(add(key), "ApiKeyRevoked", (error) => {
          if (known === undefined || known.revokedAt !== undefined) return Effect.fail(error)
          revived.add(key.digest)
          return Effect.succeed(known)
        })
      }),
      find: (digest) =>
        Effect.map(find(digest), (key) =>
          key && revived.has(digest) ? { ...key, revokedAt: undefined } : key,
        ),
    }
  },

  "keeps the time of the last revocation": ({ find, revoke }) => {
    const times = new Map<ApiKeyId, number>()
    return {
      revoke: (keyId, at) => {
        times.set(keyId, at)
        return revoke(keyId, at)
      },
      find: (digest) =>
        Effect.map(find(digest), (key) => key && { ...key, revokedAt: times.get(key.id) }),
    }
  },

  "revokes unknown keys": ({ revoke }) => ({
    revoke: (keyId, at) => Effect.ignore(revoke(keyId, at)),
  }),

  "revokes all keys of a project": ({ list, revoke }) => ({
    revoke: Effect.fnUntraced(function* (keyId, at) {
      yield* revoke(keyId, at)
      const keys = yield* list
      const revoked = keys.find(({ id }) => id === keyId)
      const others = keys.filter(({ projects }) =>
        [...projects].some((project) => revoked?.projects.has(project)),
      )
      yield* Effect.forEach(others, ({ id }) => revoke(id, at))
    }),
  }),
})
