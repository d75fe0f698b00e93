/** Encrypts or decrypts the secrets that the tables have. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import { Encryption } from "@tenure/core/Encryption"
import type { WebhookRef } from "@tenure/core/Outbox"
import { ProjectId } from "@tenure/core/Project"
import { WebhookId } from "@tenure/core/Webhook"
import * as Effect from "effect/Effect"
import { integer, nilUuid, uuid } from "../connection/parameters.ts"
import {
  listSecrets,
  replaceSecrets,
  replaceSecretsParams,
  type Secrets,
  type SecretsRow,
  toSecrets,
} from "./secrets.sql.ts"

/** What became of the secrets. */
export interface Rewritten {
  /** How many webhooks have secrets in another form now. */
  readonly changed: number
  /** Why the secrets of some webhooks were left as they are: one message for each webhook. */
  readonly problems: ReadonlyArray<string>
}

const batchSize = 500

/** Rewrites what is not in the current form. */
const renewed = Effect.fnUntraced(function* (owner: WebhookRef, stored: Secrets) {
  const { isCurrent, seal, secret: read, signingKey: readKey } = yield* Encryption
  const { previous, secret, signingKey } = stored
  return {
    secret: isCurrent(secret) ? secret : yield* seal(owner, yield* read(owner, secret)),
    previous:
      previous === undefined || isCurrent(previous)
        ? previous
        : yield* seal(owner, yield* read(owner, previous)),
    signingKey:
      signingKey === undefined || isCurrent(signingKey)
        ? signingKey
        : yield* seal(owner, yield* readKey(owner, signingKey)),
  } satisfies Secrets
})

const isCurrent = Effect.fnUntraced(function* ({ previous, secret, signingKey }: Secrets) {
  const encryption = yield* Encryption
  return [secret, previous, signingKey].every(
    (stored) => stored === undefined || encryption.isCurrent(stored),
  )
})

/** Rewrites the secrets of one webhook. Returns what became of them. */
const renew = Effect.fnUntraced(function* (client: PgClient, schema: string, row: SecretsRow) {
  const stored = toSecrets(row)
  if (yield* isCurrent(stored)) return "current"
  const owner = { projectId: ProjectId(row.project_id), webhookId: WebhookId(row.id) }
  const params = replaceSecretsParams(row.id, stored, yield* renewed(owner, stored))
  const replaced = yield* client.unsafe(replaceSecrets(schema), params)
  return replaced.length === 1 ? "changed" : "overtaken"
})

/**
 * Brings all secrets into the current form, each webhook in a statement of its own. A webhook that
 * somebody else changes in the meantime is looked at again.
 *
 * @param schema - the name of the schema, quoted
 */
export const rewriteSecrets = Effect.fnUntraced(function* (pool: PgClient, schema: string) {
  const client = pool.withoutTransforms()
  const problems: Array<string> = []
  let changed = 0
  let after = nilUuid
  for (;;) {
    const params = [uuid(after), integer(batchSize)]
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
