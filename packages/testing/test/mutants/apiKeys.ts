/** Stores of API keys that are wrong. */

import {
  type ApiKey,
  type ApiKeyId,
  ApiKeyStore,
  type ChangeContext,
  type ProjectId,
  type TokenDigest,
  isReplayedResponse,
} from "@tenure/core/store"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { mutantsOf } from "./Mutant.ts"

type Store = ApiKeyStore["Service"]

/** A page with all keys. */
const all = { after: undefined, limit: 1000, within: "all" } as const

/** Changes keys as they are read. */
const reading =
  (change: (key: ApiKey) => ApiKey) =>
  ({ find, list }: Pick<Store, "find" | "list">): Pick<Store, "find" | "list"> => ({
    find: (digest) => Effect.map(find(digest), (key) => key && change(key)),
    list: (page) => Effect.map(list(page), (keys) => keys.map(change)),
  })

const idsOf = (projects: ApiKey["projects"]): Iterable<ProjectId> =>
  projects === "all" ? [] : projects

/** Opens the projects of a key one by one. */
const oneByOne = Effect.fnUntraced(function* (
  add: Store["add"],
  key: ApiKey,
  occasion: ChangeContext,
) {
  let stored: Effect.Success<ReturnType<Store["add"]>> = key
  for (const project of idsOf(key.projects))
    stored = yield* add({ ...key, projects: new Set([project]) }, occasion)
  return stored
})

