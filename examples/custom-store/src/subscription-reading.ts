/** Reads the host's subscriptions as memberships, and their changes as an audit trail. */

import { PgClient } from "@effect/sql-pg"
import {
  type AuditRow,
  BulkExtensionNotFound,
  BulkExtensionSettled,
  type StoredPreview,
  EndDate,
  type EventId,
  MembershipNotFound,
  MembershipStore,
  type ProjectId,
  ProjectNotFound,
  type ProjectSummary,
  UserId,
  changedMembersOf,
  changesOfUser,
  endCellsAt,
  dayStartsOf,
  endCountsOf,
  endingPage,
  extendingActions,
  positionOfCursor,
  searchingHistory,
} from "@tenure/core/store"
import { Database } from "@tenure/postgres"
import * as Effect from "effect/Effect"
import {
  type ChangeRow,
  type StateRow,
  type Subscription,
  dateAfter,
  lastDate,
  toAuditRow,
  toBulkExtension,
  toDate,
  toEndDate,
  toMembership,
  toRecordedChange,
} from "./subscription-rows.ts"

interface AccountRow {
  readonly subscriptions: number
  readonly last_bulk: Date | null
}

/** Merges rows by their times, newest first. Keeps the order of ours, and that of theirs. */
const merge = (ours: ReadonlyArray<AuditRow>, theirs: ReadonlyArray<AuditRow>) => {
  const rest = [...theirs]
  const merged = ours.flatMap((row) => {
    const next = rest.findIndex(({ at }) => at <= row.at)
    return [...rest.splice(0, next === -1 ? rest.length : next), row]
  })
  return [...merged, ...rest]
}

