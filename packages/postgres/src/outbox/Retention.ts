/** How long events, deliveries, the audit trail and idempotency keys are kept. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Setting from "@tenure/core/Setting"
import * as Effect from "effect/Effect"
import { beginAudit, dropAudit } from "../audit/auditParts.sql.ts"
import type { Executor } from "../connection/Executor.ts"
import { regularly } from "../connection/housekeeping.ts"
import { days } from "../connection/parameters.ts"
import { forgetAnswers } from "../idempotency/forgetAnswers.sql.ts"
import * as Erasing from "../memberships/erasing.ts"
import { forgetProjects } from "../memberships/forgetProjects.sql.ts"
import { closeDays, createDays, dropDay } from "./days.sql.ts"
import { forgetEvents } from "./forgetEvents.sql.ts"
import { forgetFailed } from "./forgetFailed.sql.ts"

const dayMillis = 86_400_000

/** The options of this module. */
export const options = Setting.struct({
  /**
   * How long to keep events, and deliveries that were delivered or cancelled: for so long, readers of the
   * feed can go on from a cursor. They are deleted by whole days, so up to a day later. Open and failed
   * deliveries keep their events. Default: `"30 days"`.
   */
  eventRetention: Setting.withDefault(Setting.millis(), "30 days"),
  /** How long to keep failed deliveries, counted from the event. Default: `"30 days"`. */
  failedRetention: Setting.withDefault(Setting.millis(), "30 days"),
  /**
   * How long to keep the audit trail: by default, forever. Its rows are deleted by whole days, or by
   * thirtieths of this time if these are longer, so that much later.
   */
  auditRetention: Setting.optional(Setting.millis({ least: dayMillis, most: 3660 * dayMillis })),
  /** How long to keep idempotency keys, and what was answered to them. Default: `"24 hours"`. */
  idempotencyRetention: Setting.withDefault(Setting.millis(), "24 hours"),
})

const interval = "10 minutes"

/** Creates the partitions of the next days. If that fails, it is repeated. */
const createNext = (client: PgClient, schema: string) =>
  client
    .withoutTransforms()
    .unsafe(createDays(schema))
    .pipe(
      Effect.catchCause((cause) =>
        Effect.logWarning("Partitions cannot be created and will be later", cause),
      ),
      // The client has a span for each statement, but this one is of no request.
      Effect.withTracerEnabled(false),
    )

/**
 * Creates the partitions of the next days, now and then regularly. Closes the days that are over, and deletes
 * what is old, regularly. What fails to get a lock is left for the next time.
 */
export const start = Effect.fnUntraced(function* (
  client: PgClient,
  executor: Executor,
  {
    auditRetention,
    eventRetention,
    failedRetention,
    idempotencyRetention,
  }: Setting.Output<typeof options>,
) {
  const { schema } = executor
  const run = (sql: string, ...params: ReadonlyArray<unknown>) =>
    executor.executeApart(sql, params, { isLong: true })
  const longest = days(Math.max(eventRetention, failedRetention))
  yield* createNext(client, schema)
  const ofAudit = (kept: unknown) => [run(beginAudit(schema), kept), run(dropAudit(schema), kept)]
  // One after the other, because they lock each other out.
  const partitions = Effect.all([
    run(createDays(schema)),
    run(closeDays(schema)),
    run(dropDay(schema), days(eventRetention)),
    ...(auditRetention === undefined ? [] : ofAudit(days(auditRetention))),
  ])
  yield* regularly(
    interval,
    Effect.map(partitions, (steps) => steps.flat()),
  )
  yield* regularly(interval, run(forgetFailed(schema), days(failedRetention)))
  yield* regularly(interval, run(forgetEvents(schema), longest))
  yield* regularly("1 minute", run(forgetProjects(schema)))
  yield* regularly("1 minute", Erasing.make(executor).eraseDue)
  yield* regularly(interval, run(forgetAnswers(schema), days(idempotencyRetention)))
})
