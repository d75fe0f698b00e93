/** The ends of deliveries that cannot be read, and of a webhook that several settlements announce or disable at once. */

import { PgClient } from "@effect/sql-pg"
import { expect, it } from "@effect/vitest"
import {
  type AttemptResult,
  type Claim,
  type FailingAnnouncement,
  MembershipStore,
  Outbox,
  WebhookStore,
} from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { postgresLayer } from "../src/index.ts"
import { type SettledRow, pickSettle, settle } from "../src/outbox.sql.ts"
import { claimAll, clientLayer, execute, sql } from "./harness.ts"

const schema = "ends"
const { occasion, p1 } = Fixture
const endsWebhook = Fixture.makeWebhook(p1)

const prepared = Layer.effectDiscard(
  Effect.gen(function* () {
    yield* (yield* MembershipStore).createProject(p1, occasion)
    yield* (yield* WebhookStore).add(endsWebhook, 50, occasion)
    const outbox = yield* Outbox
    yield* outbox.publish(Fixture.event(p1))
    yield* outbox.publish(Fixture.event(p1))
  }),
)

const dropped = Layer.effectDiscard(execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`))

const failingSince = 1_800_000_000_000

const attempt = { at: 0, durationMillis: 1, result: { _tag: "Failed", reason: "Timeout" } } as const

const failing = (percent: FailingAnnouncement["percent"]): FailingAnnouncement => ({
  percent,
  failingSince,
  event: Fixture.event(p1, `failing.${percent}`),
})

const retryFailing = (percent: FailingAnnouncement["percent"]): AttemptResult => ({
  _tag: "Retry",
  attempt,
  delayMillis: 0,
  holdMillis: 0,
  failing: failing(percent),
})

const disable = (announced?: FailingAnnouncement): AttemptResult => ({
  _tag: "Disabled",
  attempt,
  announcement: Fixture.event(p1, "disabled"),
  failing: announced,
})

const settleAll = (claims: ReadonlyArray<Claim>, settlements: ReadonlyArray<AttemptResult>) =>
  sql<SettledRow>(
    ...pickSettle(
      settle(`"${schema}"`),
      claims.flatMap((claim, index) => {
        const settlement = settlements[index]
        return settlement === undefined ? [] : [{ claim, settlement }]
      }),
    ),
  )

const resultsOf = (rows: ReadonlyArray<SettledRow>) =>
  rows.toSorted((one, other) => one.n - other.n).map(({ result }) => result)

const announced = Effect.map(
  sql<{ readonly type: string }>(
    `SELECT type FROM ${schema}.events WHERE type <> 'test.happened' ORDER BY type`,
  ),
  (rows) => rows.map(({ type }) => type),
)

const startFailing = sql(
  `UPDATE ${schema}.webhooks SET failures = 1, failing_since = to_timestamp(${failingSince / 1000})`,
)

/** Settles a claim apart from all transactions. */
const settledApart = Effect.fnUntraced(function* (claim: Claim, settlement: AttemptResult) {
  const done = yield* Deferred.make<ReadonlyArray<SettledRow>, unknown>()
  const settling = settleAll([claim], [settlement])
  yield* Effect.forkDetach(Deferred.into(settling, done))
  return done
})

const services = prepared.pipe(
  Layer.provideMerge(Layer.fresh(postgresLayer({ schema }))),
  Layer.provideMerge(clientLayer()),
  Layer.provideMerge(dropped),
)

it.live.each([
  ["is disabled", () => disable(), ["Settled", "WebhookDisabled"], ["disabled"]],
  ["is failing", () => retryFailing(50), ["Settled", "WebhookFailing"], ["failing.50"]],
] as const)("a webhook that %s by two settlements is announced once", ([, by, results, types]) =>
  Effect.gen(function* () {
    const client = yield* PgClient.PgClient
    const context = yield* Effect.context<PgClient.PgClient>()
    const { claims } = yield* claimAll
    yield* startFailing
    const waiting = sql(
      `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%"${schema}"%'`,
    )
    const settlings = yield* client.withTransaction(
      Effect.gen(function* () {
        yield* sql(`SELECT FROM ${schema}.webhooks FOR UPDATE`)
        // New fibers run outside of the transaction.
        const apart = Effect.gen(function* () {
          const started = yield* Effect.forEach(claims, (claim) => settledApart(claim, by()))
          yield* Effect.repeat(waiting, { until: (rows) => rows.length === 2 })
          return started
        })
        return yield* Effect.promise(() => Effect.runPromiseWith(context)(apart))
      }),
    )
    const rows = yield* Effect.forEach(settlings, Deferred.await)
    expect(resultsOf(rows.flat()).toSorted()).toEqual(results)
    expect(yield* announced).toEqual(types)
  }).pipe(Effect.provide(services)),
)

it.live.each([
  ["the greatest share", retryFailing(90), retryFailing(50), "WebhookFailing", ["failing.90"]],
  [
    "that it is disabled",
    disable(failing(100)),
    retryFailing(90),
    "WebhookDisabled",
    ["disabled", "failing.100"],
  ],
  ["that it is gone", disable(), retryFailing(50), "WebhookDisabled", ["disabled"]],
  ["nothing after a success", retryFailing(50), { _tag: "Delivered", attempt }, "Settled", []],
  [
    "nothing for an earlier run",
    disable({ ...failing(100), failingSince: 0 }),
    { ...retryFailing(50), failing: undefined },
    "Settled",
    [],
  ],
] as const)("of a failing webhook, a batch announces %s", ([, one, other, result, types]) =>
  Effect.gen(function* () {
    const { claims } = yield* claimAll
    yield* startFailing
    expect(resultsOf(yield* settleAll(claims, [other, one]))).toEqual(["Settled", result])
    expect(yield* announced).toEqual(types)
  }).pipe(Effect.provide(services)),
)

it.live("a delivery that cannot be read is logged as others that are given up", () => {
  const lines: Array<Readonly<Record<string, unknown>>> = []
  const logger = Logger.make(({ fiber, message }) => {
    lines.push({ message: String(message), ...fiber.getRef(References.CurrentLogAnnotations) })
  })
  return Effect.gen(function* () {
    yield* sql(`UPDATE ${schema}.events SET body = repeat('x', 10 * 1024 * 1024)`)
    expect((yield* claimAll).claims).toEqual([])
    const line = {
      message: "A delivery was given up",
      project_id: p1,
      webhook_id: endsWebhook.id,
      event_id: expect.any(String),
      attempts: 1,
      reason: "Unreadable",
    }
    expect(lines).toEqual([line, line])
  }).pipe(Effect.provide(Logger.layer([logger])), Effect.provide(services))
})
