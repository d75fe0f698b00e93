/**
 * The feed skips nothing, in whatever order transactions begin, write, commit and fail, on whatever days their
 * events are by their ids, whenever days are closed, and whenever the tables move to another server.
 */

import { PgClient } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import { newEventId } from "@tenure/core/internal"
import {
  type Event,
  type EventId,
  FeedCursor,
  FeedStore,
  MembershipStore,
  Outbox,
  type ProjectId,
  type StorePorts,
} from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import fc from "fast-check"
import {
  type SeenEvents,
  type Snapshot,
  cursorPrefix,
  formatFeedCursor,
  formatPartialCursor,
  parseFeedCursor,
} from "../src/feed.ts"
import { postgresLayer } from "../src/index.ts"
import { blocksReadBy } from "./blocks.ts"
import { type Steps, clientLayer, dropped, shared, sql } from "./harness.ts"

const { event, context, p1, p2 } = Fixture

/** What happens to days: they are closed, they are open again, and a past one gets its partition. */
type Upkeep = "close" | "open" | "create"

/** A step that one transaction takes, or a reader. After a move, transaction numbers go on so much earlier or later. */
type Step =
  | { readonly do: "publish"; readonly in: number; readonly day: number; readonly to: ProjectId }
  | { readonly do: "commit" | "fail"; readonly in: number }
  | { readonly do: Upkeep }
  | { readonly do: "move"; readonly by: bigint }
  | { readonly do: "read"; readonly by: number; readonly events: number }

type Command = Extract<Step, { readonly in: number }>

/** Whose events each reader reads. */
const readers = [[p1], [p1, p2], [p2]] as const

const transactions = 4
const pastDays = [-3, -2, -1]
// This one has no partition at first.
const createdDay = -4

// Most events are on closed days, or on none, as if their clocks were wrong.
const day = fc.constantFrom(...pastDays, createdDay, 0, 9, -99)

const dayMillis = 86_400_000
const idOf = (offset: number) => newEventId(crypto, Date.now() + offset * dayMillis)

const anyHost = fc.nat(transactions - 1)

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("publish"),
      in: anyHost,
      day,
      to: fc.constantFrom(p1, p1, p2),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom("commit", "commit", "fail"), in: anyHost }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("close", "close", "open", "create") }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("move"), by: fc.constantFrom(-90n, 10_000n) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("read"),
      by: fc.nat(readers.length - 1),
      events: fc.integer({ min: 1, max: 4 }),
    }),
  },
)

/** When an event's transaction began to write, and when it had committed: counted in commands. */
interface Span {
  readonly begun: number
  readonly committed: number
}

let commandCount = 0

/** Returns a snapshot with numbers that are so much greater, unless it sees nothing, or all. */
const movedSnapshot = (snapshot: Snapshot, by: bigint): Snapshot =>
  snapshot.xmax === 1n || snapshot.xmax > 2n ** 62n
    ? snapshot
    : {
        xmin: snapshot.xmin + by,
        xmax: snapshot.xmax + by,
        running: snapshot.running.map((xid) => xid + by),
      }

/** Returns a cursor as a server would have made it with transaction numbers that are so much greater. */
const movedCursor = (cursor: FeedCursor, by: bigint): FeedCursor => {
  const { base, epoch, within } = parseFeedCursor(cursor) ?? expect.fail("it is a cursor")
  const moved = (seen: SeenEvents) => ({ ...seen, snapshot: movedSnapshot(seen.snapshot, by) })
  if (within === undefined) return formatFeedCursor(epoch, moved(base))
  const prefix = cursorPrefix(epoch, moved(base), moved(within.until))
  return formatPartialCursor(prefix, within.xid + by, within.id)
}

/** Makes the tables those that another server would have after a move, with greater or smaller numbers. */
const moveTables = Effect.fnUntraced(function* (by: bigint) {
  yield* sql(`UPDATE feed.events SET xid = (xid::text::bigint + ${by})::text::xid8`)
  yield* sql("UPDATE feed.feed_state SET history = 'another'")
  expect(yield* sql("SELECT feed.begin_epoch()")).toEqual([{ begin_epoch: true }])
})

