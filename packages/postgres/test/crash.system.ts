/** The feed after the database crashed, and while more transactions run than a cursor can hold. */

import { PgClient } from "@effect/sql-pg"
import { expect, it } from "@effect/vitest"
import {
  type FeedCursor,
  FeedStore,
  MembershipStore,
  Outbox,
  type StorePorts,
} from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import { startPostgres } from "@tenure/testing/postgres-server"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import { postgresLayer } from "../src/index.ts"
import { sql } from "./harness.ts"
import { queryAt } from "./servers.ts"

const { event, context, p1 } = Fixture

/** Declares a test with its own server, on which there is a project. */
const onServer = <A, E>(
  name: string,
  settings: Readonly<Record<string, string>>,
  test: Effect.Effect<A, E, StorePorts | PgClient.PgClient>,
) => {
  const server = Effect.acquireRelease(
    Effect.promise(() => startPostgres({ settings })),
    ({ stop }) => Effect.promise(stop),
  )
  const stores = Effect.map(server, ({ url }) =>
    Layer.provideMerge(postgresLayer({}), PgClient.layer({ url: Redacted.make(url) })),
  )
  const created = Effect.flatMap(MembershipStore, (store) => store.createProject(p1, context))
  it.live(name, () => Effect.provide(Effect.andThen(created, test), Layer.unwrap(stores)))
}

const publish = Effect.gen(function* () {
  const one = event(p1)
  yield* (yield* Outbox).publish(one)
  return one.id
})

const read = (from: FeedCursor | "now" | "start") =>
  Effect.flatMap(FeedStore, (feed) => feed.read([p1], from, { events: 10, bytes: 1_000_000 }))

/** Kills a database process, so that all others begin anew. */
const crash = Effect.gen(function* () {
  const [row] = yield* sql<{ readonly pid: number }>("SELECT pg_backend_pid() AS pid")
  yield* Effect.sync(() => process.kill(row?.pid ?? NaN, "SIGKILL"))
  yield* Effect.retry(sql("SELECT 1"), { schedule: Schedule.spaced("100 millis"), times: 600 })
})

onServer(
  "after a crash, which has numbers of transactions used again, readers go on and miss nothing",
  {},
  Effect.gen(function* () {
    yield* publish
    // By what writes nothing, as takes from unlogged buckets do.
    yield* Effect.repeat(sql("SELECT pg_current_xact_id()::text"), { times: 50 })
    const cursors = [(yield* read("now")).cursor, (yield* read("start")).cursor]
    yield* crash
    const published = yield* Effect.replicateEffect(publish, 5)
    for (const cursor of cursors) {
      const { events } = yield* read(cursor)
      expect(events.map(({ id }) => id)).toEqual(published)
    }
  }),
)

/** Statements for transactions that have a number and do not end by themselves. */
const transactions = (from: number, to: number) => {
  const names = Array.from({ length: to - from }, (_, index) => `t${from + index}`)
  return {
    begin: names.map((one) => `BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION '${one}'`),
    end: names.map((one) => `ROLLBACK PREPARED '${one}'`),
  }
}

/** Follows the feed from now on. */
const follow = Effect.gen(function* () {
  const got: Array<string> = []
  let { cursor } = yield* read("now")
  return Effect.gen(function* () {
    const page = yield* read(cursor)
    ;({ cursor } = page)
    got.push(...page.events.map(({ id }) => id))
    expect(page.isLast).toBe(true)
    return got
  })
})

onServer(
  "beside many transactions, the feed goes on up to the youngest, and has their events when older ones have ended",
  { fsync: "off", max_prepared_transactions: "2600" },
  Effect.gen(function* () {
    const { config } = yield* PgClient.PgClient
    const run = (statements: ReadonlyArray<string>) =>
      Effect.promise(() => queryAt(Redacted.value(config.url ?? Redacted.make("")), ...statements))
    const reading = yield* follow
    const published = [yield* publish]
    expect(yield* reading).toEqual(published)
    yield* run(transactions(0, 300).begin)
    published.push(yield* publish)
    yield* run(transactions(300, 2600).begin)
    const late = yield* publish
    for (const _ of [1, 2]) expect(yield* reading).toEqual(published)
    const begun = yield* follow
    yield* run(transactions(0, 2000).end)
    published.push(late)
    for (const _ of [1, 2]) expect(yield* reading).toEqual(published)
    yield* run(transactions(2000, 2600).end)
    published.push(yield* publish)
    expect(yield* reading).toEqual(published)
    // What has begun meanwhile may have got events that were published shortly before.
    expect((yield* begun).slice(-1)).toEqual(published.slice(-1))
  }),
)
