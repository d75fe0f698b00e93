/** The logical replication that copies a cell: its names, its progress, and how it ends. */

import * as Clock from "effect/Clock"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { SqlClient } from "effect/sql/SqlClient"
import { holds } from "../schema/migrate.ts"
import { quoted } from "../sql/clauses.ts"
import { textParam, uuidParam } from "../sql/values.ts"
import { type CellMove, refuse } from "./move-checks.ts"

/** How far the copy of a cell has got. */
export interface MoveProgress {
  readonly tables: number
  readonly allTables: number
  readonly bytes: number
  readonly allBytes: number
}

/** The name for the publication, the subscription and its slot, which all databases on a server share. */
export const findName = (schema: string): string =>
  `SELECT 'tenure_move_' || left(md5(current_database() || ' ${schema}'), 16) AS name`

export const readName = ({ schema, source }: CellMove) =>
  Effect.map(
    source.client.unsafe<{ readonly name: string }>(findName(schema)),
    ([row]) => row?.name ?? "",
  )

/** Returns a pattern for the table copy slots that a subscription has at the source. */
const findSubscription = `
  SELECT 'pg_' || oid || '\\_sync\\_%\\_' || (SELECT system_identifier FROM pg_control_system()) AS slots
  FROM pg_subscription WHERE subname = $1
`

const dropSlots = `
  SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
  WHERE (slot_name = $1 OR slot_name LIKE $2) AND NOT active
`

const slotsExist = `
  SELECT EXISTS (
    SELECT FROM pg_replication_slots WHERE slot_name = $1 OR slot_name LIKE $2
  ) AS holds
`

/** Ends the subscription at the target without the source, which may be gone for good. */
export const dropSubscription = Effect.fnUntraced(function* (target: SqlClient, name: string) {
  const [found] = yield* target.unsafe<{ readonly slots: string }>(findSubscription, [
    textParam(name),
  ])
  if (found === undefined) return undefined
  yield* target.unsafe(`ALTER SUBSCRIPTION ${name} DISABLE`)
  yield* target.unsafe(`ALTER SUBSCRIPTION ${name} SET (slot_name = NONE)`)
  yield* target.unsafe(`DROP SUBSCRIPTION ${name}`)
  return found.slots
})

export const retryOften = { times: 100, schedule: Schedule.spaced("50 millis") }

/** Ends the replication and removes everything it used. */
export const detach = Effect.fnUntraced(function* (move: CellMove) {
  const { source, target } = move
  const name = yield* readName(move)
  const copying = yield* dropSubscription(target.client, name)
  const params = [textParam(name), textParam(copying)]
  // The senders may take a moment to notice the subscription's end.
  const areGone = Effect.gen(function* () {
    yield* source.client.unsafe(dropSlots, params)
    return !(yield* holds(source.client, slotsExist, params))
  })
  const gone = yield* Effect.repeat(areGone, { ...retryOften, until: (are) => are })
  if (!gone)
    return yield* refuse(
      `The replication slot ${name} of ${source.name} is still in use. Repeat the command.`,
    )
  yield* source.client.unsafe(`DROP PUBLICATION IF EXISTS ${name}`)
})

const readProgress = `
  SELECT s.subenabled AS is_enabled,
         count(*) FILTER (WHERE r.srsubstate IN ('r', 's'))::integer AS tables,
         count(*)::integer AS all_tables
  FROM pg_subscription s JOIN pg_subscription_rel r ON r.srsubid = s.oid
  WHERE s.subname = $1 GROUP BY s.oid, s.subenabled
`

interface ProgressRow {
  readonly is_enabled: boolean
  readonly tables: number
  readonly all_tables: number
}

const readSize = (schema: string): string => `
  SELECT coalesce(sum(pg_table_size(c.oid)), 0)::float8 AS bytes
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = '${schema}' AND c.relkind = 'r'
`

interface SizeRow {
  readonly bytes: number
}

const progressMillis = 20

// Polls ever less often, because a copy may take hours, and each poll reads all file sizes.
const pauseAfterPoll = (polls: number): number => Math.min(1000, progressMillis * polls)

/** Waits until all tables are copied. */
export const waitForCopy = Effect.fnUntraced(function* (
  { schema, source, target }: CellMove,
  name: string,
  onProgress: (progress: MoveProgress) => void,
) {
  const [all] = yield* source.client.unsafe<SizeRow>(readSize(schema))
  for (let polls = 1; ; polls++) {
    const [row] = yield* target.client.unsafe<ProgressRow>(readProgress, [textParam(name)])
    if (row?.is_enabled === false)
      return yield* refuse(
        `The subscription ${name} of ${target.name} has failed: the server's log says why.`,
      )
    if (row !== undefined) {
      const [size] = yield* target.client.unsafe<SizeRow>(readSize(schema))
      onProgress({
        tables: row.tables,
        allTables: row.all_tables,
        bytes: size?.bytes ?? 0,
        allBytes: all?.bytes ?? 0,
      })
      if (row.tables === row.all_tables) return
    }
    yield* Effect.sleep(pauseAfterPoll(polls))
  }
})

// How long writers wait for the last changes to arrive. If that takes longer, they continue, and the switch
// is tried again.
export const arrivalMillis = 300

/** Adds a row at the source, after everything that is committed, and waits until it is at the target. */
export const sendMarker = Effect.fnUntraced(function* (
  { schema, source, target }: CellMove,
  name: string,
  millis: number,
) {
  const id = (yield* WebCrypto).randomUUID()
  const since = yield* Clock.currentTimeMillis
  const params = [uuidParam(id)]
  yield* source.client.unsafe(`INSERT INTO ${quoted(schema)}.move_markers VALUES ($1)`, params)
  for (;;) {
    const query = `SELECT EXISTS (SELECT FROM ${quoted(schema)}.move_markers WHERE id = $1) AS holds`
    if (yield* holds(target.client, query, params)) break
    const waited = (yield* Clock.currentTimeMillis) - since
    if (waited > millis) break
    if (waited > arrivalMillis) {
      const [row] = yield* target.client.unsafe<ProgressRow>(readProgress, [textParam(name)])
      if (row?.is_enabled !== true)
        return yield* refuse(
          `The subscription ${name} of ${target.name} has failed: the server's log says why.`,
        )
      yield* Effect.sleep(progressMillis)
    }
  }
  return (yield* Clock.currentTimeMillis) - since
})

/** Waits until changes arrive without delay. */
export const catchUp = (move: CellMove, name: string) =>
  Effect.repeat(sendMarker(move, name, Infinity), { until: (millis) => millis < arrivalMillis })
