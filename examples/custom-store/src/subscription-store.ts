/**
 * Keeps Tenure's memberships in the host's table `subscriptions`. An account is a project, a customer
 * is a user, and `paid_until` is the end date.
 */

import { PgClient } from "@effect/sql-pg"
import {
  type AuditAction,
  type AuditRow,
  type BulkExtension,
  type Change,
  type DatedMembership,
  type Ending,
  type EndsLater,
  type Event,
  type EventId,
  type Grant,
  type GrantIfAbsent,
  IdempotencyInProgress,
  type Import,
  type Membership,
  type MemberChange,
  type MemberChanges,
  MemberChangesConflict,
  MembershipNotFound,
  MembershipStore,
  type Metadata,
  MetadataConflict,
  type Millis,
  type Move,
  MoveConflict,
  type MovedMembership,
  Outbox,
  type Pause,
  PauseConflict,
  type ProjectId,
  ProjectNotFound,
  type UserId,
  alreadyMember,
  bulkActions,
  completeEvent,
  formatBulkAnswer,
  formatGrantAnswer,
  endDateConflict,
  instantForm,
  isSameForm,
  isSameTerm,
  laterOf,
  metadataJson,
  noMetadata,
} from "@tenure/core/store"
import { Database } from "@tenure/postgres"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Fragment } from "effect/sql/Statement"
import { makeReading } from "./subscription-reading.ts"
import {
  type Subscription,
  dateAfter,
  formAfter,
  toDate,
  toMembership,
} from "./subscription-rows.ts"

/** The fields in an audit row that describe the change. */
interface Audited extends Pick<AuditRow, "action" | "userId" | "from" | "to"> {
  /** The form of the date and the pause afterwards; by default, an instant without a pause. */
  readonly state?: Pick<DatedMembership, "inDays" | "keptDay" | "pause"> | undefined
  /** For a moved subscription: the other customer. */
  readonly other?: UserId
  /** For a bulk extension. */
  readonly bulk?: {
    readonly id: EventId
    readonly by: Millis | undefined
    readonly total: number
  }
}

/** Tells whether a subscription is as a move expects it. */
const isSame = (found: Membership | undefined, expected: MovedMembership | undefined) =>
  found?.pause === undefined &&
  found?.endDate === expected?.endDate &&
  isSameForm(found ?? instantForm, expected ?? instantForm) &&
  metadataJson(found?.metadata ?? noMetadata) === metadataJson(expected?.metadata ?? noMetadata)

/** Returns a grant's answer for repetitions. */
const answerOf = (change: Grant, metadata: Metadata, pause?: Pause): string =>
  formatGrantAnswer({ ...change, metadata: metadataJson(metadata), pause, isLeft: false })

