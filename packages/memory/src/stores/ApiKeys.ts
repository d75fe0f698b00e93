/** API keys in memory. */

import { type ApiKey, ApiKeyNotFound, ApiKeyRevoked, type TokenDigest } from "@tenure/core/ApiKey"
import type { ApiKeyStore } from "@tenure/core/ApiKeyStore"
import * as Effect from "effect/Effect"
import * as State from "../State.ts"

/** Makes the store. */
export const make = (state: State.State): ApiKeyStore["Service"] => {
  const keys = new Map<TokenDigest, ApiKey>()

  const put = (key: ApiKey): ApiKey => {
    keys.set(key.digest, key)
    return key
  }

  return {
    ping: Effect.void,

    add: Effect.fnUntraced(function* (key) {
      yield* Effect.forEach(key.projects, (id) => State.projectOf(state, id), { discard: true })
      const known = keys.get(key.digest)
      if (known?.revokedAt !== undefined) return yield* new ApiKeyRevoked({ keyId: known.id })
      return known === undefined
        ? put(key)
        : put({ ...known, projects: new Set([...known.projects, ...key.projects]) })
    }),

    find: (digest) => Effect.sync(() => keys.get(digest)),

    revoke: (keyId, at) =>
      Effect.suspend(() => {
        const key = [...keys.values()].find(({ id }) => id === keyId)
        if (key === undefined) return Effect.fail(new ApiKeyNotFound({ keyId }))
        put({ ...key, revokedAt: key.revokedAt ?? at })
        return Effect.void
      }),

    list: Effect.sync(() => [...keys.values()]),
  }
}
