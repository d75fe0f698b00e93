/** What statements read: as much as they return, however large the tables are. */

import { PgClient } from "@effect/sql-pg"
import { expect, it } from "@effect/vitest"
import { deliveryStates } from "@tenure/core/internal"
import { ApiKeyId, AuditCursor, ProjectId, WebhookId, maxSearchedRows } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  cursorParams,
  maxBulkRows,
  projectHistory,
  searchParams,
  searchProjectHistory,
  userHistory,
} from "../src/audit.ts"
import { selectChanges, selectChangesParams } from "../src/changed-members.ts"
import { readMinutes, readQuarters } from "../src/delivery-counts.ts"
import { listTroubled, readProgress } from "../src/delivery-progress.ts"
import {
  beginExpiryPasses,
  continueExpiryPass,
  findChecksDue,
  passParams,
} from "../src/expiry-passes.ts"
import {
  type ProjectsDueRow,
  findDue,
  findDueOf,
  findDueOfParams,
  findDueParams,
  findProjectsDue,
  findProjectsDueParams,
} from "../src/expiry.ts"
import { migrate } from "../src/index.ts"
import { listMemberships, listMembershipsWithPrefix } from "../src/memberships.sql.ts"
import { backlog, findEvent, listAttempted, listDeliveries } from "../src/outbox.sql.ts"
import { endPauses } from "../src/pauses.sql.ts"
import { replayMany, replayManyParams, replayOne } from "../src/replays.ts"
import { deleteOldEvents, deleteOldFailedDeliveries } from "../src/retention.ts"
import { withAndWithoutKey } from "../src/sql/clauses.ts"
import {
  daysParam,
  instantParam,
  integerParam,
  textParam,
  uuidParam,
  uuidsParam,
} from "../src/sql/values.ts"
import { blocksReadBy } from "./blocks.ts"
import { clientLayer, ownDatabase, sql as query } from "./harness.ts"

const schema = "plans"
const name = `"${schema}"`
const database = ownDatabase("tenure_plans")
const webhookId = "00000000-0000-4000-8000-000000000001"

// Today's first ids.
const prefix = (Date.now() - (Date.now() % 86_400_000)).toString(16).padStart(12, "0")
const start = `${prefix.slice(0, 8)}-${prefix.slice(8)}-7000-9000-`
const eventOf = (n: string): string => `('${start}' || lpad(${n}::text, 12, '0'))::uuid`
const eventId = (n: number): string => start + String(n).padStart(12, "0")

const tables = [
  "memberships",
  "projects",
  "audit",
  "finished_deliveries",
  "delivered_runs",
  "deliveries",
  "events",
  "webhooks",
  "delivery_minutes",
  "delivery_quarters",
]

