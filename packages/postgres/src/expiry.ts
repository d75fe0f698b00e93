/** Announces ends on PostgreSQL, by the database's clock. */

import {
  type AnnouncementOutcome,
  type DecideAnnouncement,
  type DueMembership,
  EndDate,
  type ExpiryStore,
  Millis,
  ProjectId,
  UserId,
  type TimedBulkExtension,
  completeEvent,
  dateOrigin,
  expiredLead,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import type { ExecuteOptions, Executor } from "./connection/executor.ts"
import {
  type ExpiryPassRow,
  type ChecksDueRow,
  type WatchStartRow,
  beginExpiryPasses,
  continueExpiryPass,
  findChecksDue,
  findWatchStart,
  passParams,
  startWatchingEnds,
  toNextDueMillis,
  watchParams,
} from "./expiry-passes.ts"
import { toPause } from "./memberships.sql.ts"
import type { Notifications } from "./notifications.ts"
import { announceResumptions } from "./pauses.sql.ts"
import { type SettingsRow, toGrace } from "./project-settings.ts"
import {
  type ItemRow,
  auditRowsAs,
  effectiveDateLocked,
  effectiveEndDateSql,
  hasDeliveries,
  lastSeq,
  nextSeq,
  projectColumns,
  publishChange,
  quickCommit,
} from "./sql/clauses.ts"
import {
  type Integer,
  bigintParam,
  bigintsParam,
  instantsParam,
  integerParam,
  integersParam,
  jsonOf,
  millisOf,
  textsParam,
  toMillis,
  uuidsParam,
  wholeMillisOf,
} from "./sql/values.ts"

/** The columns that an announcement is decided by, for a membership `m` in a project `p`. */
const columns = (schema: string): string => `
  p.id AS project_id, m.project_number, m.user_id, ${millisOf(effectiveEndDateSql(schema))} AS end_date,
  ${millisOf("m.announced_end")} AS announced_end, m.announced_lead_seconds,
  ${millisOf("m.end_date")} AS own_date, m.seq AS own_seq, ${millisOf("m.date_set_at")} AS own_set_at,
  (m.set_with_others_at = m.date_set_at) IS TRUE AS set_with_others, m.seq < p.bulk_seq AS follows_bulk,
  p.grace_seconds, ${millisOf("p.grace_set_at")} AS grace_set_at,
  ${millisOf("m.paused_at")} AS paused_at, ${millisOf("m.resumes_at")} AS resumes_at,
  m.xmin::text AS version, ${millisOf("statement_timestamp()")} AS now`

/**
 * Returns the bulk extensions in the projects `$1`, oldest first, with their effects on end dates before they
 * were undone. Settling ones cannot be undone: each counts as one change at the time when it was last made or
 * undone.
 */
const readTimedLogs = (schema: string): string => `
  SELECT b.project_number, b.seq,
         CASE b.state WHEN 'open' THEN ${wholeMillisOf("CASE b.mode WHEN 'never_shorten' THEN interval '0' ELSE b.extend_by END")}
         ELSE ${wholeMillisOf("b.own_addition")} END AS addition,
         ${millisOf("CASE b.state WHEN 'open' THEN b.end_date ELSE b.own_minimum END")} AS minimum,
         ${millisOf("CASE b.state WHEN 'open' THEN b.date_set_at ELSE greatest(b.date_set_at, b.date_reset_at) END")} AS set_at,
         ${millisOf("CASE b.state WHEN 'open' THEN b.date_reset_at END")} AS undone_at
  FROM ${schema}.bulk_extensions b
  WHERE b.project_number = ANY ($1) AND b.state <> 'settled'
  ORDER BY b.project_number, b.seq
`

/** A row from `readTimedLogs`. */
interface TimedLogRow {
  readonly project_number: Integer
  readonly seq: Integer
  readonly addition: Integer | null
  readonly minimum: Integer | null
  readonly set_at: Integer
  readonly undone_at: Integer | null
}

const toTimed = (row: TimedLogRow): TimedBulkExtension => {
  const [addition, minimum] = [toMillis(row.addition), toMillis(row.minimum)]
  return {
    order: Number(row.seq),
    adjustment: {
      addition: addition === undefined ? undefined : Millis(addition),
      minimum: minimum === undefined ? undefined : EndDate(minimum),
    },
    isUndone: row.undone_at !== null,
    setAt: Number(row.set_at),
    undoneAt: toMillis(row.undone_at),
  }
}

/**
 * Returns up to `$1` memberships whose next checks are due, earliest first, except those that are locked or
 * whose projects are locked.
 *
 * A row that changes before it is locked is current, but not the bulk extensions beside it. So an end date
 * may be one that never applied: `settleDue` compares it with the current one.
 */
export const findDue = (schema: string): string => `
  -- It only locks, so its commit need not wait.
  WITH ${quickCommit}
  SELECT ${columns(schema)}
  FROM ${schema}.memberships m
  JOIN ${schema}.projects p ON p.number = m.project_number
  WHERE EXISTS (SELECT FROM quick) AND m.next_check_at <= statement_timestamp()
  ORDER BY m.next_check_at LIMIT $1
  -- The project first, so that no membership is locked in vain when its project is skipped.
  FOR NO KEY UPDATE OF p, m SKIP LOCKED
`

/** Clauses for the memberships `m` in a project `p` whose next checks are due, ordered as in the index by project. */
const dueMembersOfProject = `
    WHERE m.project_number = p.number
      AND m.next_check_at AT TIME ZONE interval '0' <= statement_timestamp() AT TIME ZONE interval '0'
    ORDER BY m.next_check_at AT TIME ZONE interval '0'`

/** Returns up to `$1` memberships whose next checks are due in each project `$2`, by number. */
export const findDueOf = (schema: string): string => `
  SELECT ${columns(schema)}
  FROM ${schema}.projects p
  CROSS JOIN LATERAL (
    SELECT m.*, m.xmin FROM ${schema}.memberships m
    ${dueMembersOfProject} LIMIT $1
  ) m
  WHERE p.number = ANY ($2)
`

/**
 * Reads the next `$1` projects after the number `$2`. Returns one row: the last number, and the numbers with
 * memberships whose next checks are due.
 */
export const findProjectsDue = (schema: string): string => `
  SELECT max(p.number) AS last,
         ${jsonOf("coalesce(array_agg(m.project_number ORDER BY m.project_number) FILTER (WHERE m.project_number IS NOT NULL), '{}')")} AS due
  FROM (
    SELECT number FROM ${schema}.projects WHERE number > $2 ORDER BY number LIMIT $1
  ) p
  -- With a limit, one member per project is read: a plan for EXISTS may read the members of all.
  LEFT JOIN LATERAL (
    SELECT m.project_number FROM ${schema}.memberships m
    ${dueMembersOfProject} LIMIT 1
  ) m ON true
`

/** The parameters for `findDue`. */
export const findDueParams = (limit: number) => [integerParam(limit)]

/** The parameters for `findDueOf`, for up to `limit` projects, which have equal shares. */
export const findDueOfParams = (limit: number, projects: ReadonlyArray<bigint>) => [
  integerParam(Math.floor(limit / projects.length)),
  bigintsParam(projects),
]

/** The parameters for `findProjectsDue`. */
export const findProjectsDueParams = (limit: number, after: bigint) => [
  integerParam(limit),
  bigintParam(after),
]

/** The row from `findProjectsDue`. */
export interface ProjectsDueRow {
  /** NULL if there is no further project. */
  readonly last: Integer | null
  readonly due: string
}

/** Returns the project numbers. */
const toProjectsDue = ({ due }: ProjectsDueRow): ReadonlyArray<bigint> => {
  const numbers: ReadonlyArray<number> = JSON.parse(due)
  return numbers.map(BigInt)
}

/** A row with a membership that is due. */
interface DueRow extends Pick<SettingsRow, "grace_seconds"> {
  readonly project_id: string
  readonly project_number: Integer
  readonly user_id: string
  readonly end_date: Integer
  readonly announced_end: Integer | null
  /** In seconds. */
  readonly announced_lead_seconds: number | null
  /** The date that was last set for this member alone. */
  readonly own_date: Integer
  readonly own_seq: Integer
  readonly own_set_at: Integer
  readonly set_with_others: boolean
  readonly grace_set_at: Integer | null
  /** When its pause began; NULL if the time paused is part of the own date. */
  readonly paused_at: Integer | null
  /** When its pause ends, or has ended without an announcement. */
  readonly resumes_at: Integer | null
  /** Whether there was a bulk extension since then. */
  readonly follows_bulk: boolean
  /** Changes whenever the row does. */
  readonly version: string
  readonly now: Integer
}

/** Converts a row to the input for the decision. */
const toCandidate = (
  {
    announced_end,
    announced_lead_seconds,
    end_date,
    grace_seconds,
    grace_set_at,
    own_date,
    own_seq,
    own_set_at,
    paused_at,
    project_id,
    resumes_at,
    set_with_others: isSetWithOthers,
    user_id,
  }: DueRow,
  log: ReadonlyArray<TimedBulkExtension>,
): DueMembership => ({
  projectId: ProjectId(project_id),
  userId: UserId(user_id),
  // If the own date has the time paused already, it is the one to publish.
  endDate: EndDate(Number(paused_at === null && resumes_at !== null ? own_date : end_date)),
  grace: toGrace({ grace_seconds }),
  graceSetAt: toMillis(grace_set_at),
  pause: toPause({ paused_at: paused_at ?? resumes_at, resumes_at }),
  ...dateOrigin(log, {
    endDate: EndDate(Number(own_date)),
    order: Number(own_seq),
    setAt: Number(own_set_at),
    isSetWithOthers,
  }),
  announced:
    announced_end === null || announced_lead_seconds === null
      ? undefined
      : { endDate: EndDate(Number(announced_end)), lead: Millis(announced_lead_seconds * 1000) },
})

/**
 * Applies decisions about memberships that have not changed since they were read, still have the end dates and the grace
 * that were decided by, and are not locked: sets next checks, and publishes and audits announcements. Returns
 * the positions, from 1, and sequences of announced memberships, and the number of deliveries.
 */
const settleDue = (schema: string): string => `
  WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::timestamptz[],
                         $6::timestamptz[], $7::integer[], $8::uuid[], $9::text[], $10::timestamptz[],
                         $11::text[], $12::integer[])
    WITH ORDINALITY
    AS a (project_number, user_id, version, end_date, next_check_at, announced_end, announced_lead_seconds, event_id,
          event_type, at, head, grace_seconds, n)
  ),
  project AS MATERIALIZED (
    SELECT ${projectColumns}, grace_seconds FROM ${schema}.projects WHERE number = ANY ($1)
    -- Nothing waits for a lock while it holds locks in other projects.
    FOR NO KEY UPDATE SKIP LOCKED
  ),
  unchanged AS MATERIALIZED (
    SELECT a.*, p.seq AS project_seq, p.bulk_seq FROM asked a
    JOIN project p ON p.number = a.project_number
    JOIN ${schema}.memberships m ON m.project_number = a.project_number AND m.user_id = a.user_id
    WHERE m.xmin::text = a.version AND ${millisOf(effectiveDateLocked(schema))} = a.end_date
      AND p.grace_seconds = a.grace_seconds
    FOR NO KEY UPDATE OF m SKIP LOCKED
  ),
  settled AS (
    UPDATE ${schema}.memberships m
    SET next_check_at = u.next_check_at,
        dateless_seq =
          CASE WHEN u.announced_end IS NULL THEN m.dateless_seq ELSE ${nextSeq(schema, lastSeq, "u")} END,
        announced_end = coalesce(u.announced_end, m.announced_end),
        announced_lead_seconds = coalesce(u.announced_lead_seconds, m.announced_lead_seconds)
    FROM unchanged u
    WHERE m.project_number = u.project_number AND m.user_id = u.user_id
    RETURNING u.*, m.dateless_seq AS seq, m.metadata
  ),
  announced AS (
    SELECT s.project_number, s.user_id, s.seq, s.announced_end AS from_date,
           s.announced_end AS to_date, s.announced_lead_seconds, s.event_id, s.event_type, s.head, s.at,
           NULL::text AS request_id, NULL::text AS key_id, NULL::text AS reason, s.metadata, s.n
    FROM settled s WHERE s.event_id IS NOT NULL
  ),
  ${auditRowsAs(schema, "announced", `CASE announced_lead_seconds WHEN ${expiredLead / 1000} THEN 'expired' WHEN 0 THEN 'overdue' ELSE 'expiring' END`)},${publishChange(schema, "announced", "metadata")}
  SELECT n::integer, seq, metadata, (SELECT count(*) FROM delivered)::integer AS deliveries FROM announced
`

/** A membership that was due, and the decision about it. */
interface Decided {
  readonly row: DueRow
  readonly outcome: AnnouncementOutcome
}

const isResumption = ({ outcome }: Decided): boolean => outcome.announcement?.action === "resumed"

/** The parameters for `announceResumptions`. */
const resumptionParams = (decided: ReadonlyArray<Decided>) => {
  const rows = decided.map(({ row }) => row)
  const events = decided.map(({ outcome }) => outcome.announcement?.event)
  return [
    bigintsParam(rows.map(({ project_number }) => BigInt(project_number))),
    textsParam(rows.map(({ user_id }) => user_id)),
    textsParam(rows.map(({ version }) => version)),
    bigintsParam(rows.map(({ end_date }) => BigInt(end_date))),
    instantsParam(decided.map(({ outcome }) => outcome.alarm)),
    uuidsParam(events.map((event) => event?.id)),
    textsParam(events.map((event) => event?.type)),
    instantsParam(events.map((event) => event?.at)),
    textsParam(events.map((event) => event?.head)),
  ]
}

/** The parameters for `settleDue`. */
const settleDueParams = (decided: ReadonlyArray<Decided>) => {
  const rows = decided.map(({ row }) => row)
  const announcements = decided.map(({ outcome: { announcement } }) =>
    announcement?.action === "resumed" ? undefined : announcement,
  )
  return [
    bigintsParam(rows.map(({ project_number }) => BigInt(project_number))),
    textsParam(rows.map(({ user_id }) => user_id)),
    textsParam(rows.map(({ version }) => version)),
    bigintsParam(rows.map(({ end_date }) => BigInt(end_date))),
    instantsParam(decided.map(({ outcome }) => outcome.alarm)),
    instantsParam(announcements.map((one) => one?.endDate)),
    integersParam(announcements.map((one) => one && one.lead / 1000)),
    uuidsParam(announcements.map((one) => one?.event.id)),
    textsParam(announcements.map((one) => one?.event.type)),
    instantsParam(announcements.map((one) => one?.event.at)),
    textsParam(announcements.map((one) => one?.event.head)),
    integersParam(rows.map(({ grace_seconds }) => grace_seconds)),
  ]
}

// The maximum number of projects whose next checks are read in one step.
const maxProjects = 100

// A pass publishes nothing, so a step for it can be longer than one that announces.
const leastPassed = 100

const options: ExecuteOptions = { owner: "expiry", isLong: true }

const idOf = ({ announcement }: AnnouncementOutcome): string => announcement?.event.id ?? ""

/** Makes the operations that announce ends. */
export const makePostgresExpiryStore = (
  executor: Executor,
  notifications: Notifications,
): ExpiryStore => {
  const { executeApart, schema } = executor
  const sql = {
    watch: startWatchingEnds(schema),
    findChecksDue: findChecksDue(schema),
    beginPasses: beginExpiryPasses(schema),
    goOn: continueExpiryPass(schema),
    findDue: findDue(schema),
    watchStart: findWatchStart(schema),
    findProjectsDue: findProjectsDue(schema),
    findDueOf: findDueOf(schema),
    readTimedLogs: readTimedLogs(schema),
    settleDue: settleDue(schema),
    announceResumptions: announceResumptions(schema),
  }

  /** Sets next checks for members in projects whose own next check is due. Returns whether there may be more to do. */
  const pass = Effect.fnUntraced(function* (limit: number) {
    const begun = yield* executeApart(sql.beginPasses, passParams(maxProjects), options)
    const [turn] = yield* executeApart<ExpiryPassRow>(
      sql.goOn,
      passParams(Math.max(leastPassed, limit)),
      options,
    )
    return begun.length > 0 || turn?.has_moved === true
  })

  // Whether the next step is for projects in turn, and the project that last had its turn.
  let isForTurns = false
  let lastTurn = 0n

  /** Finds due memberships in the next projects. */
  const findInTurn = Effect.fnUntraced(function* (limit: number) {
    const params = findProjectsDueParams(limit, lastTurn)
    const [found] = yield* executeApart<ProjectsDueRow>(sql.findProjectsDue, params, options)
    lastTurn = BigInt(found?.last ?? 0)
    const due = found === undefined ? [] : toProjectsDue(found)
    return due.length === 0
      ? []
      : yield* executeApart<DueRow>(sql.findDueOf, findDueOfParams(limit, due), options)
  })

  /**
   * Finds the memberships that are due first and, in every other step under load, due memberships from
   * projects in turn. So a project with many does not delay the others. Returns whether there may be more.
   */
  const find = Effect.fnUntraced(function* (limit: number) {
    if (isForTurns) {
      isForTurns = false
      return { rows: yield* findInTurn(limit), isMore: true }
    }
    const rows = yield* executeApart<DueRow>(sql.findDue, findDueParams(limit), options)
    isForTurns = rows.length === limit
    return { rows, isMore: isForTurns }
  })

  /** Returns the bulk extensions that the memberships' end dates follow from, by project. */
  const readLogs = Effect.fnUntraced(function* (rows: ReadonlyArray<DueRow>) {
    const following = rows.filter((row) => row.follows_bulk)
    const projects = [...new Set(following.map((row) => BigInt(row.project_number)))]
    const logs = new Map<string, Array<TimedBulkExtension>>()
    if (projects.length === 0) return logs
    const params = [bigintsParam(projects)]
    for (const row of yield* executeApart<TimedLogRow>(sql.readTimedLogs, params, options)) {
      const project = String(row.project_number)
      const log = logs.get(project) ?? []
      log.push(toTimed(row))
      logs.set(project, log)
    }
    return logs
  })

  /** Applies decisions in one statement. Returns the events. */
  const apply = Effect.fnUntraced(function* (
    statement: string,
    paramsOf: (decided: ReadonlyArray<Decided>) => ReadonlyArray<unknown>,
    decided: ReadonlyArray<Decided>,
  ) {
    if (decided.length === 0) return []
    const announced = yield* executeApart<ItemRow>(statement, paramsOf(decided), options)
    if (hasDeliveries(announced)) yield* notifications.notify
    return announced.flatMap(({ metadata, n, seq }) => {
      const draft = decided[n - 1]?.outcome.announcement?.event
      return draft === undefined ? [] : [completeEvent(draft, Number(seq), metadata ?? undefined)]
    })
  })

  /** Decides about memberships, and applies the decisions. Returns the events. */
  const settle = Effect.fnUntraced(function* (
    rows: ReadonlyArray<DueRow>,
    decide: DecideAnnouncement,
  ) {
    if (rows.length === 0) return []
    const logs = yield* readLogs(rows)
    const candidateOf = (row: DueRow) =>
      toCandidate(row, logs.get(String(row.project_number)) ?? [])
    const decided = rows
      .map((row) => ({ row, outcome: decide(candidateOf(row), Number(row.now)) }))
      .toSorted((one, other) => (idOf(one.outcome) < idOf(other.outcome) ? -1 : 1))
    return [
      ...(yield* apply(sql.announceResumptions, resumptionParams, decided.filter(isResumption))),
      ...(yield* apply(
        sql.settleDue,
        settleDueParams,
        decided.filter((one) => !isResumption(one)),
      )),
    ]
  })

  return {
    watch: Effect.fnUntraced(function* (leads) {
      let row: WatchStartRow | undefined
      while (row === undefined) {
        ;[row] = yield* executeApart<WatchStartRow>(sql.watch, watchParams(leads), options)
      }
      return Number(row.since)
    }),

    watchedSince: Effect.map(
      // The host may have a transaction on the only connection.
      executor.execute<WatchStartRow>(sql.watchStart, [], options),
      ([row]) => row && Number(row.since),
    ),

    sweep: Effect.fnUntraced(function* (limit, decide) {
      const [checks] = yield* executeApart<ChecksDueRow>(sql.findChecksDue, [], options)
      const hasMembers = isForTurns || checks?.has_members === true
      const { isMore, rows } = hasMembers ? yield* find(limit) : { isMore: false, rows: [] }
      const events = yield* settle(rows, decide)
      // If a pass fails, the next sweep continues it, and no announcement waits for it.
      const isPassing =
        checks?.has_pass === true &&
        (yield* Effect.catchTag(pass(limit), "StoreUnavailable", () => Effect.succeed(false)))
      return {
        events,
        isMore: isMore || isPassing,
        nextDueMillis: checks && toNextDueMillis(checks),
      }
    }),
  }
}
