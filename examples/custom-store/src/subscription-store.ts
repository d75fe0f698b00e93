/**
 * Keeps Tenure's memberships in the host's table `subscriptions`. An account is a project, a customer
 * is a user, and `paid_until` is the end date.
 */

import { PgClient } from "@effect/sql-pg"
import {
  ApiKeyId,
  type AuditAction,
  AuditCursor,
  type AuditRow,
  type BulkChange,
  type BulkExtension,
  BulkExtensionNotFound,
  type BulkExtensionRecord,
  BulkExtensionSettled,
  type BulkPreview,
  type Change,
  type DatedMembership,
  EndDate,
  type Ending,
  type EndsLater,
  EventId,
  type Grant,
  IdempotencyInProgress,
  type Import,
  type Membership,
  MembershipNotFound,
  MembershipStore,
  type Metadata,
  MetadataConflict,
  Millis,
  type Move,
  MoveConflict,
  type MovedMembership,
  Outbox,
  type ProjectId,
  ProjectNotFound,
  type ProjectSummary,
  Reason,
  UserId,
  bulkActions,
  changesOfUser,
  completeEvent,
  formatGrantAnswer,
  endCellsAt,
  endCountsOf,
  endDateConflict,
  endingPage,
  extendingActions,
  laterOf,
  metadataFromJson,
  metadataJson,
  noMetadata,
  positionOfCursor,
} from "@tenure/core/store"
import { Database } from "@tenure/postgres"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

interface Subscription {
  readonly customer: string
  readonly paid_until: Date
  readonly metadata: string
}

interface ChangeRow {
  readonly id: string
  readonly customer: string | null
  readonly other_customer: string | null
  readonly action: AuditAction
  readonly paid_from: Date | null
  readonly paid_until: Date | null
  /** For a bulk extension: its event, the added time, and the number of subscriptions. */
  readonly event_id: string | null
  readonly added_millis: string | null
  readonly total: number | null
  readonly at: Date
  readonly request_id: string | null
  readonly key_id: string | null
  readonly key_name: string | null
  readonly reason: string | null
}

interface AccountRow {
  readonly subscriptions: number
  readonly last_bulk: Date | null
}

/** The fields in an audit row that describe the change. */
interface Audited extends Pick<AuditRow, "action" | "userId" | "from" | "to"> {
  /** For a moved subscription: the other customer. */
  readonly other?: UserId
  /** For a bulk extension. */
  readonly bulk?: {
    readonly id: EventId
    readonly by: Millis | undefined
    readonly total: number
  }
}

const lastDate = "9999-12-31T23:59:59.999Z"

const toEndDate = (date: Date): EndDate => EndDate(date.getTime())

/**
 * Writes an end date as text, because the client rounds a `Date`'s microseconds after the year 4253. PostgreSQL calls
 * the year 0 1 BC.
 */
const toDate = (endDate: EndDate | undefined): string | null => {
  if (endDate === undefined) return null
  const text = new Date(endDate).toISOString()
  return text.startsWith("0000") ? `0001${text.slice(4)} BC` : text
}

const toMembership = (
  projectId: ProjectId,
  { customer, metadata, paid_until }: Subscription,
): Membership => ({
  projectId,
  userId: UserId(customer),
  endDate: toEndDate(paid_until),
  metadata: metadataFromJson(metadata),
})

const toAuditRow = (projectId: ProjectId, row: ChangeRow): AuditRow => ({
  projectId,
  userId: row.customer === null ? undefined : UserId(row.customer),
  cursor: AuditCursor(`0.${row.id}`),
  action: row.action,
  subject: row.event_id ?? row.other_customer ?? undefined,
  origin: {
    requestId: row.request_id ?? undefined,
    keyId: row.key_id === null ? undefined : ApiKeyId(row.key_id),
  },
  keyName: row.key_name ?? undefined,
  reason: row.reason === null ? undefined : Reason(row.reason),
  from: row.paid_from === null ? undefined : toEndDate(row.paid_from),
  to: row.paid_until === null ? undefined : toEndDate(row.paid_until),
  by: row.added_millis === null ? undefined : Millis(Number(row.added_millis)),
  changes: [],
  at: row.at.getTime(),
})