/** Events with one delivery each, nearly all delivered, and three in each other state. */
const filled = Layer.effectDiscard(
  Effect.gen(function* () {
    yield* migrate({ schema })
    for (const statement of [
      `INSERT INTO ${schema}.projects (id) VALUES ('p1')`,
      `INSERT INTO ${schema}.webhooks (id, project_number, url, secret, created_at)
       VALUES ('${webhookId}', 1, 'https://receiver.example', 'whsec_', now())`,
      `INSERT INTO ${schema}.events (id, project_number, type, at, body)
       SELECT ${eventOf("n")}, 1, 'test', now(), '{}' FROM generate_series(1, 20000) n`,
      `INSERT INTO ${schema}.deliveries (event_id, webhook_id, state, next_attempt_at, attempted_at)
       SELECT ${eventOf("n")}, '${webhookId}', CASE n % 2 WHEN 0 THEN 'failed' ELSE 'ready' END, now(),
              date_trunc('milliseconds', now()) - n * interval '1 hour'
       FROM generate_series(1, 6) n`,
      // Many webhooks in trouble, and counts for many others.
      `INSERT INTO ${schema}.webhooks
         (id, project_number, url, secret, created_at, failures, failing_since, disabled_at, disabled_by)
       SELECT gen_random_uuid(), 2, 'https://receiver.example', 'whsec_', now(), 1,
              now() - n * interval '1 second', CASE n % 2 WHEN 0 THEN now() - n * interval '1 second' END,
              CASE n % 2 WHEN 0 THEN 'failures' END
       FROM generate_series(1, 4000) n`,
      `INSERT INTO ${schema}.delivery_minutes (project_number, at, delivered, failed)
       SELECT p, date_trunc('minute', now()) - n * interval '1 minute', 1, 1
       FROM generate_series(0, 300) p, generate_series(0, 70) n`,
      `INSERT INTO ${schema}.delivery_quarters (project_number, webhook_id, at, delivered, failed, answer_times)
       SELECT 1, CASE w WHEN 0 THEN '${webhookId}' ELSE gen_random_uuid() END,
              date_trunc('hour', now()) - n * interval '15 minutes', 1, 1, array_fill(0, ARRAY[26])
       FROM generate_series(0, 300) w, generate_series(0, 100) n`,
      `INSERT INTO ${schema}.finished_deliveries
         (event_id, webhook_id, position, state, attempted_at, attempts)
       SELECT ${eventOf("n")}, '${webhookId}', n + 1000,
              CASE WHEN n < 10 THEN 'cancelled' ELSE 'delivered' END,
              date_trunc('milliseconds', now()) - n * interval '1 second', '[]'
       FROM generate_series(7, 10000) n`,
      `INSERT INTO ${schema}.delivered_runs
         (project_number, webhook_id, first_event, first_position, last_position, attempted_at, event_ids, positions,
          starts, durations, result)
       SELECT 1, '${webhookId}', min(${eventOf("n")}::text)::uuid, min(n) + 1000, max(n) + 1000,
              date_trunc('milliseconds', now()) - min(n) * interval '1 second', array_agg(${eventOf("n")} ORDER BY n),
              array_agg(n + 1000 ORDER BY n), array_agg(1 ORDER BY n), array_agg(1 ORDER BY n), '{}'
       FROM generate_series(10001, 20000) n GROUP BY (n - 1) / 50`,
      // A part for each day, for a month.
      `SELECT ${schema}.create_audit_part(day),
              setval('${schema}.audit_ids', ${schema}.first_audit_id(day))
       FROM (SELECT '2020-01-01'::date + n AS day FROM generate_series(0, 29) n) days`,
      `INSERT INTO ${schema}.audit (id, project_number, seq, user_id, action, at)
       SELECT ${schema}.first_audit_id('2020-01-01'::date + n / 1000) + n, 1, 0,
              (n % 500)::text, 'extended', now()
       FROM generate_series(0, 29999) n`,
      // Many changes to one member, between many bulk extensions.
      `INSERT INTO ${schema}.projects (id) VALUES ('p2')`,
      `INSERT INTO ${schema}.audit (id, project_number, seq, user_id, action, from_date, to_date, at)
       SELECT ${schema}.first_audit_id('2020-01-30') + 100000 + n, 2, n / 2,
              CASE WHEN n % 20 < 9 THEN '7' END,
              CASE WHEN n % 20 < 9 THEN 'extended' ELSE 'bulk_extended' END,
              now(), now(), now()
       FROM generate_series(0, 59999) n`,
      // Another one was a member for some time.
      `INSERT INTO ${schema}.audit (id, project_number, seq, user_id, action, to_date, at)
       VALUES (${schema}.first_audit_id('2020-01-30') + 115000, 2, 7501, '8', 'granted', now(), now()),
              (${schema}.first_audit_id('2020-01-30') + 150000, 2, 25001, '8', 'ended', NULL, now())`,
      // Two projects that have members to look at, one many, and many other projects without.
      `INSERT INTO ${schema}.projects (id) SELECT 'x' || n FROM generate_series(3, 1000) n`,
      `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq, next_check_at)
       SELECT CASE WHEN n <= 10000 THEN 3 ELSE 3 + n % 997 END, n::text, now(), 0,
              now() + CASE WHEN n <= 10000 OR n % 997 = 1 THEN -1 ELSE 1 END * interval '1 hour'
       FROM generate_series(1, 30000) n`,
      // Their rows are known to be visible to all, so that an index suffices.
      ...tables.map((table) => `VACUUM ANALYZE ${schema}.${table}`),
    ])
      yield* query(statement)
  }),
)

const few = 60

// Thirty parts, and two indexes' levels in each: by user, and for all users.
const fewInEachPart = 8 * 30

// An index row and a table row for each change to all memberships.
const fewOfAllMembers = 3 * maxBulkRows

const p1 = textParam("p1")
const [webhook, three] = [uuidParam(webhookId), integerParam(3)]

