/** Encrypts or decrypts all stored webhook secrets. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import { Encryption, formatHeaders } from "@tenure/core/internal"
import { ProjectId, StoredSecret, WebhookId, type WebhookRef } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { integerParam, nilUuid, textParam, uuidParam } from "./sql/values.ts"

/** Returns the secrets for the next `$2` webhooks after the id `$1`, in all projects. */
const listSecrets = (schema: string): string => `
  SELECT w.id, p.id AS project_id, w.secret, w.previous_secret, w.signing_key, w.headers
  FROM ${schema}.webhooks w
  JOIN ${schema}.projects p ON p.number = w.project_number
  WHERE w.id > $1::uuid ORDER BY w.id LIMIT $2::integer
`

/** A row from `listSecrets`. */
export interface SecretsRow {
  readonly id: string
  readonly project_id: string
  readonly secret: string
  readonly previous_secret: string | null
  readonly signing_key: string | null
  readonly headers: string | null
}

/** One webhook's secrets. */
interface WebhookSecrets {
  readonly secret: StoredSecret
  readonly previous: StoredSecret | undefined
  readonly signingKey: StoredSecret | undefined
  readonly headers: StoredSecret | undefined
}

const orNone = (column: string | null): StoredSecret | undefined =>
  column === null ? undefined : StoredSecret(column)

/** Converts a row. */
const toSecrets = (row: SecretsRow): WebhookSecrets => ({
  secret: StoredSecret(row.secret),
  previous: orNone(row.previous_secret),
  signingKey: orNone(row.signing_key),
  headers: orNone(row.headers),
})

/** Replaces a webhook's secrets, unless they have changed. Returns one row if it replaced them. */
const replaceSecrets = (schema: string): string => `
  UPDATE ${schema}.webhooks
  SET secret = $6::text, previous_secret = $7::text, signing_key = $8::text, headers = $9::text
  WHERE id = $1::uuid AND (secret, previous_secret, signing_key, headers)
    IS NOT DISTINCT FROM ($2::text, $3::text, $4::text, $5::text)
  RETURNING id
`

const columns = ({ headers, previous, secret, signingKey }: WebhookSecrets) => [
  textParam(secret),
  textParam(previous),
  textParam(signingKey),
  textParam(headers),
]

/** The parameters for `replaceSecrets`. */
const replaceSecretsParams = (id: string, before: WebhookSecrets, after: WebhookSecrets) => [
  uuidParam(id),
  ...columns(before),
  ...columns(after),
]

/** The result of rewriting secrets. */
export interface Rewritten {
  /** The number of webhooks whose secrets changed their form. */
  readonly changed: number
  /** Why some webhooks' secrets stayed as they were: one message for each webhook. */
  readonly problems: ReadonlyArray<string>
}

const batchSize = 500

/** Rewrites the secrets that are not in the current form. */
const renewed = Effect.fnUntraced(function* (owner: WebhookRef, stored: WebhookSecrets) {
  const { isCurrent, seal, ...read } = yield* Encryption
  const { headers, previous, secret, signingKey } = stored
  return {
    secret: isCurrent(secret) ? secret : yield* seal(owner, yield* read.secret(owner, secret)),
    previous:
      previous === undefined || isCurrent(previous)
        ? previous
        : yield* seal(owner, yield* read.secret(owner, previous)),
    signingKey:
      signingKey === undefined || isCurrent(signingKey)
        ? signingKey
        : yield* seal(owner, yield* read.signingKey(owner, signingKey)),
    headers:
      headers === undefined || isCurrent(headers)
        ? headers
        : yield* seal(owner, formatHeaders(yield* read.headers(owner, headers))),
  } satisfies WebhookSecrets
})

const isCurrent = Effect.fnUntraced(function* ({
  headers,
  previous,
  secret,
  signingKey,
}: WebhookSecrets) {
  const encryption = yield* Encryption
  return [secret, previous, signingKey, headers].every(
    (stored) => stored === undefined || encryption.isCurrent(stored),
  )
})

/** Rewrites one webhook's secrets. Returns the outcome. */
const renew = Effect.fnUntraced(function* (client: PgClient, schema: string, row: SecretsRow) {
  const stored = toSecrets(row)
  if (yield* isCurrent(stored)) return "current"
  const owner = { projectId: ProjectId(row.project_id), webhookId: WebhookId(row.id) }
  const params = replaceSecretsParams(row.id, stored, yield* renewed(owner, stored))
  const replaced = yield* client.unsafe(replaceSecrets(schema), params)
  return replaced.length === 1 ? "changed" : "overtaken"
})

/**
 * Brings all secrets into the current form, with one statement for each webhook. If a webhook changes in the
 * meantime, it is tried again.
 *
 * @param schema - the name of the schema, quoted
 */
export const rewriteAllSecrets = Effect.fnUntraced(function* (pool: PgClient, schema: string) {
  const client = pool.withoutTransforms()
  const problems: Array<string> = []
  let changed = 0
  let after = nilUuid
  for (;;) {
    const params = [uuidParam(after), integerParam(batchSize)]
    const rows = yield* client.unsafe<SecretsRow>(listSecrets(schema), params)
    if (rows.length === 0) return { changed, problems } satisfies Rewritten
    for (const row of rows) {
      const result = yield* renew(client, schema, row).pipe(
        Effect.catchTag("SecretUnreadable", ({ message }) =>
          Effect.sync(() => {
            problems.push(message)
            return "unreadable" as const
          }),
        ),
      )
      if (result === "overtaken") break
      if (result === "changed") changed++
      after = row.id
    }
  }
})
