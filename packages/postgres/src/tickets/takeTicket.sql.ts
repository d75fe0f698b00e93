import { ApiKeyId, TokenDigest } from "@tenure/core/ApiKey"
import type { Ticket } from "@tenure/core/Ticket"
import { jsonOf } from "../connection/results.ts"
import { projectsIn } from "../keys/fragments.sql.ts"
import { isAlive } from "./addTicket.sql.ts"

/** Deletes a ticket. Returns it, and whether it was alive. */
export const takeTicket = (schema: string): string => `
  DELETE FROM ${schema}.tickets t WHERE t.digest = $1::text
  RETURNING t.digest, t.key_id, t.key_digest, ${jsonOf("t.projects")} AS projects,
            ${isAlive} AS is_alive
`

/** The row of `takeTicket`. */
export interface TicketRow {
  readonly digest: string
  readonly key_id: string
  readonly key_digest: string | null
  /** An array of text as JSON; `null` for all projects. */
  readonly projects: string | null
  readonly is_alive: boolean
}

/** Converts a row to a ticket. */
export const toTicket = (row: TicketRow): Ticket => ({
  digest: TokenDigest(row.digest),
  keyId: ApiKeyId(row.key_id),
  keyDigest: row.key_digest === null ? undefined : TokenDigest(row.key_digest),
  projects: row.projects === null ? "all" : projectsIn(row.projects),
})
