/** The ends of deliveries that cannot be read, and of a webhook that two processes disable at once. */

import { PgClient } from "@effect/sql-pg"
import { expect, it } from "@effect/vitest"
import { type Claim, MembershipStore, Outbox, WebhookStore } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { postgresLayer } from "../src/index.ts"
import { type SettledRow, settle, settleParams } from "../src/outbox.sql.ts"
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

/** Settles a claim apart from all transactions: the webhook is gone. */
const disabledBy = Effect.fnUntraced(function* (claim: Claim) {
  const done = yield* Deferred.make<ReadonlyArray<SettledRow>, unknown>()
  const result = { _tag: "Answered", status: 410, body: "" } as const
  const attempt = { at: 0, durationMillis: 1, result }
  const settlement = { _tag: "Disabled", attempt, announcement: Fixture.event(p1) } as const
  const settling = sql<SettledRow>(settle(`"${schema}"`), settleParams([{ claim, settlement }]))
  yield* Effect.forkDetach(Deferred.into(settling, done))
  return done
})

const services = prepared.pipe(
  Layer.provideMerge(Layer.fresh(postgresLayer({ schema }))),
  Layer.provideMerge(clientLayer()),
  Layer.provideMerge(dropped),
)

it.live("a webhook that is disabled twice is announced once", () =>
  Effect.gen(function* () {
    const client = yield* PgClient.PgClient
    const context = yield* Effect.context<PgClient.PgClient>()
    const { claims } = yield* claimAll
    const waiting = sql(
      `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%"${schema}"%'`,
    )
    const settlings = yield* client.withTransaction(
      Effect.gen(function* () {
        yield* sql(`SELECT FROM ${schema}.webhooks FOR UPDATE`)
        // New fibers run outside of the transaction.
        const apart = Effect.gen(function* () {
          const started = yield* Effect.forEach(claims, disabledBy)
          yield* Effect.repeat(waiting, { until: (rows) => rows.length === 2 })
          return started
        })
        return yield* Effect.promise(() => Effect.runPromiseWith(context)(apart))
      }),
    )
    const rows = yield* Effect.forEach(settlings, Deferred.await)
    expect(
      rows
        .flat()
        .map((row) => row.has_disabled)
        .toSorted(),
    ).toEqual([false, true])
    expect(yield* sql(`SELECT FROM ${schema}.events`)).toHaveLength(3)
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