/** A host transaction, which does what it is told. Another one begins when it has ended. */
const transaction = Effect.gen(function* () {
  const client = yield* PgClient.PgClient
  const outbox = yield* Outbox
  const commands = yield* Queue.unbounded<readonly [Command, Deferred.Deferred<void>]>()
  const committed = new Map<EventId, Span & { readonly projectId: ProjectId }>()

  const idempotency = Effect.gen(function* () {
    const published: Array<Event> = []
    let begun = Infinity
    let ended: Deferred.Deferred<void> | undefined
    const body = Effect.gen(function* () {
      for (;;) {
        const [command, done] = yield* Queue.take(commands)
        if (command.do !== "publish") {
          ended = done
          return command.do === "fail" ? yield* Effect.fail("the host's own failure") : undefined
        }
        const one = { ...event(command.to), id: idOf(command.day) }
        yield* outbox.publish(one)
        published.push(one)
        begun = Math.min(begun, commandCount)
        yield* Deferred.succeed(done, undefined)
      }
    })
    const exit = yield* Effect.exit(client.withTransaction(body))
    if (exit._tag === "Success") {
      for (const { id, projectId } of published)
        committed.set(id, { begun, committed: commandCount, projectId })
    }
    if (ended !== undefined) yield* Deferred.succeed(ended, undefined)
  })

  const fiber = yield* Effect.forkChild(Effect.forever(idempotency))
  return {
    committed,
    tell: Effect.fnUntraced(function* (command: Command) {
      commandCount++
      const done = yield* Deferred.make<void>()
      yield* Queue.offer(commands, [command, done])
      yield* Deferred.await(done)
    }),
    end: Fiber.interrupt(fiber),
  }
})

/** A feed reader, which goes on from page to page. */
const feedReader = Effect.fnUntraced(function* (
  projects: readonly [ProjectId, ...ReadonlyArray<ProjectId>],
) {
  const feed = yield* FeedStore
  const seen: Array<EventId> = []
  let from: FeedCursor | "start" = "start"
  const read = (events: number) =>
    Effect.map(feed.read(projects, from, { events, bytes: 1_000_000 }), (page) => {
      from = page.cursor
      seen.push(...page.events.map(({ id }) => id))
      return page.isLast
    })
  const move = (by: bigint) => {
    from = from === "start" ? from : movedCursor(from, by)
  }
  return { projects, read, seen, move }
})

const suffixOf = (offset: number): string =>
  new Date(Date.now() + offset * dayMillis).toISOString().slice(0, 10).replaceAll("-", "")

// A transaction that has locked the table learns about no partition, and fails to store an event in it.
const createDay = (offset: number): string => `
  DO $$ BEGIN
    SET LOCAL lock_timeout = '50ms';
    LOCK TABLE ONLY feed.events IN SHARE MODE;
    PERFORM feed.create_day('${suffixOf(offset)}');
  END $$`

const upkeep: Record<Upkeep, string> = {
  close: "SELECT feed.close_days()",
  open: "UPDATE feed.feed_state SET open_from = NULL, closed_in = NULL",
  create: createDay(createdDay),
}

const droppingDay = (offset: number) =>
  ["events", "finished_deliveries", "delivered_runs"].map(
    (table) => `DROP TABLE IF EXISTS feed.${table}_${suffixOf(offset)}`,
  )

/** Empties the tables from a run before, and opens all days. */
const begin = Effect.forEach(
  [
    "DELETE FROM feed.events",
    upkeep.open,
    "DELETE FROM feed.late_events",
    ...pastDays.map((offset) => `DROP TRIGGER IF EXISTS late ON feed.events_${suffixOf(offset)}`),
    ...droppingDay(createdDay),
  ],
  (text) => sql(text),
)

/** Returns the events that come after one whose transaction began when theirs had committed. */
const disorderedIn = (
  seen: ReadonlyArray<EventId>,
  spans: ReadonlyMap<EventId, Span>,
): ReadonlyArray<EventId> => {
  let latest = -Infinity
  return seen.filter((id) => {
    const { begun = NaN, committed = NaN } = spans.get(id) ?? {}
    const isLate = committed < latest
    latest = Math.max(latest, begun)
    return isLate
  })
}