/** Reads a bulk extension. */
const toBulkExtension = (projectId: ProjectId, row: ChangeRow): BulkExtensionRecord => {
  const { at, by, origin, reason, to } = toAuditRow(projectId, row)
  const mode = row.action === bulkActions.set ? "set" : "neverShorten"
  return {
    id: EventId(row.event_id ?? ""),
    change: to === undefined ? { mode: "extendBy", by: by ?? Millis(0) } : { mode, endDate: to },
    at,
    reason,
    origin,
    total: row.total ?? 0,
    // Each subscription has one date, so none can be undone.
    undone: undefined,
  }
}

/** Tells whether a subscription is as a move expects it. */
const isSame = (found: MovedMembership | undefined, expected: MovedMembership | undefined) =>
  found?.endDate === expected?.endDate &&
  metadataJson(found?.metadata ?? noMetadata) === metadataJson(expected?.metadata ?? noMetadata)

/** Merges rows by their times, newest first. Keeps the order within each list. */
const merge = (ours: ReadonlyArray<AuditRow>, theirs: ReadonlyArray<AuditRow>) => {
  const rest = [...theirs]
  const merged = ours.flatMap((row) => {
    const next = rest.findIndex(({ at }) => at <= row.at)
    return [...rest.splice(0, next === -1 ? rest.length : next), row]
  })
  return [...merged, ...rest]
}

