/** The feed while more transactions are running than a cursor can hold. */

import { PgClient } from "@effect/sql-pg"
import { expect, it } from "@effect/vitest"
import { type FeedCursor, FeedStore, MembershipStore, Outbox } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import { startPostgres } from "@tenure/testing/postgres-server"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import pg from "pg"
import { postgresLayer } from "../src/index.ts"

const { event, occasion, p1 } = Fixture
const size = { events: 10, bytes: 1_000_000 }

const settings = { fsync: "off", max_prepared_transactions: "2600" }

const session = Effect.gen(function* () {
  const { url } = yield* Effect.acquireRelease(
    Effect.promise(() => startPostgres({ settings })),
    ({ stop }) => Effect.promise(stop),
  )
  const client = new pg.Client({ connectionString: url })
  yield* Effect.acquireRelease(
    Effect.promise(() => client.connect()),
    () => Effect.promise(() => client.end()),
  )
  const run = (statements: ReadonlyArray<string>) =>
    Effect.promise(async () => {
      for (const statement of statements) await client.query(statement)
    })
  return { url, run }
})

/** Transactions that have a number and do not end by themselves. */
const names = (from: number, to: number): ReadonlyArray<string> =>
  Array.from({ length: to - from }, (_, index) => `t${from + index}`)

const beginning = (all: ReadonlyArray<string>): ReadonlyArray<string> =>
  all.map((name) => `BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION '${name}'`)

const ending = (all: ReadonlyArray<string>): ReadonlyArray<string> =>
  all.map((name) => `ROLLBACK PREPARED '${name}'`)

const publish = Effect.gen(function* () {
  const one = event(p1)
  yield* (yield* Outbox).publish(one)
  return one.id
})

it.live(
  "the feed goes on up to the youngest transactions, and has their events when older ones have ended",
  () =>
    Effect.gen(function* () {
      const { run, url } = yield* session
      const follow = Effect.gen(function* () {
        const feed = yield* FeedStore
        const got: Array<string> = []
        let cursor: FeedCursor = (yield* feed.read([p1], "now", size)).cursor
        return Effect.gen(function* () {
          const page = yield* feed.read([p1], cursor, size)
          ;({ cursor } = page)
          got.push(...page.events.map(({ id }) => id))
          expect(page.isLast).toBe(true)
          return got
        })
      })
      yield* Effect.gen(function* () {
        yield* (yield* MembershipStore).createProject(p1, occasion)
        const read = yield* follow
        const published = [yield* publish]
        expect(yield* read).toEqual(published)
        yield* run(beginning(names(0, 300)))
        published.push(yield* publish)
        yield* run(beginning(names(300, 2600)))
        const late = yield* publish
        expect(yield* read).toEqual(published)
        expect(yield* read).toEqual(published)
        const begun = yield* follow
        yield* run(ending(names(0, 2000)))
        published.push(late)
        expect(yield* read).toEqual(published)
        expect(yield* read).toEqual(published)
        yield* run(ending(names(2000, 2600)))
        published.push(yield* publish)
        expect(yield* read).toEqual(published)
        // What has begun meanwhile may have got events that were published shortly before.
        expect((yield* begun).slice(-1)).toEqual(published.slice(-1))
      }).pipe(
        Effect.provide(
          Layer.provideMerge(postgresLayer({}), PgClient.layer({ url: Redacted.make(url) })),
        ),
      )
    }),
)
