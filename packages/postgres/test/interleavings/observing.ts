/** What clients, readers and receivers see after operations, without what differs from run to run. */

import {
  draftEvent,
  eventData,
  formatEndDate,
  makeDecideAnnouncement,
  newEventId,
} from "@tenure/core/internal"
import {
  type DecideAnnouncement,
  EndDate,
  type EndingCursor,
  type Event,
  type EventType,
  type FeedStart,
  FeedStore,
  type Membership,
  MembershipStore,
  type ProjectId,
  type UserId,
  WebhookStore,
  hostOrigin,
  knownEventTypes,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { judgeOf, leads, longAgo, p1, p2, p3, users } from "./operations.ts"
import type { World } from "./world.ts"

/** What is seen, part by part. */
export type Seen = Readonly<Record<string, unknown>>

const orTag = <A, E extends { readonly _tag: string }, R>(work: Effect.Effect<A, E, R>) =>
  Effect.catch(work, (error) => Effect.succeed(error._tag))

const sorted = (all: ReadonlyArray<unknown>): ReadonlyArray<string> =>
  all.map((one) => JSON.stringify(one)).toSorted()

/** An event, without its id, its time and its sequence. */
const told = (event: Event) => {
  const data: Record<string, unknown> = { ...Object(eventData(event)) }
  const sequence = Number(data["sequence"] ?? NaN)
  delete data["sequence"]
  return { id: event.id, type: event.type, data, sequence, user: data["user_id"] }
}

/** Reads the project's feed from a place to its end. */
const readFeed = Effect.fnUntraced(function* (from: FeedStart) {
  const feed = yield* FeedStore
  const events: Array<Event> = []
  let at = from
  let isLast = false
  while (!isLast) {
    const page = yield* feed.read([p1], at, { events: 100, bytes: 1_000_000 })
    events.push(...page.events)
    at = page.cursor
    isLast = page.isLast
  }
  return { events, cursor: at }
}, orTag)

/** What a reader has got from the feed when the operations overlap, and where it goes on. */
export interface Reader {
  readonly events: ReadonlyArray<Event>
  readonly cursor: FeedStart
}

/** Has a reader begin. */
export const beginReading = Effect.map(readFeed("start"), (read): Reader =>
  typeof read === "string" ? { events: [], cursor: "start" } : read,
)

/** Has a reader go on. Returns what it has got wrong, when all that it should get is there. */
export const endReading = Effect.fnUntraced(function* ({ cursor, events }: Reader) {
  const [rest, all] = [yield* readFeed(cursor), yield* readFeed("start")]
  if (typeof rest === "string" || typeof all === "string") return []
  const idsOf = (some: ReadonlyArray<Event>) => sorted(some.map(({ id }) => id)).join()
  return idsOf([...events, ...rest.events]) === idsOf(all.events)
    ? []
    : [
        `a reader of the feed has got ${rest.events.length} events after ${events.length}, not ${all.events.length}`,
      ]
})

const sweepAll = Effect.fnUntraced(function* (judge: DecideAnnouncement) {
  const { expiry } = yield* MembershipStore
  if (expiry === undefined) return
  let goesOn = true
  while (goesOn) {
    const { events, isMore } = yield* expiry.sweep(100, judge)
    const hasResumed = events.some(({ type }) => type === knownEventTypes.resumed)
    // The next check is a millisecond later.
    if (hasResumed) yield* Effect.sleep(5)
    goesOn = isMore || hasResumed
  }
})

const datesOf = (memberships: ReadonlyArray<Membership>) =>
  memberships.map(({ endDate, inDays, keptDay, pause, userId }) =>
    [
      userId,
      formatEndDate(endDate),
      inDays && "in days",
      keptDay,
      pause && `paused ${pause.since} ${pause.until}`,
    ]
      .filter(Boolean)
      .join(" "),
  )

const membersOf = (projectId: ProjectId) =>
  Effect.flatMap(MembershipStore, (store) =>
    Effect.map(store.list(projectId, { after: undefined, limit: 100 }), datesOf),
  )

/** Reads the members and their dates. */
export const readMembers = orTag(membersOf(p1))

const historyOf = (projectId: ProjectId | undefined, userId?: UserId) =>
  Effect.flatMap(MembershipStore, (store) => store.history(projectId, { userId, limit: 100 })).pipe(
    Effect.map((rows) =>
      rows.map((row) =>
        [
          row.action,
          row.userId,
          row.subject,
          row.from && formatEndDate(row.from),
          "to",
          row.to && formatEndDate(row.to),
        ].join(" "),
      ),
    ),
    orTag,
  )

const endingOf = Effect.fnUntraced(function* (projectId: ProjectId) {
  const store = yield* MembershipStore
  const all: Array<string> = []
  let after: EndingCursor | undefined
  do {
    const page = yield* store.listEnding(projectId, {
      before: EndDate(Date.UTC(2100)),
      after,
      limit: 2,
    })
    all.push(...datesOf(page.memberships))
    after = page.next
  } while (after !== undefined)
  return all
})

const deliveriesOf = (schema: string): string => `
  WITH delivery AS (
    SELECT event_id, webhook_id, state, claim_count, attempts FROM ${schema}.deliveries
    UNION ALL
    SELECT event_id, webhook_id, state, jsonb_array_length(attempts), attempts FROM ${schema}.finished_deliveries
    UNION ALL
    SELECT unnest(event_ids), webhook_id, 'delivered', 1, '[1]' FROM ${schema}.delivered_runs
  )
  SELECT d.webhook_id || ' '
         -- The next claim does that.
         || CASE WHEN d.state NOT IN ('fresh', 'ready', 'later') THEN d.state
            WHEN w.id IS NULL THEN 'cancelled'
            WHEN w.disabled_by = 'failures' THEN 'failed'
            ELSE d.state END
         || ' ' || d.claim_count || ' ' || jsonb_array_length(d.attempts) || ' '
         || (e.body::jsonb - 'timestamp' #- '{data,sequence}')::text AS delivery
  FROM delivery d
  JOIN ${schema}.events e ON e.id = d.event_id
  JOIN ${schema}.projects p ON p.number = e.project_number
  LEFT JOIN ${schema}.webhooks w ON w.id = d.webhook_id
  ORDER BY delivery
`

// Of each table, the rows without what differs from run to run.
const kept = {
  projects: "to_jsonb(t) - 'number'",
  memberships: "to_jsonb(t)",
  bulk_extensions: "to_jsonb(t)",
  webhooks: `to_jsonb(t) - '{position,disabled_at,failing_since,paused_until}'::text[]
    || jsonb_build_array(disabled_at IS NULL, failing_since IS NULL, paused_until > now())`,
  events: "jsonb_build_array(project_number, type, body::jsonb - 'timestamp')",
  deliveries: `to_jsonb(t) - '{event_id,position,next_attempt_at,attempted_at}'::text[]
    || jsonb_build_array(next_attempt_at <= now(), (SELECT e.body::jsonb - 'timestamp' FROM events e WHERE e.id = event_id))`,
  leases: "jsonb_build_array(webhook_id, cardinality(positions))",
  finished_deliveries: `to_jsonb(t) - '{event_id,position,attempted_at}'::text[]
    || jsonb_build_array((SELECT e.body::jsonb - 'timestamp' FROM events e WHERE e.id = event_id))`,
  delivered_runs: `to_jsonb(t) - '{first_event,first_position,last_position,attempted_at,event_ids,positions}'::text[]
    || (SELECT jsonb_agg(e.body::jsonb - 'timestamp' ORDER BY u.n)
        FROM unnest(event_ids) WITH ORDINALITY u (id, n) LEFT JOIN events e USING (id))`,
  audit: `to_jsonb(t) - '{id,at}'::text[]
    || jsonb_build_array(row_number() OVER (PARTITION BY project_number ORDER BY seq, id))`,
  idempotency_keys: "to_jsonb(t) - 'at'",
  expiry_passes: "to_jsonb(t) - '{id,begun_in}'::text[]",
  deleted_projects: "to_jsonb(t) - 'deleted_in'",
}

/** A statement that returns all that is stored, in one row. Two states with the same row look the same. */
export const everything = (schema: string): string =>
  `SELECT concat_ws(E'\\n', ${Object.entries(kept)
    .map(
      ([table, row]) =>
        `(SELECT string_agg(row, E'\\n' ORDER BY row) FROM (
           SELECT '${table} ' || (${row.replace("events e", `${schema}.events e`)})::text AS row FROM ${schema}.${table} t
         ) r)`,
    )
    .join(", ")}) AS everything`

const webhooksOf = (schema: string): string => `
  SELECT jsonb_build_object(
    'id', id, 'secret', secret, 'previous', previous_secret, 'disabled', disabled_by,
    'failures', failures, 'failing', failing_since IS NOT NULL, 'held', paused_until > now(),
    'concurrency', concurrency
  )::text AS webhook
  FROM ${schema}.webhooks ORDER BY id
`

const centuryMillis = 100 * 365 * 86_400_000

/** Who is said to have ended when all time has passed. */
const announceAll = Effect.fnUntraced(function* (before: ReadonlyArray<Event>) {
  yield* sweepAll(makeDecideAnnouncement({ leads, since: -Number.MAX_SAFE_INTEGER }))
  const read = yield* readFeed("start")
  if (typeof read === "string") return read
  const known = new Set(before.map(({ id }) => id))
  return sorted(
    read.events.filter(({ id }) => !known.has(id)).map((event) => [event.type, told(event).user]),
  )
})

/** All members' dates as if there had been no bulk extension. */
const undoAll = Effect.gen(function* () {
  const store = yield* MembershipStore
  for (const { id, undone } of yield* store.bulkExtensions(p1, { after: undefined, limit: 100 })) {
    if (undone !== undefined) continue
    yield* store.undoBulkExtension({
      projectId: p1,
      bulkExtensionId: id,
      madeAfter: longAgo,
      at: 0,
      origin: hostOrigin,
      reason: undefined,
      event: draftEvent({
        id: newEventId(crypto, 0),
        projectId: p1,
        type: knownEventTypes.extensionUndone,
        at: 0,
        data: { project_id: p1 },
      }),
    })
  }
  return yield* membersOf(p1)
}).pipe(orTag)

const isOfAll = (type: EventType): boolean =>
  type === knownEventTypes.bulkExtended ||
  type === knownEventTypes.extensionUndone ||
  type === knownEventTypes.imported

/** Looks at everything, and lets all time pass. */
export const observe = async ({
  advance,
  gates,
  processes,
  schema,
  setting,
}: World): Promise<{ readonly seen: Seen; readonly broken: ReadonlyArray<string> }> => {
  const { run } = processes.second
  const broken: Array<string> = []
  const { feed, seen } = await run(
    Effect.gen(function* () {
      const store = yield* MembershipStore
      const webhooks = yield* WebhookStore
      yield* sweepAll(judgeOf(setting))
      const members = yield* readMembers
      const summary = yield* orTag(store.findProject(p1))
      const ending = yield* orTag(endingOf(p1))
      const read = yield* readFeed("start")
      const events = typeof read === "string" ? [] : read.events
      const known = events.map(told)

      if (typeof members !== "string") {
        const now = new Date().toISOString()
        const active = members.filter(
          (one) => (one.split(" ")[1] ?? "") > now && !one.includes("paused"),
        )
        const dates = typeof ending === "string" ? [] : ending.map((one) => one.split(" ")[1])
        // Those with the same date come in any order.
        const isOrdered = dates.join() === dates.toSorted().join()
        if (!isOrdered || sorted([ending].flat()).join() !== sorted(active).join())
          broken.push(`the list by ends has ${JSON.stringify(ending)}`)
        if (typeof summary === "string" || summary.memberships !== members.length)
          broken.push(`${members.length} members, counted ${JSON.stringify(summary)}`)
      }
      for (const user of users) {
        const sequences = known.filter((one) => one.user === user).map(({ sequence }) => sequence)
        if (new Set(sequences).size < sequences.length)
          broken.push(`two events of ${user} with one sequence`)
      }

      const histories: Record<string, unknown> = {}
      for (const user of users) histories[user] = yield* historyOf(p1, user)
      const all = yield* historyOf(p1)
      const ofUser = (user: UserId) =>
        known
          .filter((one) => one.user === user || isOfAll(one.type))
          .toSorted((one, other) => one.sequence - other.sequence)
          .map(({ data, type }) => JSON.stringify([type, data]))
      const idsOfWebhooks = Effect.map(webhooks.list(p1), (found) =>
        found.map(({ id }) => id).toSorted(),
      )
      return {
        feed: events,
        seen: {
          members,
          elsewhere: yield* orTag(membersOf(p2)),
          project: summary,
          created: yield* orTag(store.findProject(p3)),
          projects: yield* historyOf(undefined),
          "audit trail": typeof all === "string" ? all : all.toSorted(),
          "audit trails of members": histories,
          feed:
            typeof read === "string" ? read : sorted(known.map(({ data, type }) => [type, data])),
          "events by sequence": Object.fromEntries(users.map((user) => [user, ofUser(user)])),
          "registered webhooks": yield* orTag(idsOfWebhooks),
        },
      }
    }),
  )
  const deliveries = await gates.run<{ readonly delivery: string }>(deliveriesOf(schema))
  const states = await gates.run<{ readonly webhook: string }>(webhooksOf(schema))
  await advance(centuryMillis)
  const announced = await run(announceAll(feed))
  const own = await run(undoAll)
  return {
    broken,
    seen: {
      ...seen,
      deliveries: deliveries.map(({ delivery }) => delivery),
      webhooks: states.map(({ webhook }) => webhook),
      "announced in the end": announced,
      "without bulk extensions": own,
    },
  }
}
