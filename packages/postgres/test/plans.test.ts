/** What statements read: as much as they return, however large the tables are. */

import { describe, expect, it } from "@effect/vitest"
import { deliveryStates } from "@tenure/core/internal"
import { AuditCursor, ProjectId, WebhookId } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { cursorParams, mostBulkRows, projectHistory, userHistory } from "../src/audit.ts"
import { readMinutes, readQuarters } from "../src/delivery-counts.ts"
import { listTroubled, readProgress } from "../src/delivery-progress.ts"
import {
  type ProjectsDueRow,
  beginExpiryPasses,
  continueExpiryPass,
  findDue,
  findDueOf,
  findDueOfParams,
  findDueParams,
  findProjectsDue,
  findProjectsDueParams,
  lookForChecks,
  passParams,
} from "../src/expiry.ts"
import { migrate } from "../src/index.ts"
import { listMemberships, listMembershipsWithPrefix } from "../src/memberships.sql.ts"
import { backlog, findEvent, listAttempted, listDeliveries } from "../src/outbox.sql.ts"
import { replayMany, replayManyParams, replayOne } from "../src/replays.ts"
import { deleteOldEvents, deleteOldFailedDeliveries } from "../src/retention.ts"
import { withAndWithoutKey } from "../src/sql/clauses.ts"
import {
  daysParam,
  flagParam,
  instantParam,
  integerParam,
  textParam,
  uuidParam,
  uuidsParam,
} from "../src/sql/values.ts"
import { blocksReadBy } from "./blocks.ts"
import { clientLayer, executeBy, ownDatabase, sql as query } from "./harness.ts"

const schema = "plans"
const database = ownDatabase("tenure_plans")
const webhookId = "00000000-0000-4000-8000-000000000001"

// The first ids of today.
const prefix = (Date.now() - (Date.now() % 86_400_000)).toString(16).padStart(12, "0")
const start = `${prefix.slice(0, 8)}-${prefix.slice(8)}-7000-9000-`
const eventOf = (n: string): string => `('${start}' || lpad(${n}::text, 12, '0'))::uuid`
const eventId = (n: number): string => start + String(n).padStart(12, "0")

const tables = [
  "memberships",
  "projects",
  "audit",
  "finished_deliveries",
  "deliveries",
  "events",
  "webhooks",
  "delivery_minutes",
  "delivery_quarters",
]

