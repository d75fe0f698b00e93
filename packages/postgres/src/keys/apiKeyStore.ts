/** API keys on PostgreSQL. */

import { ApiKeyConflict, ApiKeyNotFound, ApiKeyRevoked } from "@tenure/core/ApiKey"
import type { ApiKeyStore } from "@tenure/core/ApiKeyStore"
import { ProjectNotFound } from "@tenure/core/Project"
import * as Effect from "effect/Effect"
import type { Executor } from "../connection/Executor.ts"
import { instant, instants, integer, text, texts } from "../connection/parameters.ts"
import { type AddedRow, addKey, addKeyParams } from "./addKey.sql.ts"
import { findKey } from "./findKey.sql.ts"
import { type KeyRow, toKey, withinParam } from "./fragments.sql.ts"
import { listKeys } from "./listKeys.sql.ts"
import { revokeKey } from "./revokeKey.sql.ts"
import { touchKeys } from "./touchKeys.sql.ts"

/** Makes the store. */
export const make = (executor: Executor): ApiKeyStore["Service"] => {
  const { schema } = executor
  const sql = {
    add: addKey(schema),
    find: findKey(schema),
    list: listKeys(schema),
    revoke: revokeKey(schema),
    touch: touchKeys(schema),
  }
  return {
    ping: executor.ping,

    add: Effect.fnUntraced(function* (key) {
      const [row] = yield* executor.execute<AddedRow>(sql.add, addKeyParams(key))
      if (row === undefined) return yield* Effect.die("adding a key returned no row")
      if (row.missing !== null) return yield* new ProjectNotFound({ projectId: row.missing })
      const added = toKey(row)
      const { id, revokedAt, role } = added
      if (revokedAt !== undefined) return yield* new ApiKeyRevoked({ keyId: id })
      return role === key.role ? added : yield* new ApiKeyConflict({ keyId: id, role })
    }),

    // Authenticates requests, so it does not depend on the host's open transaction.
    find: Effect.fnUntraced(function* (digest) {
      const [row] = yield* executor.executeApart<KeyRow>(sql.find, [text(digest)], {
        owner: "keys",
      })
      return row && toKey(row)
    }),

    revoke: Effect.fnUntraced(function* ({ at, keyId, within }) {
      const params = [text(keyId), instant(at), withinParam(within)]
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
}
