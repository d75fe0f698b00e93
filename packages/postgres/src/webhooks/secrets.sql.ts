import { StoredSecret } from "@tenure/core/StoredSecret"
import { text, uuid } from "../connection/parameters.ts"

/** Returns the secrets of the next `$2` webhooks after the id `$1`, of all projects. */
export const listSecrets = (schema: string): string => `
  SELECT w.id, p.id AS project_id, w.secret, w.previous_secret, w.signing_key
  FROM ${schema}.webhooks w
  JOIN ${schema}.projects p ON p.number = w.project_number
  WHERE w.id > $1::uuid ORDER BY w.id LIMIT $2::integer
`

/** A row of `listSecrets`. */
export interface SecretsRow {
  readonly id: string
  readonly project_id: string
  readonly secret: string
  readonly previous_secret: string | null
  readonly signing_key: string | null
}

/** The secrets of one webhook. */
export interface Secrets {
  readonly secret: StoredSecret
  readonly previous: StoredSecret | undefined
  readonly signingKey: StoredSecret | undefined
}

const orNone = (column: string | null): StoredSecret | undefined =>
  column === null ? undefined : StoredSecret(column)

/** Converts a row. */
export const toSecrets = (row: SecretsRow): Secrets => ({
  secret: StoredSecret(row.secret),
  previous: orNone(row.previous_secret),
  signingKey: orNone(row.signing_key),
})

/** Replaces the secrets of a webhook, unless they have changed. Returns one row if it replaced them. */
export const replaceSecrets = (schema: string): string => `
  UPDATE ${schema}.webhooks
  SET secret = $5::text, previous_secret = $6::text, signing_key = $7::text
  WHERE id = $1::uuid AND secret = $2::text AND previous_secret IS NOT DISTINCT FROM $3::text
    AND signing_key IS NOT DISTINCT FROM $4::text
  RETURNING id
`

const columns = ({ previous, secret, signingKey }: Secrets) => [
  text(secret),
  text(previous),
  text(signingKey),
]

/** The parameters of `replaceSecrets`. */
export const replaceSecretsParams = (id: string, before: Secrets, after: Secrets) => [
  uuid(id),
  ...columns(before),
  ...columns(after),
]