/** Runs the steps, lets all transactions commit, and reads to the end. */
const run = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>, kept = upkeep) {
  yield* begin
  const hosts = yield* Effect.all(Array.from({ length: transactions }, () => transaction))
  const commit = Effect.forEach(hosts, (host, index) => host.tell({ do: "commit", in: index }))
  const all = yield* Effect.forEach(readers, (projects) => feedReader(projects))
  for (const one of steps) {
    if (one.do === "read") {
      yield* all[one.by]?.read(one.events) ?? Effect.void
    } else if (one.do === "move") {
      yield* commit
      yield* moveTables(one.by)
      for (const reader of all) reader.move(one.by)
    } else if ("in" in one) {
      yield* hosts[one.in]?.tell(one) ?? Effect.void
    } else {
      // A lock that is not free stands in its way.
      yield* Effect.ignore(sql(kept[one.do]))
    }
  }
  yield* commit
  for (const host of hosts) yield* host.end
  for (const reader of all) {
    yield* Effect.repeat(
      Effect.suspend(() => reader.read(3)),
      { until: (isLast) => isLast },
    )
  }
  const spans = new Map(hosts.flatMap((host) => [...host.committed]))
  return all.map(({ projects, seen }) => ({
    committed: [...spans]
      .flatMap(([id, { projectId }]) => (projects.some((one) => one === projectId) ? [id] : []))
      .toSorted(),
    seen: seen.toSorted(),
    disordered: disorderedIn(seen, spans),
  }))
})

/** Makes a schema with two projects and past partitions. */
const prepared = Effect.gen(function* () {
  const memberships = yield* MembershipStore
  for (const project of [p1, p2]) yield* memberships.createProject(project, context)
  for (const offset of pastDays) yield* sql(createDay(offset))
})

const stores = Layer.unwrap(
  Effect.map(dropped("feed"), () =>
    Layer.provideMerge(
      Layer.provideMerge(
        Layer.effectDiscard(prepared),
        Layer.fresh(postgresLayer({ schema: "feed" })),
      ),
      clientLayer(),
    ),
  ),
)

/** Whether a reader misses events in one order. */
const misses = Effect.fnUntraced(function* (
  orders: ReadonlyArray<ReadonlyArray<Step>>,
  kept = upkeep,
) {
  for (const steps of orders) {
    const all = yield* run(steps, kept)
    if (all.some(({ committed, seen }) => seen.length < committed.length)) return true
  }
  return false
})

/**
 * How many blocks a poll reads that finds nothing new: if no transaction was running at its cursor, and if one was, so
 * that it looks for that one's events, too. Which ones run at the moment is up to other tests.
 */
const blocksOfPoll = PgClient.PgClient.use((client) =>
  Effect.gen(function* () {
    const [own] = yield* sql<{ readonly xid: string; readonly epoch: number }>(
      "SELECT pg_current_xact_id()::text AS xid, epoch FROM feed.feed_state",
    )
    const xid = BigInt(own?.xid ?? 0)
    const blocksAfter = (snapshot: string) =>
      blocksReadBy(
        `SELECT * FROM feed.read_feed('{p1}', ${own?.epoch}, '${snapshot}', NULL, NULL, NULL, 100, 1000)`,
        [],
      )
    return {
      noneRunning: yield* blocksAfter(`${xid + 1n}:${xid + 1n}:`),
      oneRunning: yield* blocksAfter(`${xid}:${xid + 1n}:${xid}`),
    }
  }).pipe(client.withTransaction),
)

/**
 * Declares the tests.
 *
 * @param seeds - how many orders concurrent transactions have
 */