/** Events with one delivery each, nearly all of them delivered, and three in each other state. */
const filled = Layer.effectDiscard(
  Effect.gen(function* () {
    yield* Effect.provide(migrate({ schema }), clientLayer(database))
    yield* executeBy(clientLayer(database))(
      `INSERT INTO ${schema}.projects (id) VALUES ('p1')`,
      `INSERT INTO ${schema}.webhooks (id, project_number, url, secret, created_at)
       VALUES ('${webhookId}', 1, 'https://receiver.example', 'whsec_', now())`,
      `INSERT INTO ${schema}.events (id, project_number, type, at, body)
       SELECT ${eventOf("n")}, 1, 'test', now(), '{}' FROM generate_series(1, 20000) n`,
      `INSERT INTO ${schema}.deliveries (event_id, webhook_id, state, next_attempt_at, attempted_at)
       SELECT ${eventOf("n")}, '${webhookId}', CASE n % 2 WHEN 0 THEN 'failed' ELSE 'ready' END, now(),
              date_trunc('milliseconds', now()) - n * interval '1 hour'
       FROM generate_series(1, 6) n`,
      // Many webhooks in trouble, and counts of many others.
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
         (event_id, webhook_id, position, state, attempted_at, claim_count, attempts)
       SELECT ${eventOf("n")}, '${webhookId}', n + 1000,
              CASE WHEN n < 10 THEN 'cancelled' ELSE 'delivered' END,
              date_trunc('milliseconds', now()) - n * interval '1 second', 1, '[]'
       FROM generate_series(7, 20000) n`,
      // A part for each of thirty days.
      `SELECT ${schema}.create_audit_part(day),
              setval('${schema}.audit_ids', ${schema}.first_audit_id(day))
       FROM (SELECT '2020-01-01'::date + n AS day FROM generate_series(0, 29) n) days`,
      `INSERT INTO ${schema}.audit (id, project_number, seq, user_id, action, at)
       SELECT ${schema}.first_audit_id('2020-01-01'::date + n / 1000) + n, 1, 0,
              (n % 500)::text, 'extended', now()
       FROM generate_series(0, 29999) n`,
      // Many changes of one member, between many bulk extensions.
      `INSERT INTO ${schema}.projects (id) VALUES ('p2')`,
      `INSERT INTO ${schema}.audit (id, project_number, seq, user_id, action, from_date, to_date, at)
       SELECT ${schema}.first_audit_id('2020-01-30') + 100000 + n, 2, n / 2,
              CASE WHEN n % 20 < 9 THEN '7' END,
              CASE WHEN n % 20 < 9 THEN 'extended' ELSE 'bulk_extended' END,
              now(), now(), now()
       FROM generate_series(0, 59999) n`,
      // Another one was a member for some of the time.
      `INSERT INTO ${schema}.audit (id, project_number, seq, user_id, action, to_date, at)
       VALUES (${schema}.first_audit_id('2020-01-30') + 115000, 2, 7501, '8', 'granted', now(), now()),
              (${schema}.first_audit_id('2020-01-30') + 150000, 2, 25001, '8', 'ended', NULL, now())`,
      // Two projects that have members to look at, one of them many, and many others that have none.
      `INSERT INTO ${schema}.projects (id) SELECT 'x' || n FROM generate_series(3, 1000) n`,
      `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq, next_check_at)
       SELECT CASE WHEN n <= 10000 THEN 3 ELSE 3 + n % 997 END, n::text, now(), 0,
              now() + CASE WHEN n <= 10000 OR n % 997 = 1 THEN -1 ELSE 1 END * interval '1 hour'
       FROM generate_series(1, 30000) n`,
      // Their rows are known to be visible to all, so that an index suffices.
      ...tables.map((table) => `VACUUM ANALYZE ${schema}.${table}`),
    )
  }),
)

// Thirty parts, and the levels of two indexes of each: of the rows of a user, and of all users.
const fewInEachPart = 8 * 30

// Both, for a few spans between changes of the user. All rows are in more than 1000 blocks.
const fewOfBoth = 2 * fewInEachPart

// Three rows and the levels of a few indexes, on a few days. All rows are in more than 400 blocks.
// A row of the index and one of the table for each change of all memberships.
const fewOfAllMembers = 3 * mostBulkRows

const few = 60

it.layer(Layer.provideMerge(filled, clientLayer({ ...database, maxConnections: 2 })), {
  excludeTestServices: true,
})("a statement", (test) => {
  describe("that lists deliveries", () => {
    const list = listDeliveries(`"${schema}"`)
    const params = (state: string | undefined, olderThan?: string) => [
      textParam("p1"),
      uuidParam(webhookId),
      textParam(state),
      uuidParam(olderThan),
      integerParam(3),
    ]

    test.effect.each([undefined, ...deliveryStates])("reads little if the state is %s", (state) =>
      Effect.gen(function* () {
        expect(yield* blocksReadBy(list, params(state))).toBeLessThan(few)
        expect(yield* blocksReadBy(list, params(state, eventId(10)))).toBeLessThan(few)
      }),
    )

    test.effect("reads little if the project is another one", () =>
      Effect.gen(function* () {
        const other = [textParam("p2"), ...params(undefined).slice(1)]
        expect(yield* blocksReadBy(list, other)).toBeLessThan(few)
      }),
    )
  })

  describe("that lists deliveries by their latest attempt", () => {
    const list = listAttempted(`"${schema}"`)
    const params = (state: string | undefined, before?: readonly [number, string]) => [
      textParam("p1"),
      uuidParam(webhookId),
      textParam(state),
      instantParam(before?.[0]),
      uuidParam(before?.[1]),
      integerParam(3),
    ]

    test.effect.each([undefined, ...deliveryStates])("reads little if the state is %s", (state) =>
      Effect.gen(function* () {
        expect(yield* blocksReadBy(list, params(state))).toBeLessThan(few)
        const twoHoursAgo = Date.now() - 2 * 3_600_000
        expect(yield* blocksReadBy(list, params(state, [twoHoursAgo, eventId(7200)]))).toBeLessThan(
          few,
        )
      }),
    )
  })

  describe("that tells how webhooks are doing", () => {
    test.effect("reads little of a webhook with many deliveries", () =>
      Effect.gen(function* () {
        const params = [textParam("p1"), uuidsParam([webhookId])]
        expect(yield* blocksReadBy(readProgress(`"${schema}"`), params)).toBeLessThan(few)
      }),
    )

    test.effect("reads little of many webhooks in trouble", () =>
      Effect.gen(function* () {
        const list = listTroubled(`"${schema}"`)
        expect(yield* blocksReadBy(list, [integerParam(3)])).toBeLessThan(2 * few)
      }),
    )

    test.effect("reads little of the counts of many", () =>
      Effect.gen(function* () {
        const [minutes, quarters] = [readMinutes(`"${schema}"`), readQuarters(`"${schema}"`)]
        for (const projectId of [undefined, "p1"]) {
          expect(yield* blocksReadBy(minutes, [textParam(projectId)])).toBeLessThan(2 * few)
        }
        const webhook = [textParam("p1"), uuidParam(webhookId)]
        // Each row may be in another block.
        expect(yield* blocksReadBy(quarters, webhook)).toBeLessThan(2 * few)
      }),
    )
  })

  describe("that counts what is left to deliver", () => {
    test.effect("reads little", () =>
      Effect.gen(function* () {
        expect(yield* blocksReadBy(backlog(`"${schema}"`), [integerParam(10_000)])).toBeLessThan(
          few,
        )
      }),
    )
  })

  describe("that finds an event", () => {
    const find = findEvent(`"${schema}"`)

    test.effect.each([1, 2, 7, 5000])("reads little if it is number %s", (n) =>
      Effect.gen(function* () {
        expect(yield* blocksReadBy(find, [textParam("p1"), uuidParam(eventId(n))])).toBeLessThan(
          few / 2,
        )
      }),
    )
  })

  describe("that starts deliveries again", () => {
    test.effect("reads little", () =>
      Effect.gen(function* () {
        const one = withAndWithoutKey(`"${schema}"`, replayOne, 3).always
        const params = [textParam("p1"), uuidParam(webhookId), uuidParam(eventId(5000))]
        expect(yield* blocksReadBy(one, params)).toBeLessThan(few)
        const many = withAndWithoutKey(`"${schema}"`, replayMany, 10).always
        const tomorrow = replayManyParams(
          { projectId: ProjectId("p1"), webhookId: WebhookId(webhookId) },
          {
            since: Date.now() + 86_400_000,
            types: undefined,
            kinds: ["missed", "failed"],
            position: undefined,
            isDryRun: false,
          },
        )
        // All events are in more than 1000 blocks.
        expect(yield* blocksReadBy(many, tomorrow)).toBeLessThan(1000)
      }),
    )
  })

  describe("that reads the audit trail", () => {
    test.effect("reads little in each part", () =>
      Effect.gen(function* () {
        const page = [textParam("p1"), integerParam(3), ...cursorParams(undefined)]
        const project = projectHistory(`"${schema}"`)
        expect(yield* blocksReadBy(project, page)).toBeLessThan(fewInEachPart)
        const user = userHistory(`"${schema}"`)
        expect(yield* blocksReadBy(user, [...page, textParam("nobody")])).toBeLessThan(
          fewInEachPart + fewOfAllMembers,
        )
      }),
    )

    test.effect.each([
      ["first", undefined],
      ["middle", "20000.0"],
      ["last", "3.0"],
    ])("reads little for the %s page of one of many changes", ([_name, after]) =>
      Effect.gen(function* () {
        const history = userHistory(`"${schema}"`)
        for (const userId of ["7", "8"]) {
          const cursor = cursorParams(after === undefined ? undefined : AuditCursor(after))
          const page = [textParam("p2"), integerParam(3), ...cursor, textParam(userId)]
          expect(yield* blocksReadBy(history, page)).toBeLessThan(fewOfBoth + fewOfAllMembers)
        }
      }),
    )
  })

  describe("that lists memberships", () => {
    test.effect.each([undefined, false])("reads as much as it returns (active: %s)", (isActive) =>
      Effect.gen(function* () {
        const list = listMemberships(`"${schema}"`)
        for (const after of ["", "5"]) {
          const page = [textParam("x3"), textParam(after), integerParam(10), flagParam(isActive)]
          expect(yield* blocksReadBy(list, [...page, instantParam(Date.now())])).toBeLessThan(few)
          const listWithPrefix = listMembershipsWithPrefix(`"${schema}"`)
          for (const text of ["77", "nobody"]) {
            const params = [...page, instantParam(Date.now()), textParam(text)]
            expect(yield* blocksReadBy(listWithPrefix, params)).toBeLessThan(few)
          }
        }
      }),
    )
  })

  describe("that looks for ends to announce", () => {
    test.effect("reads as much as it returns, however many have come", () =>
      Effect.gen(function* () {
        // Each is locked, with its project.
        const due = findDue(`"${schema}"`)
        expect(yield* blocksReadBy(due, findDueParams(5))).toBeLessThan(2 * few)
        const dueOf = findDueOf(`"${schema}"`)
        expect(yield* blocksReadBy(dueOf, findDueOfParams(10, [3n, 4n]))).toBeLessThan(2 * few)
      }),
    )

    test.effect("reads little of each project in turn", () =>
      Effect.gen(function* () {
        const projects = findProjectsDue(`"${schema}"`)
        const [first] = yield* query<ProjectsDueRow>(projects, findProjectsDueParams(10, 0n))
        expect(first).toMatchObject({ due: "[3,4]" })
        expect(Number(first?.last)).toBe(10)
        expect(yield* blocksReadBy(projects, findProjectsDueParams(10, 500n))).toBeLessThan(few)
      }),
    )

    test.effect("reads next to nothing if none has come", () =>
      Effect.gen(function* () {
        // A table without rows that were there: others may have a transaction open that still sees them.
        yield* query(`TRUNCATE ${schema}.memberships`)
        yield* query(
          `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq, next_check_at)
           SELECT 3, n::text, now(), 0, now() + interval '1 hour' FROM generate_series(1, 10000) n`,
        )
        expect(yield* blocksReadBy(lookForChecks(`"${schema}"`), [])).toBeLessThan(10)
        expect(yield* blocksReadBy(findDue(`"${schema}"`), findDueParams(500))).toBeLessThan(5)
        expect(yield* blocksReadBy(beginExpiryPasses(`"${schema}"`), passParams(100))).toBeLessThan(
          5,
        )
        expect(
          yield* blocksReadBy(continueExpiryPass(`"${schema}"`), passParams(500)),
        ).toBeLessThan(5)
      }),
    )

    test.effect(
      "reads nothing of other projects if all of one have come since the statistics were made",
      () =>
        Effect.gen(function* () {
          yield* query(
            `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq, next_check_at)
           SELECT 5, n::text, now(), 0, now() + interval '1 hour' FROM generate_series(1, 1000) n`,
          )
          yield* query(`ANALYZE ${schema}.memberships`)
          yield* query(
            `UPDATE ${schema}.memberships SET next_check_at = now() - interval '1 hour' WHERE project_number = 3`,
          )
          const projects = findProjectsDue(`"${schema}"`)
          expect(yield* blocksReadBy(projects, findProjectsDueParams(10, 3n))).toBeLessThan(few)
          const dueOf = findDueOf(`"${schema}"`)
          expect(yield* blocksReadBy(dueOf, findDueOfParams(10, [4n, 5n]))).toBeLessThan(few)
        }),
    )
  })

  describe("that deletes old events", () => {
    test.effect("reads little if there are none", () =>
      Effect.gen(function* () {
        for (const forget of [deleteOldEvents, deleteOldFailedDeliveries]) {
          const sql = forget(`"${schema}"`)
          expect(yield* blocksReadBy(sql, [daysParam(86_400_000)])).toBeLessThan(few)
        }
      }),
    )
  })
})
