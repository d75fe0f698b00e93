/** API keys on PostgreSQL. */

import {
  type ApiKey,
  ApiKeyId,
  ApiKeyNotFound,
  ApiKeyRevoked,
  TokenDigest,
} from "@tenure/core/ApiKey"
import type { ApiKeyStore } from "@tenure/core/ApiKeyStore"
import { ProjectId, ProjectNotFound } from "@tenure/core/Project"
import * as Effect from "effect/Effect"
import * as Statements from "../statements/apiKeys.ts"
import type { Database } from "./database.ts"
import { instant, text, texts } from "./parameters.ts"

interface KeyRow {
  readonly id: string
  readonly digest: string
  readonly projects: ReadonlyArray<string>
  readonly created_at: Date
  readonly expires_at: Date | null
  readonly revoked_at: Date | null
}

const millis = (date: Date | null): number | undefined => (date === null ? undefined : Number(date))

const toKey = (row: KeyRow): ApiKey => ({
  id: ApiKeyId(row.id),
  digest: TokenDigest(row.digest),
  projects: new Set(row.projects.map(ProjectId)),
  createdAt: Number(row.created_at),
  expiresAt: millis(row.expires_at),
  revokedAt: millis(row.revoked_at),
})

/** Makes the store. */
export const make = (database: Database): ApiKeyStore["Service"] => {
  const { schema } = database
  const sql = {
    add: Statements.addKey(schema),
    find: Statements.findKey(schema),
    list: Statements.listKeys(schema),
    revoke: Statements.revokeKey(schema),
  }
  return {
    add: Effect.fnUntraced(function* (key) {
      const [row] = yield* database.join<KeyRow & { readonly missing: string | null }>(sql.add, [
        text(key.id),
        text(key.digest),
        instant(key.createdAt),
        instant(key.expiresAt),
        instant(key.revokedAt),
        texts([...key.projects]),
      ])
      if (row === undefined) return yield* Effect.die("a key was neither added nor refused")
      if (row.missing !== null) return yield* new ProjectNotFound({ projectId: row.missing })
      const added = toKey(row)
      return added.revokedAt === undefined ? added : yield* new ApiKeyRevoked({ keyId: added.id })
    }),

    // Looked up in each request, whatever the host is in the middle of.
    find: Effect.fnUntraced(function* (digest) {
      const [row] = yield* database.query<KeyRow>(sql.find, [text(digest)])
      return row && toKey(row)
    }),

    revoke: Effect.fnUntraced(function* (keyId, at) {
      const rows = yield* database.join(sql.revoke, [text(keyId), instant(at)])
      if (rows.length === 0) return yield* new ApiKeyNotFound({ keyId })
    }),

    list: Effect.map(
      Effect.suspend(() => database.join<KeyRow>(sql.list, [])),
      (rows) => rows.map(toKey),
    ),
  }
}