const make = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const database = yield* Database
  const outbox = yield* Outbox
  // The store of `@tenure/postgres`. It keeps the projects that webhooks and keys belong to, and its
  // ping checks the database that also holds the host's tables.
  const {
    createProject,
    deleteProject,
    erase,
    findProject,
    ping,
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

  /** Makes the time paused part of the dates of locked subscriptions where a pause is over. */
  const endPauses = (where: Fragment) => sql`
    WITH over AS (
      SELECT s.account, s.customer, s.resumes_at, s.paid_until AS paid_from, c.paid_until, c.in_days, c.kept_day
      FROM subscriptions s JOIN current_subscriptions c USING (account, customer)
      WHERE ${where} AND s.resumes_at <= statement_timestamp()
    ),
    ended AS (
      UPDATE subscriptions s
      SET paid_until = over.paid_until, kept_day = over.kept_day, paused_at = NULL, resumes_at = NULL
      FROM over WHERE s.account = over.account AND s.customer = over.customer
    )
    INSERT INTO subscription_changes (account, customer, action, paid_from, paid_until, at, in_days, kept_day, is_unasked)
    SELECT account, customer, 'resumed', paid_from, paid_until, statement_timestamp(), in_days, kept_day, true
    FROM over ORDER BY resumes_at, customer
  `

  /** Locks a subscription. Returns it, or `undefined` if it does not exist. */
  const lockSubscription = Effect.fnUntraced(function* (projectId: ProjectId, userId: UserId) {
    const where = sql`account = ${projectId} AND customer = ${userId}`
    const locked = yield* sql`SELECT 1 FROM subscriptions WHERE ${where} FOR UPDATE`
    if (locked.length === 0) return undefined
    yield* endPauses(where)
    const [row] = yield* sql<Subscription>`SELECT * FROM subscriptions WHERE ${where}`
    return row && toMembership(yield* findProject(projectId), row)
  })

  /**
   * Stores a change's audit row while its locks are held. Returns the row's id, which is the change's sequence:
   * earlier changes with the same locks have smaller ones.
   */
  const audit = Effect.fnUntraced(function* (
    { at, origin, projectId, reason }: Change,
    { action, bulk, from, other, state, to, userId }: Audited,
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
        in_days: state?.inDays ?? false,
        kept_day: state?.keptDay ?? null,
        paused_at: toDate(state?.pause?.since),
        resumes_at: toDate(state?.pause?.until),
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
    { idempotency, projectId }: Pick<Change, "idempotency" | "projectId">,
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

  /** Writes a subscription, creating it if missing. */
  const write = (
    projectId: ProjectId,
    { endDate, inDays = false, keptDay, metadata = noMetadata, pause, userId }: DatedMembership,
  ) => sql`
    INSERT INTO subscriptions (account, customer, paid_until, in_days, kept_day, metadata, paused_at, resumes_at)
    VALUES (${projectId}, ${userId}, ${toDate(endDate)}, ${inDays}, ${keptDay ?? null}, ${metadataJson(metadata)},
            ${toDate(pause?.since)}, ${toDate(pause?.until)})
    ON CONFLICT (account, customer)
    DO UPDATE SET paid_until = excluded.paid_until, in_days = excluded.in_days, kept_day = excluded.kept_day,
                  metadata = excluded.metadata, paused_at = excluded.paused_at, resumes_at = excluded.resumes_at
  `

  /**
   * Sets a subscription's end date, creating it if missing, and stores the audit row. Returns the row's id and the
   * subscription's metadata and pause.
   */
  const set = Effect.fnUntraced(function* (
    change: Change,
    dated: DatedMembership,
    action: AuditAction,
  ) {
    const { endDate, inDays = false, keptDay, userId } = dated
    const before = yield* lockSubscription(change.projectId, userId)
    const metadata = dated.metadata ?? before?.metadata ?? noMetadata
    const pause = dated.pause ?? before?.pause
    yield* write(change.projectId, { ...dated, metadata, pause })
    const state = { inDays, keptDay, pause }
    const audited = { action, userId, from: before?.endDate, to: endDate, state }
    const sequence = yield* audit(change, audited)
    return { sequence, metadata, pause }
  })

  /** Makes one of several changes to locked subscriptions. */
  const changeMember = Effect.fnUntraced(function* (
    { action, changes: _, ...change }: MemberChanges,
    { event, to, userId }: MemberChange,
    before: Membership | undefined,
  ) {
    const { projectId } = change
    yield* to === undefined
      ? sql`DELETE FROM subscriptions WHERE account = ${projectId} AND customer = ${userId}`
      : write(projectId, { ...to, userId, metadata: before?.metadata })
    const audited = { action, userId, from: before?.endDate, to: to?.endDate, state: to }
    return yield* record({ ...change, event }, audited, before?.metadata)
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

  /** Begins or ends a pause. `apply` gets the subscription as it is, and returns how it is to be. */
  const changePause = (
    change: Ending,
    action: "paused" | "resumed",
    apply: (
      before: Membership,
    ) => Pick<Membership, "endDate" | "keptDay" | "pause"> | PauseConflict,
  ) => {
    const { projectId, userId } = change
    const replace = Effect.fnUntraced(function* (before: Membership) {
      const after = apply(before)
      if (after instanceof PauseConflict) return yield* after
      const { endDate, keptDay, pause } = after
      yield* sql`
        UPDATE subscriptions
        SET paid_until = ${toDate(endDate)}, kept_day = ${keptDay ?? null},
            paused_at = ${toDate(pause?.since)}, resumes_at = ${toDate(pause?.until)}
        WHERE account = ${projectId} AND customer = ${userId}
      `
      const state = { inDays: before.inDays, keptDay, pause }
      const audited = { action, userId, from: before.endDate, to: endDate, state }
      return yield* record(change, audited, before.metadata)
    })
    return Effect.catchTag(changeOne(change, replace), "MembershipNotFound", () =>
      Effect.fail(new PauseConflict()),
    )
  }

  /** Changes the end dates of all subscriptions. */
  const extendAll = Effect.fnUntraced(function* (change: BulkExtension) {
    const { bulk, event, projectId } = change
    const where = sql`account = ${projectId}`
    // All of them are locked before the change has a sequence.
    yield* sql`SELECT 1 FROM subscriptions WHERE ${where} ORDER BY customer FOR UPDATE`
    yield* endPauses(where)
    const [row] = yield* sql<{ readonly total: number }>`
      WITH extended AS (
        UPDATE subscriptions SET paid_until = ${dateAfter(sql, bulk)}, ${formAfter(sql, bulk)}
        WHERE ${where}
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
      state: isByDuration ? {} : { inDays: bulk.inDays },
    } as const
    return {
      total,
      event: yield* record(change, audited, noMetadata, formatBulkAnswer(total, bulk)),
    }
  })

  return MembershipStore.of({
    ...(yield* makeReading),
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

    grant: Effect.fnUntraced(function* (change: Grant) {
      yield* lockAccount(change.projectId)
      const granted = Effect.gen(function* () {
        const { metadata, pause, sequence } = yield* set(change, change, "granted")
        const answer = answerOf(change, metadata, pause)
        return { event: yield* publish(change, sequence, metadata, answer), pause }
      })
      return yield* unlessMade(change, granted)
    }, inOneStep),

    grantIfAbsent: Effect.fnUntraced(function* (change: GrantIfAbsent) {
      const { at, idempotency, isFinal, projectId, userId } = change
      yield* lockAccount(projectId)
      const granted = Effect.gen(function* () {
        const found = yield* lockSubscription(projectId, userId)
        if (found === undefined) {
          const { metadata, sequence } = yield* set(change, change, "granted")
          const answer = answerOf(change, metadata)
          return { event: yield* publish(change, sequence, metadata, answer), pause: undefined }
        }
        const left = alreadyMember(found)
        if (idempotency === undefined || !isFinal) return left
        const metadata = metadataJson(found.metadata)
        const answer =
          idempotency.answer ?? formatGrantAnswer({ ...found, at, metadata, isLeft: true })
        return (yield* database.keep({ ...idempotency, answer }, projectId)) ?? left
      })
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
      const {
        endDate,
        expectedEndDate,
        expectedForm,
        inDays = false,
        keptDay,
        projectId,
        userId,
      } = change
      const extendFrom = Effect.fnUntraced(function* (before: Membership) {
        const { endDate: from, metadata } = before
        const conflict = endDateConflict(before, expectedEndDate, expectedForm)
        if (conflict !== undefined) return yield* conflict
        const later = laterOf(from, change)
        if (later !== undefined) return yield* leave(change, later)
        yield* sql`
          UPDATE subscriptions
          SET paid_until = ${toDate(endDate)}, in_days = ${inDays}, kept_day = ${keptDay ?? null}
          WHERE account = ${projectId} AND customer = ${userId}
        `
        const state = { inDays, keptDay, pause: before.pause }
        const audited = { action: "extended", userId, from, to: endDate, state } as const
        return yield* record(change, audited, metadata)
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

    pause: (change) =>
      changePause(change, "paused", ({ endDate, keptDay, pause }) =>
        pause === undefined && endDate === change.expected.endDate
          ? { endDate, keptDay, pause: { since: change.at, until: change.until } }
          : new PauseConflict(),
      ),

    resume: (change) =>
      changePause(change, "resumed", ({ endDate, pause }) => {
        const { endDate: stands, pause: expected } = change.expected
        return endDate === stands &&
          pause?.since === expected.since &&
          pause.until === expected.until
          ? { endDate: change.endDate, keptDay: undefined, pause: undefined }
          : new PauseConflict()
      }),

    // The settings are those of the other store.
    updateProject,

    recall,

    recordShown,

    changeEach: Effect.fnUntraced(function* (change: MemberChanges) {
      const changeAll = Effect.gen(function* () {
        const found: Array<Membership | undefined> = []
        for (const { userId } of change.changes) {
          found.push(yield* lockSubscription(change.projectId, userId))
        }
        if (change.changes.some(({ from }, index) => !isSameTerm(found[index], from))) {
          return yield* new MemberChangesConflict()
        }
        const events: Array<Event> = []
        for (const [index, one] of change.changes.entries()) {
          // All have one key.
          const idempotency = index === 0 ? change.idempotency : undefined
          events.push(yield* changeMember({ ...change, idempotency }, one, found[index]))
        }
        return events
      })
      const step = Effect.andThen(lockAccount(change.projectId), unlessMade(change, changeAll))
      return yield* Effect.catchTag(step, "ProjectNotFound", () =>
        Effect.fail(new MemberChangesConflict()),
      )
    }, inOneStep),

    extendAll: Effect.fnUntraced(function* (change: BulkExtension) {
      yield* lockAccount(change.projectId)
      return yield* unlessMade(change, extendAll(change))
    }, inOneStep),

    end: (change) => {
      const { projectId, userId } = change
      const endFrom = Effect.fnUntraced(function* ({ endDate: from, metadata }: Membership) {
        yield* sql`DELETE FROM subscriptions WHERE account = ${projectId} AND customer = ${userId}`
        return yield* record(change, { action: "ended", userId, from, to: undefined }, metadata)
      })
      return changeOne(change, endFrom)
    },

    move: Effect.fnUntraced(function* (change: Move) {
      const {
        endDate,
        expected,
        granted,
        inDays = false,
        keptDay,
        metadata,
        projectId,
        to,
        userId,
      } = change
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
          INSERT INTO subscriptions (account, customer, paid_until, in_days, kept_day, metadata)
          VALUES (${projectId}, ${to}, ${toDate(endDate)}, ${inDays}, ${keptDay ?? null}, ${metadataJson(metadata)})
          ON CONFLICT (account, customer)
          DO UPDATE SET paid_until = excluded.paid_until, in_days = excluded.in_days, kept_day = excluded.kept_day,
                        metadata = excluded.metadata
        `
        const joined = {
          action: "moved",
          userId: to,
          other: userId,
          from: expected.to?.endDate,
          to: endDate,
          state: { inDays, keptDay },
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
  })
})

/** The store. It replaces the provided `MembershipStore`. */
export const layer = Layer.effect(MembershipStore, make)
