/** Claims deliveries for this process, and keeps it known to others as a live dispatcher. */

import { logGivenUp } from "@tenure/core/internal"
import { readMonotonicMillis } from "@tenure/core/internal"
import {
  type Attempt,
  type Claim,
  EventId,
  type Outbox,
  ProjectId,
  StoredSecret,
  WebhookId,
} from "@tenure/core/store"
import * as Clock from "effect/Clock"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"
import type { Executor } from "./connection/executor.ts"
import { endLeases, leaseParams } from "./leases.ts"
import type { Notifications } from "./notifications.ts"
import { quickCommit } from "./sql/clauses.ts"
import {
  bigintParam,
  flagParam,
  integerParam,
  integersParam,
  nilUuid,
  textParam,
  uuidParam,
  uuidsParam,
} from "./sql/values.ts"

/** The claims that this process holds. Each stays until it is settled or its lease expires. */
interface HeldClaims {
  /** Adds a claim whose lease expires at `until`, in milliseconds by the monotonic clock. */
  readonly add: (claim: Claim, until: number, isOrdered: boolean) => void
  readonly delete: (claim: Claim) => void
  /** Whether other deliveries for the same member may wait for this claim. */
  readonly isOrdered: (claim: Claim) => boolean
  /** Returns the webhooks that have claims, each once. */
  readonly webhooks: (now: number) => ReadonlyArray<WebhookId>
}

const keyOf = ({ event, webhook }: Claim): string => `${event.id} ${webhook.webhookId}`

/** Starts without claims. */
export const makeHeldClaims = (): HeldClaims => {
  const held = new Map<
    string,
    { readonly webhookId: WebhookId; readonly until: number; readonly isOrdered: boolean }
  >()
  return {
    add: (claim, until, isOrdered) => {
      held.set(keyOf(claim), { webhookId: claim.webhook.webhookId, until, isOrdered })
    },
    delete: (claim) => void held.delete(keyOf(claim)),
    isOrdered: (claim) => held.get(keyOf(claim))?.isOrdered ?? false,
    webhooks: (now) => {
      for (const [key, { until }] of held) if (until <= now) held.delete(key)
      return [...new Set(Array.from(held.values(), ({ webhookId }) => webhookId))]
    },
  }
}

// Several reports fit into the time after which a silent process counts as gone.
const reportMillis = 300

// For a dispatcher that has no claims and knows no other.
const quietReportMillis = 5000

// The minimum time between two reports.
const shortestPauseMillis = 20