/** A statement, its parameters, and below how many blocks it reads. */
type Read = readonly [statement: string, params: ReadonlyArray<unknown>, most: number]

const anyState = [undefined, ...deliveryStates].map(textParam)
const twoHoursAgo = [instantParam(Date.now() - 2 * 3_600_000), uuidParam(eventId(7200))]

const listing = anyState.flatMap((state): ReadonlyArray<Read> => {
  const older = [undefined, eventId(10)].map(uuidParam)
  const before = [[instantParam(undefined), uuidParam(undefined)], twoHoursAgo]
  return [
    ...older.map((id) => [listDeliveries(name), [p1, webhook, state, id, three], few] as const),
    ...before.map(
      (place) => [listAttempted(name), [p1, webhook, state, ...place, three], few] as const,
    ),
  ]
})

const ofOtherProject = [textParam("p2"), webhook, textParam(undefined), uuidParam(undefined), three]

const missedSinceTomorrow = replayManyParams(
  { projectId: ProjectId("p1"), webhookId: WebhookId(webhookId) },
  {
    since: Date.now() + 86_400_000,
    types: undefined,
    kinds: ["missed", "failed"],
    position: undefined,
    isDryRun: false,
  },
)

const firstPage = [p1, three, ...cursorParams(undefined)]

/** Pages from two long trails: the first, one in the middle, and the last. */
const ofMembers = [undefined, "20000.0", "3.0"].flatMap((after) =>
  ["7", "8"].map((userId): Read => {
    const cursor = cursorParams(after === undefined ? undefined : AuditCursor(after))
    const params = [textParam("p2"), three, ...cursor, textParam(userId)]
    // Both, for a few spans between the user's changes. All rows are in more than 1000 blocks.
    return [userHistory(name), params, 2 * fewInEachPart + fewOfAllMembers]
  }),
)

// Each row may be read twice, and takes a sixtieth of a block. All rows are in more than 1000 blocks.
const fewOfSearch = 2 * fewInEachPart + (2 * maxSearchedRows) / 40

const byNobody = { keyId: ApiKeyId("nobody"), limit: 3 }

/** Pages that find nothing, in a long trail and outside projects. */
const searching = [undefined, "20000.0"].flatMap((after): ReadonlyArray<Read> => {
  const page = { ...byNobody, after: after === undefined ? undefined : AuditCursor(after) }
  return [
    [searchProjectHistory(name), searchParams(ProjectId("p2"), page), fewOfSearch],
    [searchProjectHistory(name), searchParams(undefined, page), fewOfSearch],
  ]
})

/** Pages of selected changes: one that finds nothing in the last parts, and the first members in all parts. */
const selectingChanges = (
  [
    ["nobody", Date.now() + 2 * 86_400_000, fewInEachPart + 1000],
    [undefined, 0, 4 * fewInEachPart],
  ] as const
).map(([key, since, most]): Read => {
  const keyId = key && ApiKeyId(key)
  const selection = { keyId, requestIds: undefined, since, until: undefined }
  const page = { selection, after: undefined, limit: 3 }
  // All rows are in more than 30,000 blocks, if each is read by its user.
  return [selectChanges(name), selectChangesParams(ProjectId("p1"), page), most]
})

const listingMembers = [undefined, "expired"].flatMap((state) =>
  ["", "5"].flatMap((after): ReadonlyArray<Read> => {
    const page = [textParam("x3"), textParam(after), integerParam(10), textParam(state)]
    // When they have ended.
    const params = [...page, instantParam(Date.now() + 3_600_000)]
    return [
      [listMemberships(name), params, few],
      ...["77", "nobody"].map(
        (text) => [listMembershipsWithPrefix(name), [...params, textParam(text)], few] as const,
      ),
    ]
  }),
)

