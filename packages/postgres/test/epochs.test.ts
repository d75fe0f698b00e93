/** Epochs of the feed: readers go on when the numbers of transactions begin anew. */

import { PgClient } from "@effect/sql-pg"
import { expect } from "@effect/vitest"
import { FeedStore, MembershipStore, Outbox } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { formatFeedCursor, parseFeedCursor } from "../src/feed.ts"
import { sql, testsAfter, valueOf, valuesOf } from "./harness.ts"

const { event, context, p1 } = Fixture

const size = { events: 10, bytes: 1_000_000 }

const test = testsAfter(
  "epochs",
  MembershipStore.use((store) => store.createProject(p1, context)),
)

/** Makes the tables those from another server, before an epoch has begun. */
const arrive = sql("UPDATE epochs.feed_state SET history = 'another'")

const begin = valueOf<boolean>("SELECT epochs.begin_epoch()")

const current = valueOf<number>("SELECT epoch FROM epochs.feed_state")

const publish = Effect.gen(function* () {
  const one = event(p1)
  yield* (yield* Outbox).publish(one)
  return one.id
})

/** Reads the feed. Returns event ids, and where the next page begins. */
const read = (after: Parameters<FeedStore["Service"]["read"]>[1], events = size.events) =>
  FeedStore.use((feed) => feed.read([p1], after, { ...size, events })).pipe(
    Effect.map((page) => ({ ...page, ids: page.events.map(({ id }) => id) })),
  )

test("an epoch begins once, however many processes begin it at the same time", function* () {
  const before = yield* current
  yield* arrive
  const all = yield* Effect.replicateEffect(begin, 8, { concurrency: "unbounded" })
  expect(all).toContain(true)
  expect(yield* begin).toBe(true)
  expect(yield* current).toBe(before + 1)
})

test("an epoch waits for transactions that have stored events, and for no other", function* () {
  const client = yield* PgClient.PgClient
  const isStored = yield* Deferred.make<void>()
  const mayEnd = yield* Deferred.make<void>()
  const before = yield* current
  const { cursor } = yield* read("now")
  const host = yield* Effect.gen(function* () {
    const id = yield* publish
    yield* Deferred.succeed(isStored, undefined)
    yield* Deferred.await(mayEnd)
    return id
  }).pipe(client.withTransaction, Effect.forkChild)
  yield* Deferred.await(isStored)
  yield* arrive
  expect(yield* begin).toBe(false)
  expect(yield* Effect.flip(read(cursor))).toMatchObject({ _tag: "StoreUnavailable" })
  const early = yield* publish
  yield* Deferred.succeed(mayEnd, undefined)
  const late = yield* Fiber.join(host)
  expect((yield* read(cursor)).ids.toSorted()).toEqual([early, late].toSorted())
  expect(yield* current).toBe(before + 1)
})

test("an epoch begins when somebody reads, and a page has events of both", function* () {
  const [first, ...others] = [yield* publish, yield* publish, yield* publish] as const
  const { cursor } = yield* read("start", 1)
  yield* arrive
  const whole = yield* read(cursor)
  expect(whole).toMatchObject({ ids: others, isLast: true })
  const full = yield* read(cursor, 2)
  expect(full.isLast).toBe(false)
  const next = yield* publish
  for (const after of [whole.cursor, full.cursor])
    expect(yield* read(after)).toMatchObject({ ids: [next], isLast: true })
  expect((yield* read(cursor, 3)).ids).toEqual([...others, next])
  const latest = yield* (yield* FeedStore).latest(p1, others[1], size)
  expect(latest.events.map(({ id }) => id)).toEqual([others[0], first])
})

test("an epoch sets anew what counts by numbers of transactions", function* () {
  const columns = yield* valuesOf<string>(`
    SELECT c.relname || '.' || a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'epochs'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
      AND a.atttypid = 'xid8'::regtype
    ORDER BY 1`)
  expect(columns).toEqual([
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
})

test("an epoch that is yet to come, or of another copy, is refused", function* () {
  const { cursor } = yield* read("now")
  const { base, epoch } = parseFeedCursor(cursor) ?? expect.fail("it is a cursor")
  const next = formatFeedCursor({ ...epoch, number: epoch.number + 1 }, base)
  expect(yield* Effect.flip(read(next))).toMatchObject({ _tag: "CursorExpired" })
  // What `docs/internals/feed.md` tells to do when readers are to start again.
  yield* sql("UPDATE epochs.feed_state SET identity = DEFAULT")
  yield* sql("DELETE FROM epochs.past_epochs")
  expect(yield* Effect.flip(read(cursor))).toMatchObject({ _tag: "CursorExpired" })
})
