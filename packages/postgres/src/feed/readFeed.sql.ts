import { type Event, EventId, EventType } from "@tenure/core/Event"
import type { PageSize } from "@tenure/core/FeedStore"
import { ProjectId } from "@tenure/core/Project"
import { integer, text, texts, uuid } from "../connection/parameters.ts"
import type { Place } from "./Place.ts"
import * as Snapshot from "./Snapshot.ts"

/** Reads the next events of projects; see the function. */
export const readFeed = (schema: string): string => `
  SELECT * FROM ${schema}.read_feed(
    $1, $2::text::pg_snapshot, $3::text::pg_snapshot, $4::text::xid8, $5, $6, $7
  )
`

/**
 * Writes to disk that all numbers of transactions are used until now. Returns the last one. It needs no
 * table, so that everybody may.
 */
export const useNumbers = `
  SELECT pg_current_xact_id()::text AS xid, pg_logical_emit_message(true, 'tenure', '')::text
  FROM (SELECT set_config('synchronous_commit', 'on', true)) s
`

/** The parameters of `readFeed`. */
export const readFeedParams = (
  projects: ReadonlyArray<ProjectId>,
  { base, within }: Place,
  size: PageSize,
) => [
  texts(projects),
  text(Snapshot.format(base.snapshot)),
  text(within && Snapshot.format(within.until.snapshot)),
  text(within?.xid.toString()),
  uuid(within?.id),
  integer(size.events),
  integer(size.bytes),
]

/** A row of `readFeed`, which may have no event. */
export interface FeedRow {
  readonly snapshot: string
  readonly read_at: Date
  readonly epoch: string
  readonly found: number
  readonly used: string | null
  readonly xid: string | null
  readonly id: string
  readonly project_id: string
  readonly type: string
  readonly at: Date
  readonly body: string
}

/** Converts a row that has an event. */
export const toEvent = (row: FeedRow): Event => ({
  id: EventId(row.id),
  projectId: ProjectId(row.project_id),
  type: EventType(row.type),
  at: Number(row.at),
  body: row.body,
})