const make = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const database = yield* Database
  const outbox = yield* Outbox
  // The `@tenure/postgres` store keeps the projects for webhooks and keys, and its ping checks the
  // database, which also holds the host's tables.
  const {
    createProject,
    deleteProject,
    erase,
    findProject,
    history,
    listProjects,
    ping,
    previewPublication,
    recall,
    recordShown,
    updateProject,
  } = yield* MembershipStore

  /** Runs statements in one transaction, or in the host's transaction if one is open. */
  const inOneStep = database.atomically

  /** Locks an account, so that only one change at a time adds a subscription or extends them all. */
  const lockAccount = Effect.fnUntraced(function* (projectId: ProjectId) {
    const rows = yield* sql`SELECT 1 FROM accounts WHERE id = ${projectId} FOR NO KEY UPDATE`
    if (rows.length === 0) return yield* new ProjectNotFound({ projectId })
  })

  /** Locks a subscription. Returns it, or `undefined` if it does not exist. */
  const lockSubscription = Effect.fnUntraced(function* (projectId: ProjectId, userId: UserId) {
    const [row] = yield* sql<Subscription>`
      SELECT customer, paid_until, metadata FROM subscriptions
      WHERE account = ${projectId} AND customer = ${userId}
      FOR UPDATE
    `
    return row && toMembership(projectId, row)
  })

  /**
   * Stores a change's audit row while its locks are held. Returns the row's id, which is the change's sequence:
   * earlier changes with the same locks have smaller ones.
   */
  const audit = Effect.fnUntraced(function* (
    { at, origin, projectId, reason }: Change,
    { action, bulk, from, other, to, userId }: Audited,
  ) {
    const [row] = yield* sql<{ readonly id: string }>`INSERT INTO subscription_changes ${sql.insert(
      {
        account: projectId,
        customer: userId ?? null,
        other_customer: other ?? null,
        action,
        paid_from: toDate(from),
        paid_until: toDate(to),
        event_id: bulk?.id ?? null,
        added_millis: bulk?.by ?? null,
        total: bulk?.total ?? null,
        at: new Date(at),
        request_id: origin.requestId ?? null,
        key_id: origin.keyId ?? null,
        reason: reason ?? null,
      },
    )} RETURNING id::text`
    return Number(row?.id)
  })

  /**
   * Stores a change's event and deliveries, and its idempotency key, if it has one. Returns the event.
   *
   * @param metadata - the subscription's metadata, if the event is about one
   * @param answer - the replay for a change repeated with its key
   */
  const publish = Effect.fnUntraced(function* (
    { event: draft, idempotency }: Change,
    sequence: number,
    metadata: Metadata = noMetadata,
    answer = "",
  ) {
    const event = completeEvent(draft, sequence, metadataJson(metadata))
    const replayed = yield* outbox.publish(
      event,
      idempotency && { ...idempotency, answer: idempotency.answer ?? answer },
    )
    // Somebody else has stored the key in the meantime.
    return replayed === undefined ? event : yield* new IdempotencyInProgress()
  })

  /** Makes a change while its locks are held, unless its idempotency key has an answer already. */
  const unlessMade = Effect.fnUntraced(function* <A, E, R>(
    { idempotency, projectId }: Change,
    work: Effect.Effect<A, E, R>,
  ) {
    return (idempotency && (yield* recall(idempotency, projectId))) ?? (yield* work)
  })

  /** Stores a change's audit row, its event, and the event's deliveries. Returns the event. */
  const record = (change: Change, audited: Audited, metadata?: Metadata, answer?: string) =>
    Effect.flatMap(audit(change, audited), (sequence) =>
      publish(change, sequence, metadata, answer),
    )

  /** Returns a sequence for a change without an audit row. */
  const nextSequence = Effect.map(
    sql<{ readonly id: string }>`
      SELECT nextval(pg_get_serial_sequence('subscription_changes', 'id'))::text AS id
    `,
    ([row]) => Number(row?.id),
  )

  /**
   * Sets a subscription's end date, creating it if missing, and stores the audit row. Returns the row's id and the
   * subscription's metadata.
   */
  const set = Effect.fnUntraced(function* (
    change: Change,
    { endDate, metadata: given, userId }: DatedMembership,
    action: AuditAction,
  ) {
    const { projectId } = change
    const before = yield* lockSubscription(projectId, userId)
    const metadata = given ?? before?.metadata ?? noMetadata
    yield* sql`
      INSERT INTO subscriptions (account, customer, paid_until, metadata)
      VALUES (${projectId}, ${userId}, ${toDate(endDate)}, ${metadataJson(metadata)})
      ON CONFLICT (account, customer)
      DO UPDATE SET paid_until = excluded.paid_until, metadata = excluded.metadata
    `
    const sequence = yield* audit(change, { action, userId, from: before?.endDate, to: endDate })
    return { sequence, metadata }
  })

  /** Changes an existing subscription. `apply` gets it as it is, and no one changes it. */
  const changeOne = <A, E>(
    change: Ending,
    apply: (before: Membership) => Effect.Effect<A, E | ProjectNotFound>,
  ) => {
    const { projectId, userId } = change
    const missing = new MembershipNotFound({ projectId, userId })
    const step = Effect.gen(function* () {
      const before = yield* lockSubscription(projectId, userId)
      const work = Effect.gen(function* () {
        if (before === undefined) return yield* missing
        return yield* apply(before)
      })
      return yield* unlessMade(change, work)
    })
    // A subscription is not a membership until its account is a project.
    return inOneStep(Effect.catchTag(step, "ProjectNotFound", () => missing))
  }

  /** Stores the idempotency key for an extension without effect. Returns the extension's result. */
  const leave = Effect.fnUntraced(function* ({ idempotency, projectId }: Change, later: EndsLater) {
    const answer = String(later.endDate)
    return (idempotency && (yield* database.keep({ ...idempotency, answer }, projectId))) ?? later
  })

  /** Returns a subscription's end date after a bulk extension. */
  const dateAfter = (bulk: BulkChange) => {
    switch (bulk.mode) {
      case "set":
        return sql`${toDate(bulk.endDate)}::timestamptz`
      case "neverShorten":
        return sql`greatest(paid_until, ${toDate(bulk.endDate)})`
      case "extendBy":
        return sql`least(paid_until + ${bulk.by}::float8 * interval '1 millisecond', ${lastDate})`
    }
  }

  /** Changes all subscriptions' end dates. */
  const extendAll = Effect.fnUntraced(function* (change: BulkExtension) {
    const { bulk, event, projectId } = change
    const [row] = yield* sql<{ readonly total: number }>`
      WITH extended AS (
        -- All of them, so that all are locked before the change has a sequence.
        UPDATE subscriptions SET paid_until = ${dateAfter(bulk)}
        WHERE account = ${projectId}
        RETURNING 1
      )
      SELECT count(*)::integer AS total FROM extended
    `
    const total = row?.total ?? 0
    const isByDuration = bulk.mode === "extendBy"
    const audited = {
      action: bulkActions[bulk.mode],
      userId: undefined,
      from: undefined,
      to: isByDuration ? undefined : bulk.endDate,
      bulk: { id: event.id, by: isByDuration ? bulk.by : undefined, total },
    } as const
    return { total, event: yield* record(change, audited, noMetadata, String(total)) }
  })

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

  const isSubscribed = (projectId: ProjectId, userId: UserId) =>
    Effect.map(
      database.run(sql`
        SELECT 1 FROM subscriptions WHERE account = ${projectId} AND customer = ${userId}
      `),
      (rows) => rows.length > 0,
    )

  /** Adds the subscriptions' data to a project from the other store. */
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

  return MembershipStore.of({
    ping,
    // The end dates are the host's, and so is whatever looks at them.
    expiry: undefined,

    createProject: (projectId, context) =>
      inOneStep(
        Effect.andThen(
          // Locks an existing account: a repetition with the same key waits for the first.
          sql`INSERT INTO accounts (id) VALUES (${projectId})
            ON CONFLICT (id) DO UPDATE SET id = EXCLUDED.id`,
          createProject(projectId, context),
        ),
      ),

    deleteProject: Effect.fnUntraced(function* (projectId, context) {
      const replayed = yield* deleteProject(projectId, context)
      if (replayed !== undefined) return replayed
      // Every change to subscriptions locks the account first.
      yield* sql`SELECT 1 FROM accounts WHERE id = ${projectId} FOR UPDATE`
      yield* sql`DELETE FROM subscription_changes WHERE account = ${projectId}`
      yield* sql`DELETE FROM subscriptions WHERE account = ${projectId}`
      yield* sql`DELETE FROM accounts WHERE id = ${projectId}`
    }, inOneStep),

    // The settings are those of the other store.
    updateProject,

    findProject: (projectId) => Effect.flatMap(findProject(projectId), completed),

    listProjects: (page) =>
      Effect.flatMap(listProjects(page), (projects) => Effect.forEach(projects, completed)),

    grant: Effect.fnUntraced(function* (change: Grant) {
      yield* lockAccount(change.projectId)
      const granted = Effect.flatMap(set(change, change, "granted"), ({ metadata, sequence }) =>
        publish(change, sequence, metadata, formatGrantAnswer(change.at, metadataJson(metadata))),
      )
      return yield* unlessMade(change, granted)
    }, inOneStep),

    import: Effect.fnUntraced(function* (change: Import) {
      yield* lockAccount(change.projectId)
      const imported = Effect.gen(function* () {
        for (const one of change.memberships) yield* set(change, one, "imported")
        // Greater than the audit rows' sequences.
        return yield* publish(change, yield* nextSequence)
      })
      return yield* unlessMade(change, imported)
    }, inOneStep),

    extend: (change) => {
      const { endDate, expectedEndDate, projectId, userId } = change
      const extendFrom = Effect.fnUntraced(function* (before: Membership) {
        const { endDate: from, metadata } = before
        const conflict = endDateConflict(before, expectedEndDate)
        if (conflict !== undefined) return yield* conflict
        const later = laterOf(from, change)
        if (later !== undefined) return yield* leave(change, later)
        yield* sql`
          UPDATE subscriptions SET paid_until = ${toDate(endDate)}
          WHERE account = ${projectId} AND customer = ${userId}
        `
        return yield* record(change, { action: "extended", userId, from, to: endDate }, metadata)
      })
      return changeOne(change, extendFrom)
    },

    setMetadata: (change) => {
      const { expected, metadata, projectId, userId } = change
      const replace = Effect.fnUntraced(function* ({ endDate, metadata: before }: Membership) {
        if (metadataJson(before) !== metadataJson(expected)) return yield* new MetadataConflict()
        yield* sql`
          UPDATE subscriptions SET metadata = ${metadataJson(metadata)}
          WHERE account = ${projectId} AND customer = ${userId}
        `
        const audited = { action: "updated", userId, from: endDate, to: endDate } as const
        return yield* record(change, audited, metadata)
      })
      return Effect.catchTag(changeOne(change, replace), "MembershipNotFound", () =>
        Effect.fail(new MetadataConflict()),
      )
    },

    recall,

    recordShown,

    extendAll: Effect.fnUntraced(function* (change: BulkExtension) {
      yield* lockAccount(change.projectId)
      return yield* unlessMade(change, extendAll(change))
    }, inOneStep),

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
      yield* findProject(projectId)
      const preview = sql`
        SELECT customer, paid_until, ${dateAfter(bulk)} AS would_end
        FROM subscriptions WHERE account = ${projectId}
      `
      const [counts] = yield* database.run(sql<Omit<BulkPreview, "examples">>`
        SELECT count(*)::integer AS total,
               count(*) FILTER (WHERE would_end < paid_until)::integer AS shortened,
               count(*) FILTER (WHERE paid_until <= now() AND would_end > now())::integer AS reactivated,
               count(*) FILTER (WHERE paid_until < would_end AND would_end = ${lastDate})::integer AS capped
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
      // The webhooks are in the other store's tables.
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
      yield* findProject(projectId)
      const [clock] = yield* database.run(sql<{ readonly now: Date }>`
        SELECT date_trunc('milliseconds', statement_timestamp()) AS now
      `)
      const cells = endCellsAt({ days }, clock?.now.getTime() ?? 0)
      const bounds = `{${cells.bounds.join(",")}}`
      const endDate = change === undefined ? sql`paid_until` : dateAfter(change)
      const counted = yield* database.run(sql<{ readonly cell: number; readonly members: number }>`
        SELECT width_bucket((extract(epoch FROM ${endDate}) * 1000)::float8, ${bounds}::text::float8[])
                 AS cell, count(*)::integer AS members
        FROM subscriptions WHERE account = ${projectId}
        GROUP BY cell
      `)
      const extended = yield* database.run(sql<{ readonly day: number; readonly extended: number }>`
        SELECT floor(extract(epoch FROM at) / 86400)::integer AS day, count(*)::integer AS extended
        FROM subscription_changes
        WHERE account = ${projectId} AND ${sql.in("action", [...extendingActions])}
        GROUP BY day
      `)
      return endCountsOf(cells, new Map(counted.map(({ cell, members }) => [cell, members])), {
        // All changes are kept.
        knownFrom: -Infinity,
        byDay: new Map(extended.map((row) => [row.day, row.extended])),
      })
    }),

    end: (change) => {
      const { projectId, userId } = change
      const endFrom = Effect.fnUntraced(function* ({ endDate: from, metadata }: Membership) {
        yield* sql`DELETE FROM subscriptions WHERE account = ${projectId} AND customer = ${userId}`
        return yield* record(change, { action: "ended", userId, from, to: undefined }, metadata)
      })
      return changeOne(change, endFrom)
    },

    move: Effect.fnUntraced(function* (change: Move) {
      const { endDate, expected, granted, metadata, projectId, to, userId } = change
      const moved = Effect.gen(function* () {
        const found = new Map<UserId, Membership | undefined>()
        // All moves use the same order, to avoid deadlocks.
        for (const id of [userId, to].toSorted()) {
          found.set(id, yield* lockSubscription(projectId, id))
        }
        const from = found.get(userId)
        if (!isSame(from, expected.from) || !isSame(found.get(to), expected.to)) {
          return yield* new MoveConflict()
        }
        yield* sql`DELETE FROM subscriptions WHERE account = ${projectId} AND customer = ${userId}`
        const left = {
          action: "moved",
          userId,
          other: to,
          from: from?.endDate,
          to: undefined,
        } as const
        const ended = yield* record({ ...change, idempotency: undefined }, left, from?.metadata)
        yield* sql`
          INSERT INTO subscriptions (account, customer, paid_until, metadata)
          VALUES (${projectId}, ${to}, ${toDate(endDate)}, ${metadataJson(metadata)})
          ON CONFLICT (account, customer)
          DO UPDATE SET paid_until = excluded.paid_until, metadata = excluded.metadata
        `
        const joined = {
          action: "moved",
          userId: to,
          other: userId,
          from: expected.to?.endDate,
          to: endDate,
        } as const
        return [ended, yield* record({ ...change, event: granted }, joined, metadata)] as const
      })
      // With the account locked, no change adds the other customer's subscription.
      const step = Effect.andThen(lockAccount(projectId), unlessMade(change, moved))
      return yield* Effect.catchTag(step, "ProjectNotFound", () => Effect.fail(new MoveConflict()))
    }, inOneStep),

    erase: Effect.fnUntraced(function* (change: Ending) {
      const { projectId, userId } = change
      yield* lockAccount(projectId)
      // The other store has the events and the idempotency keys, but no memberships.
      const replayed = yield* erase(change)
      if (replayed !== undefined) return replayed
      yield* sql`
        UPDATE subscription_changes SET customer = NULL, reason = NULL
        WHERE account = ${projectId} AND customer = ${userId}
      `
      yield* sql`
        UPDATE subscription_changes SET other_customer = NULL, reason = NULL
        WHERE account = ${projectId} AND other_customer = ${userId}
      `
      const ended = yield* sql`
        DELETE FROM subscriptions WHERE account = ${projectId} AND customer = ${userId} RETURNING 1
      `
      if (ended.length === 0) return undefined
      const event = completeEvent(change.event, yield* nextSequence)
      yield* outbox.publish(event)
      return event
    }, inOneStep),

    find: Effect.fnUntraced(function* (projectId, userId) {
      const [row] = yield* database.run(sql<Subscription>`
        SELECT customer, paid_until, metadata FROM subscriptions
        WHERE account = ${projectId} AND customer = ${userId}
      `)
      if (row === undefined) return yield* new MembershipNotFound({ projectId, userId })
      return toMembership(projectId, row)
    }),

    list: Effect.fnUntraced(function* (projectId, { after, limit, only, prefix, userIds }) {
      const isActive = sql`paid_until > ${new Date(only?.at ?? 0)}`
      const inState =
        only === undefined ? sql`true` : only.state === "active" ? isActive : sql`NOT ${isActive}`
      const isAsked = userIds === undefined ? sql`true` : sql.in("customer", userIds)
      const rows = yield* database.run(sql<Subscription>`
        SELECT customer, paid_until, metadata FROM subscriptions
        WHERE account = ${projectId} AND customer > ${after ?? ""} AND ${inState} AND ${isAsked}
          AND starts_with(customer, ${prefix ?? ""})
        ORDER BY customer
        LIMIT ${limit}
      `)
      return (yield* database.run(orMissing(projectId, rows))).map((row) =>
        toMembership(projectId, row),
      )
    }),

    listEnding: Effect.fnUntraced(function* (projectId, { after, before, limit }) {
      const place = after && positionOfCursor(after)
      // An invented cursor begins the list.
      const isAfter =
        place === undefined || !EndDate.is(place.endDate)
          ? sql`true`
          : sql`(paid_until, customer) > (${toDate(place.endDate)}, ${place.userId})`
      const rows = yield* database.run(sql<Subscription>`
        SELECT customer, paid_until, metadata FROM subscriptions
        WHERE account = ${projectId} AND paid_until > statement_timestamp()
          AND paid_until < ${toDate(before)} AND ${isAfter}
        ORDER BY paid_until, customer
        LIMIT ${limit + 1}
      `)
      const found = yield* database.run(orMissing(projectId, rows))
      return endingPage(
        found.map((row) => toMembership(projectId, row)),
        limit,
      )
    }),

    history: Effect.fnUntraced(function* (projectId, page) {
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
    }),
  })
})

/** The store. It replaces the provided `MembershipStore`. */
export const layer = Layer.effect(MembershipStore, make)