const reading: Readonly<Record<string, ReadonlyArray<Read>>> = {
  "lists deliveries, in any state, newest first or by their latest attempt": listing,
  "lists the deliveries of another project": [[listDeliveries(name), ofOtherProject, few]],
  "tells how a webhook with many deliveries is doing": [
    [readProgress(name), [p1, uuidsParam([webhookId])], few],
  ],
  "lists some of many webhooks in trouble": [[listTroubled(name), [three], 2 * few]],
  // Each row may be in another block.
  "reads some of many counts": [
    [readMinutes(name), [textParam(undefined)], 2 * few],
    [readMinutes(name), [p1], 2 * few],
    [readQuarters(name), [p1, webhook], 2 * few],
  ],
  "counts what is left to deliver": [[backlog(name), [integerParam(10_000)], few]],
  "finds an event": [1, 2, 7, 5000].map((n) => [
    findEvent(name),
    [p1, uuidParam(eventId(n))],
    few / 2,
  ]),
  "starts deliveries again": [
    [withAndWithoutKey(name, replayOne, 3).always, [p1, webhook, uuidParam(eventId(5000))], few],
    // All events are in more than 1000 blocks.
    [withAndWithoutKey(name, replayMany, 10).always, missedSinceTomorrow, 1000],
  ],
  "reads the audit trail, in each part": [
    [projectHistory(name), firstPage, fewInEachPart],
    [userHistory(name), [...firstPage, textParam("nobody")], fewInEachPart + fewOfAllMembers],
    ...ofMembers,
  ],
  "searches the audit trail": searching,
  "selects changes, member by member": selectingChanges,
  "lists memberships": listingMembers,
  "ends pauses, of which none is over": [[endPauses(name), [textParam("x3")], few]],
  // Each is locked, with its project.
  "looks for ends to announce, however many have come": [
    [findDue(name), findDueParams(5), 2 * few],
    [findDueOf(name), findDueOfParams(10, [3n, 4n]), 2 * few],
    [findProjectsDue(name), findProjectsDueParams(10, 500n), few],
  ],
  "deletes old events and deliveries, of which there are none": [
    [deleteOldEvents(name), [daysParam(86_400_000)], few],
    [deleteOldFailedDeliveries(name), [daysParam(86_400_000)], few],
  ],
}

const expectLittle = (all: ReadonlyArray<Read>) =>
  Effect.forEach(all, ([statement, params, most], index) =>
    Effect.map(blocksReadBy(statement, params), (blocks) =>
      expect(blocks, `${index}: ${statement}`).toBeLessThan(most),
    ),
  )

const addMembers = (project: number, count: number) =>
  query(
    `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq, next_check_at)
     SELECT ${project}, n::text, now(), 0, now() + interval '1 hour' FROM generate_series(1, ${count}) n`,
  )

it.layer(Layer.provideMerge(filled, clientLayer({ ...database, maxConnections: 2 })), {
  excludeTestServices: true,
})("a statement", (test) => {
  test.effect.each(Object.entries(reading))("that %s reads little", ([, all]) => expectLittle(all))

  test.effect("that looks for ends to announce takes each project in turn", () =>
    Effect.gen(function* () {
      const params = findProjectsDueParams(10, 0n)
      const [first] = yield* query<ProjectsDueRow>(findProjectsDue(name), params)
      expect({ ...first, last: Number(first?.last) }).toMatchObject({ due: "[3,4]", last: 10 })
    }),
  )

  /** Undoes its effect, so that the others read what they would have read. */
  const undone = <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.flatMap(PgClient.PgClient, (client) =>
      Effect.flip(client.withTransaction(Effect.flatMap(work, Effect.fail))),
    )

  test.effect("that looks for ends to announce reads next to nothing if none has come", () =>
    undone(
      Effect.gen(function* () {
        // A table without rows that were there: others may have a transaction open that still sees them.
        yield* query(`TRUNCATE ${schema}.memberships`)
        yield* addMembers(3, 10_000)
        yield* expectLittle([
          [findChecksDue(name), [], 10],
          [findDue(name), findDueParams(500), 5],
          [beginExpiryPasses(name), passParams(100), 5],
          [continueExpiryPass(name), passParams(500), 5],
        ])
      }),
    ),
  )

  test.effect(
    "that looks for ends reads none of other projects if all of one have come since the statistics were made",
    () =>
      undone(
        Effect.gen(function* () {
          yield* query(`TRUNCATE ${schema}.memberships`)
          yield* addMembers(3, 10_000)
          yield* addMembers(5, 1000)
          yield* query(`ANALYZE ${schema}.memberships`)
          yield* query(
            `UPDATE ${schema}.memberships SET next_check_at = now() - interval '1 hour' WHERE project_number = 3`,
          )
          yield* expectLittle([
            [findProjectsDue(name), findProjectsDueParams(10, 3n), few],
            [findDueOf(name), findDueOfParams(10, [4n, 5n]), few],
          ])
        }),
      ),
  )
})
