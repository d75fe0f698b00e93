/** Epochs of the feed: readers go on when the numbers of transactions begin anew. */

import { PgClient } from "@effect/sql-pg"
import { describe, expect } from "@effect/vitest"
import { FeedStore, MembershipStore, Outbox } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { formatFeedCursor, parseFeedCursor } from "../src/feed.ts"
import { dropped, sql } from "./harness.ts"
import { testsOn } from "./locking.ts"

const { event, occasion, p1 } = Fixture

const size = { events: 10, bytes: 1_000_000 }

const onStores = testsOn(
  "epochs",
  dropped("epochs"),
  Effect.flatMap(MembershipStore, (memberships) => memberships.createProject(p1, occasion)),
)

/** Makes the tables those of another server, before an epoch has begun. */
const arrive = sql("UPDATE epochs.feed_state SET history = 'another'")

const begin = Effect.map(
  sql<{ readonly is_current: boolean }>("SELECT epochs.begin_epoch() AS is_current"),
  ([row]) => row?.is_current,
)

const epochs = sql("SELECT epoch FROM epochs.feed_state")

const publish = Effect.gen(function* () {
  const one = event(p1)
  yield* (yield* Outbox).publish(one)
  return one.id
})

/** Returns the columns with numbers of transactions. */
const numberColumns = sql<{ readonly name: string }>(`
  SELECT c.relname || '.' || a.attname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
  WHERE c.relnamespace = 'epochs'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND a.atttypid = 'xid8'::regtype
  ORDER BY 1
`)

describe("an epoch", () => {
  onStores(
    "begins once, however many processes begin it at the same time",
    Effect.gen(function* () {
      yield* arrive
      const all = yield* Effect.forEach(Array.from({ length: 8 }), () => begin, {
        concurrency: "unbounded",
      })
      expect(all).toContain(true)
      expect(yield* begin).toBe(true)
      expect(yield* epochs).toEqual([{ epoch: 2 }])
    }),
  )

  onStores(
    "waits for transactions that have stored events, and stops nobody else meanwhile",
    Effect.gen(function* () {
      const feed = yield* FeedStore
      const client = yield* PgClient.PgClient
      const isStored = yield* Deferred.make<void>()
      const mayEnd = yield* Deferred.make<void>()
      const { cursor } = yield* feed.read([p1], "now", size)
      const host = yield* Effect.gen(function* () {
        const id = yield* publish
        yield* Deferred.succeed(isStored, undefined)
        yield* Deferred.await(mayEnd)
        return id
      }).pipe(client.withTransaction, Effect.forkChild)
      yield* Deferred.await(isStored)
      yield* arrive
      expect(yield* begin).toBe(false)
      expect(yield* Effect.flip(feed.read([p1], cursor, size))).toMatchObject({
        _tag: "StoreUnavailable",
      })
      const early = yield* publish
      yield* Deferred.succeed(mayEnd, undefined)
      const late = yield* Fiber.join(host)
      const page = yield* feed.read([p1], cursor, size)
      expect(page.events.map(({ id }) => id).toSorted()).toEqual([early, late].toSorted())
      expect(yield* epochs).toEqual([{ epoch: 2 }])
    }),
  )

  onStores(
    "begins when somebody reads, and a page has events of both",
    Effect.gen(function* () {
      const feed = yield* FeedStore
      const first = [yield* publish, yield* publish, yield* publish]
      const { cursor } = yield* feed.read([p1], "start", { ...size, events: 1 })
      yield* arrive
      const whole = yield* feed.read([p1], cursor, size)
      expect(whole).toMatchObject({ isLast: true })
      expect(whole.events.map(({ id }) => id)).toEqual(first.slice(1))
      const full = yield* feed.read([p1], cursor, { ...size, events: 2 })
      expect(full).toMatchObject({ isLast: false })
      const next = yield* publish
      for (const after of [whole.cursor, full.cursor]) {
        const rest = yield* feed.read([p1], after, size)
        expect(rest).toMatchObject({ events: [{ id: next }], isLast: true })
      }
      const both = yield* feed.read([p1], cursor, { ...size, events: 3 })
      expect(both.events.map(({ id }) => id)).toEqual([...first.slice(1), next])
      expect((yield* feed.latest(p1, first[2], size)).events.map(({ id }) => id)).toEqual([
        first[1],
        first[0],
      ])
    }),
  )

  onStores(
    "sets anew what counts by numbers of transactions",
    Effect.gen(function* () {
      expect((yield* numberColumns).map(({ name }) => name)).toEqual([
        "bulk_extensions.made_in",
        "deleted_projects.deleted_in",
        "erasures.begun_in",
        "events.xid",
        "expiry_passes.begun_in",
        "feed_state.closed_in",
        "late_events.xid",
      ])
      const far = "9000000000000000000"
      yield* sql(`INSERT INTO epochs.deleted_projects (number, deleted_in) VALUES (99, '${far}')`)
      yield* sql(`
        INSERT INTO epochs.erasures (project_number, user_id, at, begun_in)
        SELECT number, '1001', now(), '${far}' FROM epochs.projects`)
      yield* sql(
        `INSERT INTO epochs.expiry_passes (after_project, last_project, begun_in) VALUES (0, 1, '${far}')`,
      )
      yield* sql(`INSERT INTO epochs.late_events (xid) VALUES ('${far}')`)
      yield* sql(`UPDATE epochs.feed_state SET open_from = gen_random_uuid(), closed_in = '${far}'`)
      yield* arrive
      expect(yield* begin).toBe(true)
      const later = yield* sql(`
        SELECT FROM epochs.deleted_projects WHERE deleted_in = '${far}'
        UNION ALL SELECT FROM epochs.erasures WHERE begun_in = '${far}'
        UNION ALL SELECT FROM epochs.expiry_passes WHERE begun_in = '${far}'
        UNION ALL SELECT FROM epochs.late_events
        UNION ALL SELECT FROM epochs.feed_state WHERE open_from IS NOT NULL OR closed_in IS NOT NULL`)
      expect(later).toEqual([])
    }),
  )

  onStores(
    "that is yet to come, or of another copy of the database, is refused",
    Effect.gen(function* () {
      const feed = yield* FeedStore
      const { cursor } = yield* feed.read([p1], "now", size)
      const { base, epoch } = parseFeedCursor(cursor) ?? expect.fail("it is a cursor")
      const next = formatFeedCursor({ ...epoch, number: epoch.number + 1 }, base)
      const refused = Effect.flip(feed.read([p1], next, size))
      expect(yield* refused).toMatchObject({ _tag: "CursorExpired" })
      // What `docs/internals/feed.md` tells to do when readers are to start again.
      yield* sql("UPDATE epochs.feed_state SET identity = DEFAULT")
      yield* sql("DELETE FROM epochs.past_epochs")
      const old = Effect.flip(feed.read([p1], cursor, size))
      expect(yield* old).toMatchObject({ _tag: "CursorExpired" })
    }),
  )
})
