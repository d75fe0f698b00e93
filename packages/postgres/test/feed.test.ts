/** The feed skips nothing, in whatever order transactions begin, write, commit and fail. */

import { PgClient } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import type { EventId } from "@tenure/core/Event"
import { type Cursor, FeedStore } from "@tenure/core/FeedStore"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { Outbox } from "@tenure/core/Outbox"
import { layer } from "@tenure/postgres"
import { Fixture } from "@tenure/testing"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import fc from "fast-check"
import { clientLayer, execute, sql } from "./harness.ts"

const { event, occasion, p1 } = Fixture

/** A step of one of several transactions, or of a reader. */
type Step =
  | { readonly do: "publish" | "commit" | "fail"; readonly in: number }
  | { readonly do: "read"; readonly events: number }

const seeds = 60
const transactions = 4

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("publish" as const),
      in: fc.nat(transactions - 1),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom("commit" as const, "commit" as const, "fail" as const),
      in: fc.nat(transactions - 1),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("read" as const),
      events: fc.integer({ min: 1, max: 4 }),
    }),
  },
)

/** A transaction of the host, which does what it is told. Another one begins when it has ended. */
const transaction = Effect.gen(function* () {
  const client = yield* PgClient.PgClient
  const outbox = yield* Outbox
  const commands = yield* Queue.unbounded<readonly [Step["do"], Deferred.Deferred<void>]>()
  const committed = new Set<EventId>()

  const once = Effect.gen(function* () {
    const published: Array<EventId> = []
    let ended: Deferred.Deferred<void> | undefined
    const body = Effect.gen(function* () {
      for (;;) {
        const [command, done] = yield* Queue.take(commands)
        if (command !== "publish") {
          ended = done
          return command === "fail" ? yield* Effect.fail("the host's own failure") : undefined
        }
        const one = event(p1)
        yield* outbox.publish(one)
        published.push(one.id)
        yield* Deferred.succeed(done, undefined)
      }
    })
    const exit = yield* Effect.exit(client.withTransaction(body))
    if (exit._tag === "Success") for (const id of published) committed.add(id)
    if (ended !== undefined) yield* Deferred.succeed(ended, undefined)
  })

  const fiber = yield* Effect.forkChild(Effect.forever(once))
  return {
    committed,
    tell: Effect.fnUntraced(function* (command: Step["do"]) {
      const done = yield* Deferred.make<void>()
      yield* Queue.offer(commands, [command, done])
      yield* Deferred.await(done)
    }),
    end: Fiber.interrupt(fiber),
  }
})

/** A reader of the feed, which goes on from page to page. */
const feedReader = Effect.gen(function* () {
  const feed = yield* FeedStore
  const seen: Array<EventId> = []
  let from: Cursor | "start" = "start"
  const read = (events: number) =>
    Effect.map(feed.read([p1], from, { events, bytes: 1_000_000 }), (page) => {
      from = page.cursor
      seen.push(...page.events.map(({ id }) => id))
      return page.isLast
    })
  return { read, seen }
})

/** A reader that goes on from the greatest number that it has seen, as feeds often do. */
const naiveReader = () => {
  const seen: Array<string> = []
  let last = "0"
  const read = (events: number) =>
    Effect.map(
      sql<{ readonly id: string; readonly xid: string }>(
        `SELECT id, xid::text FROM feed.events WHERE xid > '${last}'::xid8 ORDER BY xid, id LIMIT ${events}`,
      ),
      (rows) => {
        seen.push(...rows.map(({ id }) => id))
        last = rows.at(-1)?.xid ?? last
        return rows.length === 0
      },
    )
  return { read, seen }
}

/** Runs the steps, lets all transactions commit, and reads to the end. */
const run = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>) {
  yield* sql("DELETE FROM feed.events")
  const hosts = yield* Effect.all(Array.from({ length: transactions }, () => transaction))
  const reader = yield* feedReader
  const naive = naiveReader()
  for (const one of steps) {
    if (one.do === "read") {
      yield* reader.read(one.events)
      yield* naive.read(one.events)
    } else {
      yield* hosts[one.in]?.tell(one.do) ?? Effect.void
    }
  }
  for (const host of hosts) {
    yield* host.tell("commit")
    yield* host.end
  }
  yield* Effect.repeat(
    Effect.suspend(() => reader.read(3)),
    { until: (isLast) => isLast },
  )
  yield* Effect.repeat(
    Effect.suspend(() => naive.read(3)),
    { until: (isLast) => isLast },
  )
  const committed = hosts.flatMap((host) => [...host.committed]).toSorted()
  return { committed, seen: reader.seen.toSorted(), naive: naive.seen.toSorted() }
})

describe("the feed", () => {
  it.live(
    `has every event once, in ${seeds} orders of concurrent transactions`,
    () =>
      Effect.gen(function* () {
        yield* (yield* MembershipStore).createProject(p1, occasion)
        let skipped = 0
        const orders = fc.array(step, { minLength: 10, maxLength: 40 })
        for (const steps of fc.sample(orders, { numRuns: seeds, seed: 17 })) {
          const { committed, naive, seen } = yield* run(steps)
          expect(seen, JSON.stringify(steps)).toEqual(committed)
          if (naive.length < committed.length) skipped++
        }
        // The orders are such that numbers alone do not suffice.
        expect(skipped).toBeGreaterThan(seeds / 10)
      }).pipe(
        Effect.provide(
          Layer.provideMerge(
            Layer.fresh(layer({ schema: "feed" })),
            Layer.provideMerge(
              clientLayer(),
              Layer.effectDiscard(execute("DROP SCHEMA IF EXISTS feed CASCADE")),
            ),
          ),
        ),
      ),
    120_000,
  )
})
