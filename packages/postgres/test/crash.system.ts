/** A crash of the database, after which numbers of transactions are used again. */

import { PgClient } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import { type FeedCursor, FeedStore, MembershipStore, Outbox } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import { startPostgres } from "@tenure/testing/postgres-server"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import { postgresLayer } from "../src/index.ts"

const { event, occasion, p1 } = Fixture
const size = { events: 10, bytes: 1_000_000 }

const server = Effect.acquireRelease(
  Effect.promise(() => startPostgres()),
  ({ stop }) => Effect.promise(stop),
)

const stores = Layer.unwrap(
  Effect.map(server, ({ url }) =>
    Layer.provideMerge(postgresLayer({}), PgClient.layer({ url: Redacted.make(url) })),
  ),
)

const sql = (text: string) =>
  PgClient.PgClient.use((client) => client.unsafe<{ readonly pid: number }>(text))

/** Uses numbers of transactions that write nothing, as takes from unlogged buckets do. */
const useNumbers = Effect.repeat(sql("SELECT pg_current_xact_id()::text"), { times: 50 })

/** Kills a process of the database, so that all others begin anew. */
const crash = Effect.gen(function* () {
  const [row] = yield* sql("SELECT pg_backend_pid() AS pid")
  yield* Effect.sync(() => process.kill(row?.pid ?? NaN, "SIGKILL"))
  yield* Effect.retry(sql("SELECT 1"), { schedule: Schedule.spaced("100 millis"), times: 600 })
})

const publish = Effect.gen(function* () {
  const one = event(p1)
  yield* (yield* Outbox).publish(one)
  return one.id
})

const read = (from: FeedCursor | "now" | "start") =>
  Effect.flatMap(FeedStore, (feed) => feed.read([p1], from, size))

describe("after a crash of the database", () => {
  it.live("readers go on from their cursors and miss nothing", () =>
    Effect.gen(function* () {
      yield* (yield* MembershipStore).createProject(p1, occasion)
      yield* publish
      yield* useNumbers
      const cursors = [(yield* read("now")).cursor, (yield* read("start")).cursor]
      yield* crash
      const published: Array<string> = []
      for (let count = 0; count < 5; count++) published.push(yield* publish)
      for (const cursor of cursors) {
        const { events } = yield* read(cursor)
        expect(events.map(({ id }) => id)).toEqual(published)
      }
    }).pipe(Effect.provide(stores)),
  )
})
