/** API keys on PostgreSQL. */

import {
  ApiKeyConflict,
  ApiKeyNotFound,
  ApiKeyRevoked,
  type TokenDigest,
} from "@tenure/core/ApiKey"
import type { ApiKeyStore } from "@tenure/core/ApiKeyStore"
import { ProjectNotFound } from "@tenure/core/Project"
import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { occasionParams } from "../audit/fragments.sql.ts"
import type { Executor } from "../connection/Executor.ts"
import * as Gather from "../connection/Gather.ts"
import { instants, integer, text, texts } from "../connection/parameters.ts"
import { type AddedRow, addKey, addKeyParams } from "./addKey.sql.ts"
import { findKeys } from "./findKeys.sql.ts"
import { type KeyRow, toKey, withinParam } from "./fragments.sql.ts"
import { listKeys } from "./listKeys.sql.ts"
import { revokeKey } from "./revokeKey.sql.ts"
import { touchKeys } from "./touchKeys.sql.ts"

/** Makes the store. */
export const make = Effect.fnUntraced(function* (executor: Executor) {
  const { schema } = executor
  const sql = {
    add: addKey(schema),
    find: findKeys(schema),
    list: listKeys(schema),
    revoke: revokeKey(schema),
    touch: touchKeys(schema),
  }

  const findMany = (digests: ReadonlyArray<TokenDigest>) =>
    // Authenticates requests, so it does not depend on the host's open transaction.
    Effect.map(
      executor.executeApart<KeyRow>(sql.find, [texts(digests)], { owner: "keys" }),
      (rows) => {
        const keys = new Map(rows.map((row) => [row.digest, toKey(row)]))
        return digests.map((digest) => Option.fromUndefinedOr(keys.get(digest)))
      },
    )

  const findGathered = yield* Gather.make({
    run: findMany,
    isOwn: () => false,
    maxBatch: 256,
    maxInFlight: 2,
    crowded: new StoreUnavailable({ cause: "crowded" }),
  })

  const store: ApiKeyStore["Service"] = {
    ping: executor.ping,

    add: Effect.fnUntraced(function* (key, occasion) {
      const [row] = yield* executor.execute<AddedRow>(sql.add, addKeyParams(key, occasion))
      if (row === undefined) return yield* Effect.die("adding a key returned no row")
      if (row.missing !== null) return yield* new ProjectNotFound({ projectId: row.missing })
      const added = toKey(row)
      const { id, revokedAt, role } = added
      if (revokedAt !== undefined) return yield* new ApiKeyRevoked({ keyId: id })
      return role === key.role ? added : yield* new ApiKeyConflict({ keyId: id, role })
    }),

    find: (digest) => Effect.map(findGathered(digest), Option.getOrUndefined),

    revoke: Effect.fnUntraced(function* ({ keyId, within, ...occasion }) {
      const params = [text(keyId), withinParam(within), ...occasionParams(occasion)]
      const rows = yield* executor.execute(sql.revoke, params)
      if (rows.length === 0) return yield* new ApiKeyNotFound({ keyId })
    }),

    touch: (uses) =>
      executor.executeApart(sql.touch, [texts([...uses.keys()]), instants([...uses.values()])], {
        owner: "keys",
        isBrief: true,
      }),

    list: ({ after, limit, within }) =>
      Effect.map(
        executor.execute<KeyRow>(sql.list, [text(after), integer(limit), withinParam(within)]),
        (rows) => rows.map(toKey),
      ),
  }
  return store
})