/** Makes the part of the store that reads subscriptions and their changes. */
export const makeReading = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const database = yield* Database
  // The store of `@tenure/postgres`.
  const { findProject, history, listProjects, previewPublication } = yield* MembershipStore

  const findBulkExtension = Effect.fnUntraced(function* (projectId: ProjectId, id: EventId) {
    yield* findProject(projectId)
    const found = yield* database.run(sql`
      SELECT 1 FROM subscription_changes WHERE account = ${projectId} AND event_id = ${id}
    `)
    return found.length > 0
      ? yield* new BulkExtensionSettled({ bulkExtensionId: id })
      : yield* new BulkExtensionNotFound({ bulkExtensionId: id })
  })

  /** Fails with `ProjectNotFound` if there are no rows because the account does not exist. */
  const orMissing = Effect.fnUntraced(function* <Row>(
    projectId: ProjectId,
    rows: ReadonlyArray<Row>,
  ) {
    if (rows.length > 0) return rows
    const accounts = yield* sql`SELECT 1 FROM accounts WHERE id = ${projectId}`
    return accounts.length > 0 ? rows : yield* new ProjectNotFound({ projectId })
  })

  /** The end date of what ended this long ago, in milliseconds. */
  const endedFor = (millis: number) =>
    sql`statement_timestamp() - ${millis}::float8 * interval '1 millisecond'`

  const isSubscribed = (projectId: ProjectId, userId: UserId) =>
    Effect.map(
      database.run(sql`
        SELECT 1 FROM subscriptions WHERE account = ${projectId} AND customer = ${userId}
      `),
      (rows) => rows.length > 0,
    )

  /** Completes what the other store knows of a project. */
  const completed = Effect.fnUntraced(function* (project: ProjectSummary) {
    const [row] = yield* database.run(sql<AccountRow>`
      SELECT (SELECT count(*) FROM subscriptions WHERE account = ${project.id})::integer
               AS subscriptions,
             (SELECT paid_until FROM subscription_changes
              WHERE account = ${project.id} AND action LIKE 'bulk_%' AND paid_until IS NOT NULL
              ORDER BY id DESC LIMIT 1) AS last_bulk
    `)
    return {
      ...project,
      memberships: row?.subscriptions ?? 0,
      lastBulkEndDate: row?.last_bulk ? toEndDate(row.last_bulk) : undefined,
    }
  })

  const ownHistory: MembershipStore["Service"]["history"] = Effect.fnUntraced(
    function* (projectId, page) {
      if (projectId === undefined) return yield* history(undefined, page)
      const { after, limit, userId } = page
      const rows = yield* database.run(sql<ChangeRow>`
      SELECT id::text, customer, other_customer, action, paid_from, paid_until, event_id, added_millis::text, total,
             at, request_id, key_id, reason,
             (SELECT name FROM tenure.api_keys WHERE api_keys.id = key_id) AS key_name
      FROM subscription_changes
      WHERE account = ${projectId}
        AND (${userId ?? null}::text IS NULL OR customer = ${userId ?? null} OR customer IS NULL)
      ORDER BY subscription_changes.id
    `)
      const changes = (yield* database.run(orMissing(projectId, rows))).map((row) =>
        toAuditRow(projectId, row),
      )
      const found =
        userId === undefined
          ? // The other store has the changes of webhooks.
            merge(changes.toReversed(), yield* history(projectId, { userId, limit: 10_000 }))
          : changesOfUser(changes, userId, yield* isSubscribed(projectId, userId)).toReversed()
      if (after === undefined) return found.slice(0, limit)
      const last = found.findIndex(({ cursor }) => cursor === after)
      return last === -1 ? [] : found.slice(last + 1, last + 1 + limit)
    },
  )

  return {
    findProject: (projectId) => Effect.flatMap(findProject(projectId), completed),

    listProjects: (page) =>
      Effect.flatMap(listProjects(page), (projects) => Effect.forEach(projects, completed)),

    bulkExtensions: Effect.fnUntraced(function* (projectId, { after, limit }) {
      yield* findProject(projectId)
      const rows = yield* database.run(sql<ChangeRow>`
        SELECT c.*, c.added_millis::text AS added_millis, NULL AS key_name FROM subscription_changes c
        WHERE c.account = ${projectId} AND c.action LIKE 'bulk_%'
          AND (${after ?? null}::text IS NULL OR c.id < (
            SELECT o.id FROM subscription_changes o
            WHERE o.account = ${projectId} AND o.event_id = ${after ?? null}
          ))
        ORDER BY c.id DESC LIMIT ${limit}
      `)
      return rows.map((row) => toBulkExtension(projectId, row))
    }),

    // A subscription has one date, and nobody knows the one before.
    undoBulkExtension: ({ bulkExtensionId, projectId }) =>
      findBulkExtension(projectId, bulkExtensionId),
    previewUndo: (projectId, { bulkExtensionId }) => findBulkExtension(projectId, bulkExtensionId),

    previewBulkExtension: Effect.fnUntraced(function* (projectId, bulk) {
      const activeAfter = endedFor((yield* findProject(projectId)).grace)
      const preview = sql`
        SELECT customer, paid_until, paused_at, ${dateAfter(sql, bulk)} AS would_end
        FROM current_subscriptions WHERE account = ${projectId}
      `
      const [counts] = yield* database.run(sql<Omit<StoredPreview, "examples">>`
        SELECT count(*)::integer AS total,
               count(*) FILTER (WHERE would_end < paid_until)::integer AS shortened,
               count(*) FILTER (
                 WHERE paused_at IS NULL AND paid_until <= ${activeAfter} AND would_end > ${activeAfter}
               )::integer AS reactivated,
               count(*) FILTER (WHERE paid_until < would_end AND would_end = ${lastDate})::integer AS capped,
               count(*) FILTER (WHERE paid_until = ${lastDate} AND would_end < paid_until)::integer
                 AS "lifetimesEnded"
        FROM (${preview}) p
      `)
      const examples = yield* database.run(sql<Subscription & { readonly would_end: Date }>`
        SELECT * FROM (${preview}) p WHERE would_end <> paid_until ORDER BY customer LIMIT 10
      `)
      return {
        total: 0,
        shortened: 0,
        reactivated: 0,
        capped: 0,
        lifetimesEnded: 0,
        ...counts,
        examples: examples.map(({ customer, paid_until, would_end }) => ({
          userId: UserId(customer),
          endDate: toEndDate(paid_until),
          wouldEnd: toEndDate(would_end),
        })),
      }
    }),

    previewPublication: Effect.fnUntraced(function* (projectId, type, change) {
      // The webhooks are in the tables of the other store.
      const publication = yield* previewPublication(projectId, type, change)
      const [next] = yield* database.run(sql<{ readonly id: string }>`
        SELECT (last_value + is_called::integer)::text AS id FROM subscription_changes_id_seq
      `)
      const userId = change._tag === "One" ? change.userId : null
      const [row] = yield* database.run(sql<Pick<Subscription, "metadata">>`
        SELECT metadata FROM subscriptions WHERE account = ${projectId} AND customer = ${userId}
      `)
      // An import has a row for each subscription, and one number more for its event.
      const before = change._tag === "Import" ? change.size : 0
      return { ...publication, sequence: Number(next?.id) + before, metadata: row?.metadata }
    }),

    countEnds: Effect.fnUntraced(function* (projectId, { change, days }) {
      const project = yield* findProject(projectId)
      const [clock] = yield* database.run(sql<{ readonly now: Date }>`
        SELECT date_trunc('milliseconds', statement_timestamp()) AS now
      `)
      const cells = endCellsAt({ days }, clock?.now.getTime() ?? 0, project)
      const bounds = `{${cells.bounds.join(",")}}`
      const starts = `{${dayStartsOf(cells).join(",")}}`
      const endDate = change === undefined ? sql`paid_until` : dateAfter(sql, change)
      const counted = yield* database.run(sql<{ readonly cell: number; readonly members: number }>`
        SELECT width_bucket((extract(epoch FROM ${endDate}) * 1000)::float8, ${bounds}::text::float8[])
                 AS cell, count(*)::integer AS members
        FROM current_subscriptions WHERE account = ${projectId} AND paused_at IS NULL
        GROUP BY cell
      `)
      const [row] = yield* database.run(sql<{ readonly paused: number }>`
        SELECT count(paused_at)::integer AS paused FROM current_subscriptions
        WHERE account = ${projectId}
      `)
      const extended = yield* database.run(sql<{ readonly day: number; readonly extended: number }>`
        SELECT ${cells.days.first} - 1 + width_bucket(
                 (extract(epoch FROM at) * 1000)::float8, ${starts}::text::float8[]) AS day,
               count(*)::integer AS extended
        FROM subscription_changes
        WHERE account = ${projectId} AND ${sql.in("action", [...extendingActions])}
        GROUP BY day
      `)
      const members = new Map(counted.map((one) => [one.cell, one.members]))
      // All changes are kept.
      const changes = {
        knownFrom: -Infinity,
        byDay: new Map(extended.map((one) => [one.day, one.extended])),
      }
      return endCountsOf(cells, members, changes, row?.paused ?? 0)
    }),

    countEndedBetween: Effect.fnUntraced(function* (projectId, { from, to }) {
      yield* findProject(projectId)
      const [row] = yield* database.run(sql<{ readonly subscriptions: number }>`
        SELECT count(*)::integer AS subscriptions FROM current_subscriptions
        WHERE account = ${projectId} AND paused_at IS NULL
          AND paid_until <= ${endedFor(from)} AND paid_until > ${endedFor(to)}
      `)
      return row?.subscriptions ?? 0
    }),

    find: Effect.fnUntraced(function* (projectId, userId) {
      const [row] = yield* database.run(sql<Subscription>`
        SELECT * FROM current_subscriptions
        WHERE account = ${projectId} AND customer = ${userId}
      `)
      if (row === undefined) return yield* new MembershipNotFound({ projectId, userId })
      // A subscription is not a membership until its account is a project.
      const project = yield* Effect.catchTag(
        findProject(projectId),
        "ProjectNotFound",
        () => new MembershipNotFound({ projectId, userId }),
      )
      return toMembership(project, row)
    }),

    list: Effect.fnUntraced(function* (projectId, { after, limit, only, prefix, userIds }) {
      const project = yield* findProject(projectId)
      const state = sql`
        CASE WHEN paused_at IS NOT NULL THEN 'paused'
             WHEN paid_until > ${new Date((only?.at ?? 0) - project.grace)} THEN 'active'
             ELSE 'expired' END
      `
      const inState = only === undefined ? sql`true` : sql`${state} = ${only.state}`
      const isAsked = userIds === undefined ? sql`true` : sql.in("customer", userIds)
      const rows = yield* database.run(sql<Subscription>`
        SELECT * FROM current_subscriptions
        WHERE account = ${projectId} AND customer > ${after ?? ""} AND ${inState} AND ${isAsked}
          AND starts_with(customer, ${prefix ?? ""})
        ORDER BY customer
        LIMIT ${limit}
      `)
      return rows.map((row) => toMembership(project, row))
    }),

    listEnding: Effect.fnUntraced(function* (projectId, { after, before, limit }) {
      const project = yield* findProject(projectId)
      const place = after && positionOfCursor(after)
      // A cursor that a client made up begins the list.
      const isAfter =
        place === undefined || !EndDate.is(place.endDate)
          ? sql`true`
          : sql`(paid_until, customer) > (${toDate(place.endDate)}, ${place.userId})`
      const rows = yield* database.run(sql<Subscription>`
        SELECT * FROM current_subscriptions
        WHERE account = ${projectId} AND paused_at IS NULL AND paid_until > ${endedFor(project.grace)}
          AND paid_until < ${toDate(before)} AND ${isAfter}
        ORDER BY paid_until, customer
        LIMIT ${limit + 1}
      `)
      return endingPage(
        rows.map((row) => toMembership(project, row)),
        limit,
      )
    }),

    history: ownHistory,
    searchHistory: searchingHistory(ownHistory),

    selectedChanges: Effect.fnUntraced(function* (projectId, page) {
      const rows = yield* database.run(sql<StateRow>`
        SELECT c.*, c.id::text AS id, c.added_millis::text AS added_millis, NULL AS key_name
        FROM subscription_changes c WHERE c.account = ${projectId} ORDER BY c.id
      `)
      const changes = yield* database.run(orMissing(projectId, rows))
      return changedMembersOf(
        changes.map((row) => toRecordedChange(projectId, row)),
        page,
      )
    }),
  } satisfies Partial<MembershipStore["Service"]>
})