/** Stores of API keys that are wrong. */
export const apiKeys = mutantsOf(ApiKeyStore, {
  "ignores the idempotency keys of new keys": ({ add }) => ({
    add: (key, { once: _, ...occasion }) => add(key, occasion),
  }),

  "answers the id of a new key to an idempotency key that is known": ({ add }) => ({
    add: (key, occasion) =>
      Effect.map(add(key, occasion), (added) =>
        isReplayedResponse(added) ? { ...added, answer: key.id } : added,
      ),
  }),

  "ignores the idempotency keys of revocations": ({ revoke }) => ({
    revoke: ({ once: _, ...revocation }) => revoke(revocation),
  }),

  "rounds times to seconds": reading((key) => ({
    ...key,
    createdAt: Math.floor(key.createdAt / 1000) * 1000,
  })),

  "lists the newest first": ({ list }) => ({
    list: (page) => Effect.map(list(page), (keys) => keys.toReversed()),
  }),

  "does not list keys that were revoked": ({ list }) => ({
    list: (page) =>
      Effect.map(list(page), (keys) => keys.filter(({ revokedAt }) => revokedAt === undefined)),
  }),

  "finds the key of the latest token for those before it": ({ find }) => {
    let latest: TokenDigest
    return {
      find: (digest) => {
        latest = digest
        return Effect.andThen(
          Effect.yieldNow,
          Effect.suspend(() => find(latest)),
        )
      },
    }
  },

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
    add: (key, occasion) => Effect.as(add(key, occasion), key),
  }),

  "lets two callers each believe that theirs is the key": ({ add, find }) => ({
    add: Effect.fnUntraced(function* (key, occasion) {
      const known = yield* find(key.digest)
      yield* Effect.yieldNow
      const stored = yield* add(key, occasion)
      return known === undefined ? { ...stored, id: key.id } : stored
    }),
  }),

  "opens the projects of a new key one by one": ({ add }) => ({
    add: (key, occasion) => oneByOne(add, key, occasion),
  }),

  "opens further projects of a key one by one": ({ add, find }) => ({
    add: Effect.fnUntraced(function* (key, occasion) {
      const known = yield* find(key.digest)
      return yield* known === undefined ? add(key, occasion) : oneByOne(add, key, occasion)
    }),
  }),

  "replaces the projects of a key": ({ add, find }) => {
    const latest = new Map<TokenDigest, ApiKey["projects"]>()
    return {
      add: Effect.fnUntraced(function* (key, occasion) {
        const stored = yield* add(key, occasion)
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
      add: Effect.fnUntraced(function* (key, occasion) {
        const known = yield* find(key.digest)
        yield* Effect.yieldNow
        const stored = yield* add(key, occasion)
        merged.set(
          key.digest,
          new Set([...idsOf(known?.projects ?? new Set()), ...idsOf(key.projects)]),
        )
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
      add: Effect.fnUntraced(function* (key, occasion) {
        const known = yield* find(key.digest)
        yield* Effect.yieldNow
        return yield* Effect.catchTag(add(key, occasion), "ApiKeyRevoked", (error) => {
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
      revoke: (revocation) => {
        times.set(revocation.keyId, revocation.at)
        return revoke(revocation)
      },
      find: (digest) =>
        Effect.map(find(digest), (key) => key && { ...key, revokedAt: times.get(key.id) }),
    }
  },

  "revokes unknown keys": ({ revoke }) => ({
    revoke: (revocation) => Effect.ignore(revoke(revocation)),
  }),

  "revokes all keys of a project": ({ list, revoke }) => ({
    revoke: Effect.fnUntraced(function* (revocation) {
      yield* revoke(revocation)
      const keys = yield* list(all)
      const revoked = keys.find(({ id }) => id === revocation.keyId)
      const others = keys.filter(
        ({ projects }) =>
          String([...idsOf(projects)]) === String([...idsOf(revoked?.projects ?? "all")]),
      )
      yield* Effect.forEach(others, ({ id }) => revoke({ ...revocation, keyId: id }))
    }),
  }),

  "revokes keys that open further projects": ({ revoke }) => ({
    revoke: (revocation) => revoke({ ...revocation, within: "all" }),
  }),

  "lists keys that open further projects": ({ list }) => ({
    list: ({ after, limit, within }) =>
      Effect.map(list({ ...all, after }), (keys) =>
        keys
          .filter(
            ({ projects }) =>
              within === "all" ||
              projects === "all" ||
              [...projects].some((project) => within.has(project)),
          )
          .slice(0, limit),
      ),
  }),

  "lists keys without projects to everybody": ({ list }) => ({
    list: ({ after, limit, within }) =>
      Effect.map(list({ ...all, after }), (keys) =>
        keys
          .filter(
            ({ projects }) =>
              within === "all" ||
              (projects !== "all" && [...projects].every((project) => within.has(project))),
          )
          .slice(0, limit),
      ),
  }),

  "takes the page before it leaves out what the caller may not see": ({ list }) => ({
    list: (page) =>
      Effect.flatMap(list({ ...page, within: "all" }), (keys) =>
        Effect.map(list({ ...all, within: page.within }), (visible) =>
          visible.filter(({ id }) => keys.some((key) => key.id === id)),
        ),
      ),
  }),

  "lists more than the limit": ({ list }) => ({
    list: (page) => list({ ...page, limit: page.limit + 1 }),
  }),

  "lists nothing after a key that does not exist": ({ list }) => ({
    list: (page) => Effect.catchTag(list(page), "ApiKeyNotFound", () => Effect.succeed([])),
  }),

  "lists the keys after one that the caller may not see": ({ list }) => ({
    list: Effect.fnUntraced(function* ({ after, limit, within }) {
      const visible = new Set((yield* list({ ...all, within })).map(({ id }) => id))
      const later = yield* list({ ...all, after })
      return later.filter(({ id }) => visible.has(id)).slice(0, limit)
    }),
  }),

  "forgets the role of a key": reading((key) => ({ ...key, role: "client" })),

  "forgets the name of a key": reading((key) => ({ ...key, name: undefined })),

  "forgets that a key opens all projects": reading((key) =>
    key.projects === "all" ? { ...key, projects: new Set() } : key,
  ),

  "opens projects to a key with another role": ({ add, find }) => ({
    add: Effect.fnUntraced(function* (key, occasion) {
      const known = yield* find(key.digest)
      return yield* add({ ...key, role: known?.role ?? key.role }, occasion)
    }),
  }),

  "forgets the last use of a key": reading((key) => ({ ...key, lastUsedAt: undefined })),

  "forgets the names of keys": () => ({ names: () => Effect.succeed(new Map()) }),

  "takes the id of a key without a name for its name": ({ names }) => ({
    names: (keyIds) =>
      Effect.map(
        names(keyIds),
        (found) => new Map([...keyIds].map((id) => [id, found.get(id) ?? id])),
      ),
  }),

  "records an earlier use": ({ find, list, touch }) => {
    const uses = new Map<ApiKeyId, number>()
    const latest = (key: ApiKey) => ({ ...key, lastUsedAt: uses.get(key.id) ?? key.lastUsedAt })
    return {
      ...reading(latest)({ find, list }),
      touch: (used) => {
        for (const [id, at] of used) uses.set(id, at)
        return touch(used)
      },
    }
  },

  "takes the use of one key for that of all": ({ list, touch }) => ({
    touch: Effect.fnUntraced(function* (uses) {
      const at = Math.max(...uses.values())
      yield* touch(new Map((yield* Effect.orDie(list(all))).map(({ id }) => [id, at])))
    }),
  }),
})