export const feedOrderSuite = (seeds: number): void => {
  const opened = shared(stores)

  const test = (name: string, steps: Steps<StorePorts | PgClient.PgClient>) =>
    it.live(name, () => Effect.provide(Effect.andThen(begin, Effect.gen(steps)), opened))

  const publish = (inHost: number): Step => ({ do: "publish", in: inHost, day: 0, to: p1 })
  const commit = (inHost: number): Step => ({ do: "commit", in: inHost })
  const readOne: Step = { do: "read", by: 0, events: 1 }
  // The first one commits, between two pages, what comes before what begins after that.
  const orders: ReadonlyArray<ReadonlyArray<Step>> = [
    [
      publish(0),
      publish(1),
      publish(1),
      commit(1),
      readOne,
      commit(0),
      publish(2),
      commit(2),
      readOne,
      readOne,
      readOne,
    ],
    ...fc.sample(fc.array(step, { minLength: 10, maxLength: 40 }), { numRuns: seeds, seed: 17 }),
  ]

  describe("the feed", () => {
    test("looks into the days that are open, however many are kept", function* () {
      yield* sql(upkeep.close)
      const withThree = yield* blocksOfPoll
      const manyDays = Array.from({ length: 26 }, (_, index) => createdDay - 1 - index)
      for (const offset of manyDays) yield* sql(createDay(offset))
      expect(yield* blocksOfPoll).toEqual(withThree)
      yield* sql(upkeep.open)
      expect((yield* blocksOfPoll).noneRunning).toBeGreaterThan(30)
      for (const offset of manyDays) yield* Effect.forEach(droppingDay(offset), (text) => sql(text))
    })

    test(`has every event once and in order, in ${seeds} orders of concurrent transactions`, function* () {
      for (const steps of orders) {
        for (const { committed, disordered, seen } of yield* run(steps)) {
          expect(seen, fc.stringify(steps)).toEqual(committed)
          expect(disordered, fc.stringify(steps)).toEqual([])
        }
      }
    })

    const size = { events: 2, bytes: 1_000_000 }

    test("refuses a cursor that was edited, and one that is ahead of the database, as after a disk was restored", function* () {
      const outbox = yield* Outbox
      const feed = yield* FeedStore
      for (let count = 0; count < 3; count++) yield* outbox.publish(event(p1))
      const page = yield* feed.read([p1], "start", size)
      const rest = yield* feed.read([p1], page.cursor, size)
      const edit = fc.record({
        cursor: fc.constantFrom(page.cursor, rest.cursor),
        at: fc.nat(200),
        removed: fc.nat(4),
        added: fc.constantFrom("", "0", "1", "z", "-", ".", "-0", "-1", ".0", "zzzzzzzzzzzzz"),
      })
      const edited = fc.sample(edit, 300).map(({ added, at, cursor, removed }) => {
        const index = at % cursor.length
        return FeedCursor(cursor.slice(0, index) + added + cursor.slice(index + removed) || "-")
      })
      for (const cursor of edited) {
        const answer = yield* Effect.match(feed.read([p1], cursor, size), {
          onSuccess: () => "CursorExpired",
          onFailure: ({ _tag }) => _tag,
        })
        expect(answer, cursor).toBe("CursorExpired")
      }

      const parts = page.cursor.split(".")
      const { base, epoch } = parseFeedCursor(rest.cursor) ?? expect.fail("it is a cursor")
      const xmax = base.snapshot.xmax + 1_000_000n
      const ahead = { ...base, snapshot: { xmin: xmax, xmax, running: [] } }
      const within = cursorPrefix(epoch, base, ahead)
      for (const lost of [
        FeedCursor([...parts.slice(0, 4), "0", ...parts.slice(5)].join(".")),
        formatFeedCursor(epoch, ahead),
        formatPartialCursor(within, base.snapshot.xmax, event(p1).id),
      ])
        expect(yield* Effect.flip(feed.read([p1], lost, size))).toMatchObject({
          _tag: "CursorExpired",
        })
    })

    test("would miss events if days were closed without waiting for transactions, or nobody noted late events", function* () {
      const close = `
        UPDATE feed.feed_state
        SET open_from = feed.first_id((now() AT TIME ZONE 'UTC')::date), closed_in = pg_current_xact_id()
        WHERE open_from IS NULL`
      expect(yield* misses(orders, { ...upkeep, close })).toBe(true)
      const [kept] = yield* sql<{ readonly note: string }>(
        "SELECT pg_get_functiondef('feed.note_late'::regproc) AS note",
      )
      yield* sql(`
        CREATE OR REPLACE FUNCTION feed.note_late() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RETURN NULL; END $$`)
      expect(yield* Effect.ensuring(misses(orders), Effect.orDie(sql(kept?.note ?? "")))).toBe(true)
    })
  })
}