/** A dispatcher that others know about. */
interface Presence {
  /** The dispatcher's id: a new one in each process. */
  readonly id: string
  /** Runs a claim. The first one starts the liveness reports. */
  readonly claiming: <A, E>(claim: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** Reports often again, until a report finds neither claims nor other dispatchers. */
  readonly reportOften: () => void
}

/**
 * Reports that the dispatcher `$1` is alive. `$2` are its webhooks, `$3` says whether it has no claims, and
 * `$4` is its process's session, which counts if this server has it. Returns one row: whether another
 * dispatcher is gone; in how many milliseconds one will count as gone whose session has ended; which webhooks
 * in `$2` were removed, or disabled by request; and whether this dispatcher is quiet from now on, because it
 * has no claims and there is no other.
 */
const report = (schema: string): string => `
  -- If a server crash loses a report, it is made again.
  WITH ${quickCommit},
  reported AS (
    INSERT INTO ${schema}.dispatchers AS d (id, seen_at, since, session, server_started_at)
    SELECT $1::uuid, clock_timestamp(), clock_timestamp(), CASE WHEN ${schema}.is_held($4::uuid) THEN $4::uuid END,
           pg_postmaster_start_time()
    FROM quick
    ON CONFLICT (id) DO UPDATE
    SET seen_at = clock_timestamp(), since = ${schema}.reporting_since(d.seen_at, d.since),
        session = excluded.session, server_started_at = excluded.server_started_at,
        -- A claim may have committed since the claims were counted.
        is_quiet = $3::boolean AND abs(extract(epoch FROM clock_timestamp() - d.busy_at)) > 1
                   AND NOT EXISTS (SELECT FROM ${schema}.dispatchers o WHERE o.id <> $1::uuid)
    RETURNING is_quiet
  )
  SELECT EXISTS (
    SELECT FROM ${schema}.dispatchers_gone WHERE noticed_by = $1::uuid
  ) AS is_any_gone, (
    SELECT ceil(1000 * min(soon.gone_in)) FROM (
      SELECT ${schema}.gone_in(o.seen_at, o.session, o.server_started_at)
      FROM ${schema}.dispatchers o WHERE o.id <> $1::uuid
    ) AS soon (gone_in) WHERE soon.gone_in > 0
  ) AS gone_in, ARRAY(
    SELECT held.id FROM unnest($2::uuid[]) AS held (id)
    -- Looks up each webhook by its id, however many there are.
    WHERE (
      SELECT w.disabled_by IS DISTINCT FROM 'request' FROM ${schema}.webhooks w WHERE w.id = held.id
    ) IS NOT TRUE
  ) AS stopped, is_quiet FROM reported
`

/** A row from `report`. */
interface ReportRow {
  readonly is_any_gone: boolean
  readonly gone_in: number | null
  readonly stopped: ReadonlyArray<string>
  readonly is_quiet: boolean
}

/**
 * Makes a dispatcher that reports for as long as the scope is open. If another one is gone, it wakes local
 * claims: the next one takes over what the other had claimed. It also reports webhooks with claims here that
 * were removed or disabled, because the notification about it may have been lost.
 */
const makeHeartbeat = Effect.fnUntraced(function* (
  executor: Executor,
  notifications: Notifications,
  held: HeldClaims,
) {
  const clock = yield* Clock.Clock
  const id = (yield* WebCrypto).randomUUID()
  const begun = yield* Latch.make()
  const sql = report(executor.schema)
  let isClaiming = false
  let isQuiet = false
  let reportedAt = 0
  let reportedSession: string | undefined

  /** Reports, unless it is quiet. Returns the time until the next report. */
  const reportOnce = Effect.suspend(() => {
    const now = readMonotonicMillis(clock)
    const webhooks = held.webhooks(now)
    const hasClaims = isClaiming || webhooks.length > 0
    if (isQuiet && !hasClaims && now - reportedAt < quietReportMillis) {
      return Effect.succeed(reportMillis)
    }
    isQuiet = false
    reportedAt = now
    return sendReport(webhooks, hasClaims)
  })

  const sendReport = Effect.fnUntraced(function* (
    webhooks: ReadonlyArray<WebhookId>,
    hasClaims: boolean,
  ) {
    const session = notifications.session()
    const params = [uuidParam(id), uuidsParam(webhooks), flagParam(!hasClaims), uuidParam(session)]
    const [row] = yield* executor.executeApart<ReportRow>(sql, params)
    if (row === undefined) return reportMillis
    isQuiet = row.is_quiet
    if (row.is_any_gone) yield* notifications.notify
    yield* notifications.stopped(row.stopped.map(WebhookId))
    // A report does not see what it writes, and others are compared with its session.
    const isKnown = session === reportedSession
    reportedSession = session
    return isKnown
      ? Math.min(reportMillis, Math.max(shortestPauseMillis, row.gone_in ?? Infinity))
      : shortestPauseMillis
  })

  const reporting = Effect.catchCause(reportOnce, () => Effect.succeed(reportMillis))
  yield* Effect.forkScoped(
    begun.await.pipe(
      Effect.andThen(Effect.timeoutOption(notifications.opened, reportMillis)),
      Effect.andThen(Effect.forever(Effect.flatMap(reporting, (millis) => Effect.sleep(millis)))),
    ),
  )

  const presence: Presence = {
    id,
    claiming: (claim) =>
      Effect.suspend(() => {
        begun.openUnsafe()
        isClaiming = true
        return Effect.ensuring(
          claim,
          Effect.sync(() => {
            isClaiming = false
          }),
        )
      }),
    reportOften: () => {
      isQuiet = false
    },
  }
  return presence
})

/** Claims deliveries with the function `claim` in the migrations, which describes it. */
const claimDeliveries = (schema: string): string =>
  `SELECT * FROM ${schema}.claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
   $11, $12)`

type ClaimOptions = Parameters<Outbox["Service"]["claim"]>[0]

/** Where a claim continues. */
interface Position {
  /** The dispatcher's id. */
  readonly dispatcher: string
  /** The last lease it has received. */
  readonly lastLease: bigint
  /** The last webhook it has visited. */
  readonly lastWebhook: string
}

/** The parameters for `claimDeliveries`. It visits `firstWebhooks` first, and then those after the last one. */
const claimParams = (
  { ahead, failing, leaseMillis, limit, perProject, perWebhook }: ClaimOptions,
  { dispatcher, lastLease, lastWebhook }: Position,
  firstWebhooks: ReadonlyArray<string>,
) => [
  uuidParam(dispatcher),
  bigintParam(lastLease),
  integerParam(limit),
  integerParam(failing),
  integerParam(perWebhook.least),
  integerParam(perWebhook.most),
  integerParam(perProject),
  uuidsParam([...ahead.keys()]),
  integersParam([...ahead.values()]),
  integerParam(Math.ceil(leaseMillis)),
  uuidParam(lastWebhook),
  uuidsParam(firstWebhooks),
]

/** A row from `claimDeliveries`. Without an event, it only says when to claim again. */
interface ClaimRow {
  readonly event_id: string | null
  readonly body: string | null
  readonly project_id: string
  readonly webhook_id: string
  readonly failures: number
  readonly failing_since: Date | null
  readonly url: string | null
  readonly secrets: ReadonlyArray<string> | null
  readonly signing_key: string | null
  readonly headers: string | null
  readonly claim_count: number
  readonly lease: bigint | null
  readonly position: bigint | null
  readonly has_member: boolean | null
  readonly concurrency: number
  readonly looked_at: string
  readonly due_in: number | null
  readonly kept_back: ReadonlyArray<string> | null
  readonly has_others: boolean | null
}

/** A claimed delivery. */
interface Lease {
  readonly event: Pick<Claim["event"], "id">
  readonly webhook: { readonly projectId: string; readonly webhookId: WebhookId }
  readonly attemptNumber: number
  readonly lease: string
}

/** A claim, unless the event or the webhook cannot be read. */
interface Claimed {
  readonly lease: Lease
  readonly isOrdered: boolean
  readonly claim: Claim | undefined
}

const toClaimed = (row: ClaimRow & { readonly event_id: string }): Claimed => {
  const { body, headers, project_id: projectId, secrets, signing_key: signingKey, url } = row
  const id = EventId(row.event_id)
  const webhookId = WebhookId(row.webhook_id)
  const lease = {
    event: { id },
    webhook: { projectId, webhookId },
    attemptNumber: row.claim_count,
    lease: `${row.lease}.${row.position}`,
  }
  const isOrdered = row.has_member === true
  if (body === null || url === null || secrets === null || !ProjectId.is(projectId)) {
    return { lease, isOrdered, claim: undefined }
  }
  const webhook = {
    projectId,
    webhookId,
    url,
    secrets: secrets.map(StoredSecret),
    signingKey: signingKey === null ? undefined : StoredSecret(signingKey),
    headers: headers === null ? undefined : StoredSecret(headers),
    failures: row.failures,
    failingSince: row.failing_since === null ? undefined : Number(row.failing_since),
    concurrency: row.concurrency,
  }
  return { lease, isOrdered, claim: { ...lease, event: { id, body }, webhook } }
}

const hasEvent = <Row extends ClaimRow>(row: Row): row is Row & { readonly event_id: string } =>
  row.event_id !== null

/** Reads the rows with an event. */
const toClaimedAll = (rows: ReadonlyArray<ClaimRow>): ReadonlyArray<Claimed> =>
  rows.filter(hasEvent).map(toClaimed)

/** Where the next claim continues. */
const nextPosition = (
  { dispatcher, lastLease, lastWebhook }: Position,
  rows: ReadonlyArray<ClaimRow>,
): Position => {
  const leases = rows.map(({ lease }) => lease ?? 0n)
  return {
    dispatcher,
    lastLease: leases.reduce((last, lease) => (lease > last ? lease : last), lastLease),
    lastWebhook: rows[0]?.looked_at ?? lastWebhook,
  }
}

/** The webhooks whose deliveries a limit kept back. */
const keptBack = (rows: ReadonlyArray<ClaimRow>): ReadonlyArray<WebhookId> =>
  rows[0]?.kept_back?.map(WebhookId) ?? []

/** The time in milliseconds until there may be more to claim, if known. */
const nextDueMillis = (
  rows: ReadonlyArray<ClaimRow>,
  { limit }: ClaimOptions,
): number | undefined => {
  if (rows.length === limit && rows[0]?.event_id !== null) return 0
  const millis = rows[0]?.due_in ?? undefined
  return millis === undefined ? undefined : Math.max(0, Math.ceil(millis))
}

/**
 * Ends claimed deliveries as failed, because they cannot be read and another attempt would not help. Each
 * array has one element per delivery, and `$5` is the attempt's record as JSON.
 */
const failUnreadable = (schema: string): string => `
  WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[])
    AS a (delivered_id, webhook_id, lease, position)
  ),${endLeases(schema)},
  failed AS (
    UPDATE ${schema}.deliveries d
    SET state = 'failed', claim_count = d.claim_count + 1, attempts = d.attempts || $5::jsonb,
        attempted_at = date_trunc('milliseconds', clock_timestamp())
    FROM held a
    WHERE d.event_id = a.delivered_id AND d.webhook_id = a.webhook_id
    RETURNING d.webhook_id, d.member
  )
  SELECT ${schema}.unblock_next(webhook_id, member) FROM failed WHERE member IS NOT NULL
`

/** The result that is recorded for unreadable deliveries. */
const unreadableError: Attempt["result"] = { _tag: "Failed", reason: "Unreadable" }

/** The parameters for `failUnreadable`. */
const giveUpParams = (leases: ReadonlyArray<Lease>, at: number) => {
  const attempt: Attempt = { at, durationMillis: 0, result: unreadableError }
  return [
    uuidsParam(leases.map(({ event }) => event.id)),
    uuidsParam(leases.map(({ webhook }) => webhook.webhookId)),
    ...leaseParams(leases),
    textParam(JSON.stringify(attempt)),
  ]
}

/** Claims deliveries, and keeps account of them. */
interface Claiming {
  readonly claim: Outbox["Service"]["claim"]
  /** Makes the next claim start with a webhook that has just received something. */
  readonly served: (webhookId: WebhookId) => void
  /** Removes a claim that was settled or has lapsed. */
  readonly settled: (claim: Claim) => void
  readonly isOrdered: HeldClaims["isOrdered"]
}

const maxServed = 256

/** Starts without claims. */
export const makeClaiming = Effect.fnUntraced(function* (
  executor: Executor,
  notifications: Notifications,
) {
  const { schema } = executor
  const sql = { claim: claimDeliveries(schema), giveUp: failUnreadable(schema) }
  const clock = yield* Clock.Clock
  const held = makeHeldClaims()
  const presence = yield* makeHeartbeat(executor, notifications, held)
  // One claim at a time, so that a lost response shows as leases which the next claim does not know.
  const turn = yield* Semaphore.make(1)
  const served = new Set<WebhookId>()
  let position: Position = {
    dispatcher: presence.id,
    lastLease: 0n,
    lastWebhook: nilUuid,
  }

  /** Ends deliveries that cannot be read. If this fails, it is repeated when the leases have expired. */
  const giveUpOn = Effect.fnUntraced(
    function* (leases: ReadonlyArray<Lease>) {
      if (leases.length === 0) return
      const at = yield* Clock.currentTimeMillis
      yield* executor.executeApart(sql.giveUp, giveUpParams(leases, at))
      for (const { attemptNumber, event, webhook } of leases) {
        const last = {
          ...webhook,
          eventId: event.id,
          attemptNumber,
          result: unreadableError,
        }
        yield* logGivenUp(last)
      }
      // Their webhooks may have more deliveries.
      yield* notifications.notify
    },
    Effect.catchCause((cause) => Effect.logWarning("Deliveries cannot be ended", cause)),
  )

  const claim: Claiming["claim"] = Effect.fnUntraced(function* (options) {
    const params = claimParams(options, position, [...served])
    served.clear()
    const rows = yield* presence.claiming(
      // The other cells must not wait while one moves.
      executor.executeApart<ClaimRow>(sql.claim, params, { failsInMove: true }),
    )
    if (rows.some(hasEvent) || rows[0]?.has_others === true) presence.reportOften()
    position = nextPosition(position, rows)
    const claimed = toClaimedAll(rows)
    const until = readMonotonicMillis(clock) + options.leaseMillis
    const claims = claimed.flatMap(({ claim: one, isOrdered }) => {
      if (one === undefined) return []
      held.add(one, until, isOrdered)
      return [one]
    })
    yield* giveUpOn(claimed.flatMap((one) => (one.claim === undefined ? [one.lease] : [])))
    return {
      claims,
      nextDueMillis: nextDueMillis(rows, options),
      keptBack: keptBack(rows),
    }
  }, turn.withPermit)

  const claiming: Claiming = {
    claim,
    served: (webhookId) => {
      if (served.size < maxServed) served.add(webhookId)
    },
    settled: held.delete,
    isOrdered: held.isOrdered,
  }
  return claiming
})
