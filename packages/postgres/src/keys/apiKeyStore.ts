/** API keys on PostgreSQL. */

import { ApiKeyNotFound, ApiKeyRevoked } from "@tenure/core/ApiKey"
import type { ApiKeyStore } from "@tenure/core/ApiKeyStore"
import { ProjectNotFound } from "@tenure/core/Project"
import * as Effect from "effect/Effect"
import type { Executor } from "../connection/Executor.ts"
import { instant, text } from "../connection/parameters.ts"
import { type AddedRow, addKey, addKeyParams } from "./addKey.sql.ts"
import { findKey } from "./findKey.sql.ts"
import { type KeyRow, toKey } from "./fragments.sql.ts"
import { listKeys } from "./listKeys.sql.ts"
import { revokeKey } from "./revokeKey.sql.ts"

/** Makes the store. */
export const make = (executor: Executor): ApiKeyStore["Service"] => {
  const { schema } = executor
  const sql = {
    add: addKey(schema),
    find: findKey(schema),
    list: listKeys(schema),
    revoke: revokeKey(schema),
  }
  return {
    ping: executor.ping,

    add: Effect.fnUntraced(function* (key) {
      const [row] = yield* executor.execute<AddedRow>(sql.add, addKeyParams(key))
      if (row === undefined) return yield* Effect.die("adding a key returned no row")
      if (row.missing !== null) return yield* new ProjectNotFound({ projectId: row.missing })
      const added = toKey(row)
      return added.revokedAt === undefined ? added : yield* new ApiKeyRevoked({ keyId: added.id })
    }),

    // Authenticates requests, so it does not depend on the host's open transaction.
    find: Effect.fnUntraced(function* (digest) {
      const [row] = yield* executor.executeApart<KeyRow>(sql.find, [text(digest)], {
        owner: "keys",
      })
      return row && toKey(row)
    }),

    revoke: Effect.fnUntraced(function* (keyId, at) {
      const rows = yield* executor.execute(sql.revoke, [text(keyId), instant(at)])
      if (rows.length === 0) return yield* new ApiKeyNotFound({ keyId })
    }),

    list: Effect.map(
      Effect.suspend(() => executor.execute<KeyRow>(sql.list, [])),
      (rows) => rows.map(toKey),
    ),
  }
}
