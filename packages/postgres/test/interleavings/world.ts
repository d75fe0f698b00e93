/** A schema with gates, the two processes whose operations meet in it, and what is there before them. */

import { PgClient } from "@effect/sql-pg"
import { derivedEventId, draftEvent, makeEvent, newEventId } from "@tenure/core/internal"
import {
  type ChangeContext,
  type Claim,
  EndDate,
  EventType,
  MembershipStore,
  Outbox,
  type ProjectId,
  type StorePorts,
  type StoredWebhook,
  type UserId,
  WebhookId,
  WebhookStore,
  knownEventTypes,
  hostOrigin,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Redacted from "effect/Redacted"
import * as Pg from "pg"
import type { Database } from "../../src/connection/database.ts"
import { postgresLayer } from "../../src/index.ts"
import { round } from "../../src/sql/clauses.ts"
import { gatedTables, installGates, makeGates, role, sessionName } from "./gates.ts"
import {
  type Setting,
  type WebhookName,
  bulk,
  claimAll,
  dayMillis,
  judgeOf,
  later,
  leads,
  own,
  p1,
  p2,
  plainWebhook,
} from "./operations.ts"

const context: ChangeContext = { origin: hostOrigin, at: 0 }

/** What the membership has that the operations change: where its date comes from, and which number. */
export const scenes = [
  "own date",
  "date of a bulk extension",
  "last number of a round",
  "pause",
  "pause that is over",
] as const

export type Scene = (typeof scenes)[number]

const tables = [...gatedTables, "expiry_settings", "dispatchers"]

/** Instants, by table. */
const instants = {
  memberships: [
    "end_date",
    "date_set_at",
    "next_check_at",
    "ending_lower_bound",
    "announced_end",
    "paused_at",
    "resumes_at",
  ],
  projects: ["bulk_changed_at", "bulk_unseen_since", "next_check_at"],
  bulk_extensions: ["at", "date_set_at", "date_reset_at", "end_date", "minimum", "own_minimum"],
} as const

/** Statements that have so much time pass, by moving all that is stored into the past. */
const passing = (schema: string, millis: number): ReadonlyArray<string> =>
  Object.entries(instants).map(([table, columns]) => {
    const moved = columns.map((one) => `${one} = ${one} - ${millis} * interval '1 millisecond'`)
    return `UPDATE ${schema}.${table} SET ${moved.join(", ")}`
  })

const grantOf = (projectId: ProjectId, userId: UserId, endDate: number, keptDay?: number) =>
  Effect.flatMap(MembershipStore, (store) =>
    store.grant({
      ...context,
      keptDay,
      projectId,
      userId,
      endDate: EndDate(endDate),
      reason: undefined,
      event: draft(projectId, knownEventTypes.granted, userId),
    }),
  )

/** Sets a date that stands, in a pause. */
const pauseOf = (endDate: number, since: number, until?: number) =>
  Effect.flatMap(MembershipStore, (store) =>
    store.import({
      ...context,
      projectId: p1,
      reason: undefined,
      event: draft(p1, knownEventTypes.imported),
      memberships: [
        { userId: own, endDate: EndDate(endDate), keptDay: 30, pause: { since, until } },
      ],
    }),
  )

const draft = (projectId: ProjectId, type: EventType, userId?: UserId) =>
  draftEvent({
    id: newEventId(crypto, Date.now()),
    projectId,
    type,
    at: 0,
    data: { project_id: projectId, ...(userId === undefined ? {} : { user_id: userId }) },
  })

const bulkOf = (mode: "set" | "neverShorten", endDate: number) =>
  Effect.gen(function* () {
    const store = yield* MembershipStore
    const event = draft(p1, knownEventTypes.bulkExtended)
    const inDays = mode === "neverShorten"
    const made = { mode, endDate: EndDate(endDate), inDays } as const
    yield* store.extendAll({ ...context, projectId: p1, bulk: made, reason: undefined, event })
    return event.id
  })

const webhook = (name: WebhookName): StoredWebhook => ({
  ...plainWebhook(name, WebhookId(derivedEventId(name, 0)), 0),
  rate: 10_000,
})

const claimEach = Effect.flatMap(Outbox, claimAll)

/** Makes what is there before the operations. */
const populate = Effect.fnUntraced(function* (
  scene: Scene,
  run: (statement: string) => Effect.Effect<unknown>,
) {
  const at = Date.now()
  const store = yield* MembershipStore
  const registry = yield* WebhookStore
  const outbox = yield* Outbox
  const { expiry } = store
  if (expiry === undefined) return yield* Effect.die("no ends")
  yield* store.createProject(p1, context)
  yield* store.createProject(p2, context)
  yield* expiry.watch(leads)
  const judge = judgeOf({ at })
  for (let isMore = true; isMore;) ({ isMore } = yield* expiry.sweep(100, judge))

  const webhooks = {
    healthy: webhook("healthy"),
    other: webhook("other"),
    disabled: webhook("disabled"),
  }
  for (const one of Object.values(webhooks)) yield* registry.add(one, 10, context)

  const past = at - 3_600_000
  const soon = at + 3_600_000
  yield* grantOf(p2, own, soon)
  yield* grantOf(p1, bulk, at + dayMillis)
  if (scene === "date of a bulk extension") yield* grantOf(p1, own, past, 30)
  const set = yield* bulkOf("set", past)
  const raised = yield* bulkOf("neverShorten", soon)
  if (scene !== "date of a bulk extension") yield* grantOf(p1, own, past, 30)
  yield* grantOf(p1, later, Date.UTC(2034, 0, 1))
  if (scene === "pause") yield* pauseOf(past, at - 10 * dayMillis)
  if (scene === "pause that is over") yield* pauseOf(past, at - 10 * dayMillis, at - dayMillis)

  // One delivery to the healthy webhook is claimed, one to each webhook is open, and another has failed.
  const { claims } = yield* claimEach
  const kept = claims.find((one) => one.webhook.webhookId === webhooks.healthy.id)
  if (kept === undefined) return yield* Effect.die("no claim")
  const attempt = { at, durationMillis: 1, result: { _tag: "Failed", reason: "Timeout" } } as const
  const isOfHealthy = (one: Claim): boolean => one.webhook.webhookId === webhooks.healthy.id
  const settled = claims.filter((one) => one !== kept)
  const answer = { _tag: "Answered", status: 200, body: own } as const
  // Those that are delivered become one run.
  yield* Effect.forEach(
    settled,
    (one) =>
      outbox.settle(
        one,
        isOfHealthy(one)
          ? { _tag: "Delivered", attempt: { ...attempt, result: answer } }
          : { _tag: "Failed", attempt, holdMillis: 0 },
      ),
    { concurrency: "unbounded" },
  )
  const delivered = settled.find(isOfHealthy)
  if (delivered === undefined) return yield* Effect.die("nothing is delivered")
  yield* outbox.publish(
    makeEvent({
      id: newEventId(crypto, at),
      projectId: p1,
      type: EventType("order.made"),
      at,
      data: { project_id: p1 },
    }),
  )
  yield* run(`
    UPDATE webhooks SET disabled_at = '2020-01-01', disabled_by = 'failures' WHERE id = '${webhooks.disabled.id}';
    UPDATE webhooks SET failures = 0, failing_since = NULL, paused_until = NULL, concurrency = 4;
    UPDATE deliveries SET state = 'failed' WHERE webhook_id = '${webhooks.disabled.id}';
    UPDATE memberships SET next_check_at = '2020-01-01' WHERE user_id <> '${later}';
    UPDATE expiry_settings SET since = '2020-01-01';
    -- It waits for transactions of others.
    DELETE FROM expiry_passes;
    -- No process takes this claim for one of a dispatcher that is gone.
    UPDATE dispatchers SET seen_at = 'infinity', session = NULL;
  `)
  // In one scene, the first list by ends is made by an operation.
  if (scene !== "own date")
    yield* store.listEnding(p1, { before: EndDate(Date.UTC(2100)), after: undefined, limit: 10 })
  if (scene === "last number of a round")
    yield* run(
      `UPDATE memberships SET seq = seq - seq % ${round} + ${round - 1} WHERE user_id = '${own}'`,
    )
  const expected = EndDate(
    scene === "date of a bulk extension"
      ? soon
      : scene === "pause that is over"
        ? past + 9 * dayMillis
        : past,
  )
  const setting: Setting = {
    at,
    webhooks,
    claim: kept,
    delivered: delivered.event.id,
    expected,
    bulkExtensions: [set, raised],
  }
  return setting
})

/**
 * Makes a world. Each needs a lock, its own number.
 *
 * @param sabotage - a statement on its tables, which makes operations wrong
 */
export const makeWorld = async (url: string, scene: Scene, lock: number, sabotage = "SELECT") => {
  const schema = `interleavings_${lock}`
  const owned = new URL(url)
  owned.username = role
  owned.password = role
  const admin = new Pg.Client({ connectionString: url })
  admin.on("error", () => undefined)
  await admin.connect()
  const execute = async (...statements: ReadonlyArray<string>): Promise<void> => {
    for (const statement of statements) await admin.query(statement)
  }
  await execute(
    `DROP SCHEMA IF EXISTS ${schema} CASCADE`,
    `DROP SCHEMA IF EXISTS ${schema}_before CASCADE`,
    `SELECT pg_advisory_lock(7236830185)`,
    `DO $$ BEGIN
       IF to_regrole('${role}') IS NULL THEN
         CREATE ROLE ${role} LOGIN PASSWORD '${role}';
         ALTER ROLE ${role} SET deadlock_timeout = '20ms';
       END IF;
     END $$`,
    `SELECT pg_advisory_unlock(7236830185)`,
    `CREATE SCHEMA ${schema} AUTHORIZATION ${role}`,
    `SET search_path = ${schema}`,
    // No trigger has a gate for this session.
    `SET session_replication_role = replica`,
  )
  const start = (applicationName: string, more: object = {}) => {
    const options = { url: Redacted.make(String(owned)), maxConnections: 2, applicationName }
    const client = PgClient.layer({ ...options, ...more })
    const stores = Layer.fresh(postgresLayer({ schema, maxConnections: 2 }))
    const runtime = ManagedRuntime.make(Layer.provide(stores, client))
    return {
      run: <A, E>(work: Effect.Effect<A, E, StorePorts | Database>) => runtime.runPromise(work),
      end: () => runtime.dispose(),
    }
  }

  const preparing = start(`${schema} before`)
  const setting = await preparing.run(
    populate(scene, (statement) => Effect.promise(() => execute(statement))),
  )
  await preparing.end()
  await execute(
    // Dates that were just set would have no reminders.
    `UPDATE memberships SET date_set_at = '2020-01-01'`,
    `UPDATE bulk_extensions SET date_set_at = '2020-01-01'`,
    `CREATE SCHEMA ${schema}_before`,
    ...tables.map((table) => `CREATE TABLE ${schema}_before.${table} AS TABLE ${schema}.${table}`),
    `SET ROLE ${role}`,
    ...installGates(schema, lock),
    `RESET ROLE`,
    sabotage,
  )
  const gates = await makeGates(url, schema, lock)
  const first = start(sessionName(schema, "first"), { stream: gates.stream })
  const second = start(sessionName(schema, "second"))

  const restoring = [
    ...tables.toReversed().map((table) => `DELETE FROM ${schema}.${table};`),
    ...tables.map(
      (table) =>
        `INSERT INTO ${schema}.${table} OVERRIDING SYSTEM VALUE SELECT * FROM ${schema}_before.${table};`,
    ),
  ].join("\n")

  return {
    schema,
    gates,
    setting,
    processes: { first, second },
    /** Makes everything as it was before the operations. */
    restore: () => execute(`DO $$ BEGIN ${restoring} END $$`),
    advance: (millis: number) =>
      execute(`DO $$ BEGIN ${passing(schema, millis).join("; ")}; END $$`),
    end: async () => {
      await Promise.all([first.end(), second.end()])
      await gates.end()
      await execute(`DROP SCHEMA ${schema} CASCADE`, `DROP SCHEMA ${schema}_before CASCADE`)
      await admin.end()
    },
  }
}

/** A schema with gates, and two processes on it. */
export type World = Awaited<ReturnType<typeof makeWorld>>
