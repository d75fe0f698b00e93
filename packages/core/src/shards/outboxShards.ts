/** The port `Outbox` over several shards. Each keeps its own promises; they share what a process claims. */

import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { Faults } from "../base/Faults.ts"
import * as Outage from "../base/Outage.ts"
import type { Backlog, Change, Claim, Claimed, Outbox } from "../webhooks/Outbox.ts"
import type { Routing, Shards } from "./Routing.ts"
import type { Shard } from "./Shard.ts"
import { rotated, shares } from "./Sharing.ts"

type Options = Parameters<Outbox["Service"]["claim"]>[0]

// After how long a shard that did not answer is asked again.
const retryMillis = 1000

// How many changes wait for the dispatcher; then the shards wait.
const mostChanges = 16

const isFailing = ({ webhook }: Claim): boolean => webhook.failures > 0

const failingOf = (claims: ReadonlyArray<Claim>): number => claims.filter(isFailing).length

const sooner = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other)

/** What a shard may give, and what it has given so far. */
interface Turn {
  readonly shard: Shard
  readonly limit: number
  readonly failing: number
  readonly claimed: Claimed
}

const nothing: Claimed = { claims: [], nextDueMillis: undefined, keptBack: [] }

const silent: Claimed = { ...nothing, nextDueMillis: retryMillis }

/** Whether a share was too small for a shard. */
const mayHaveMore = ({ claimed: { claims, nextDueMillis }, failing, limit }: Turn): boolean =>
  claims.length === limit ? nextDueMillis === 0 || limit === 0 : failingOf(claims) === failing

const together = (turns: ReadonlyArray<Turn>, limit: number): Claimed => {
  const claims = turns.flatMap(({ claimed }) => claimed.claims)
  return {
    claims,
    nextDueMillis:
      claims.length === limit
        ? 0
        : turns.map(({ claimed }) => claimed.nextDueMillis).reduce(sooner, undefined),
    keptBack: [...new Set(turns.flatMap(({ claimed }) => claimed.keptBack))],
  }
}

const sumOf = (counts: ReadonlyArray<number>, most: number): number =>
  Math.min(
    most,
    counts.reduce((total, count) => total + count, 0),
  )

const sum = (all: ReadonlyArray<Backlog>, most: number): Backlog => ({
  waiting: sumOf(
    all.map(({ waiting }) => waiting),
    most,
  ),
  dueForMillis: all.reduce<number | undefined>(
    (oldest, { dueForMillis }) =>
      oldest === undefined || dueForMillis === undefined
        ? (oldest ?? dueForMillis)
        : Math.max(oldest, dueForMillis),
    undefined,
  ),
  failedDeliveries: sumOf(
    all.map(({ failedDeliveries }) => failedDeliveries),
    most,
  ),
  disabledWebhooks: sumOf(
    all.map(({ disabledWebhooks }) => disabledWebhooks),
    most,
  ),
})

/** Makes the outbox. Watches the changes of all shards for as long as the scope is open. */
export const make = Effect.fnUntraced(function* (
  { all, home }: Shards,
  { on }: Routing,
): Effect.fn.Return<Outbox["Service"], never, Scope.Scope> {
  const faults = yield* Faults
  const outages = new Map(
    all.map((shard) => [
      shard,
      Outage.make(faults, `Deliveries of the shard ${shard.name} cannot be claimed`),
    ]),
  )
  let turn = 0

  /** Claims from a shard. One that does not answer has nothing for now, and keeps no other waiting for long. */
  const claimFrom = (shard: Shard, options: Options): Effect.Effect<Claimed> =>
    options.limit <= 0
      ? Effect.succeed(nothing)
      : shard
          .use(({ outbox }) => outbox.claim(options))
          .pipe(
            Effect.tap(() => Effect.sync(() => outages.get(shard)?.succeeded())),
            Effect.catchCause((cause) =>
              Effect.as(outages.get(shard)?.failed(cause) ?? Effect.void, silent),
            ),
          )

  /** Claims an equal share from each shard, all at the same time. */
  const claimShares = (options: Options) => {
    const order = rotated(all, turn++)
    const limits = shares(options.limit, order.length)
    const failing = shares(options.failing, order.length)
    const first = order.map((shard, index) => ({
      shard,
      limit: limits[index] ?? 0,
      failing: failing[index] ?? 0,
    }))
    return Effect.forEach(
      first,
      (one) =>
        Effect.map(
          claimFrom(one.shard, { ...options, limit: one.limit, failing: one.failing }),
          (claimed): Turn => ({ ...one, claimed }),
        ),
      { concurrency: "unbounded" },
    )
  }

  /** Claims what the others have left from those whose share was too small, one after the other. */
  const claimRest = Effect.fnUntraced(function* (turns: ReadonlyArray<Turn>, options: Options) {
    const claims = turns.flatMap(({ claimed }) => claimed.claims)
    let limit = options.limit - claims.length
    let failing = Math.max(0, options.failing - failingOf(claims))
    const settled: Array<Turn> = []
    for (const one of turns) {
      if (limit === 0 || !mayHaveMore(one)) {
        settled.push(one)
        continue
      }
      const more = yield* claimFrom(one.shard, { ...options, limit, failing })
      limit -= more.claims.length
      failing = Math.max(0, failing - failingOf(more.claims))
      settled.push({
        ...one,
        claimed: { ...more, claims: [...one.claimed.claims, ...more.claims] },
      })
    }
    return settled
  })

  const changes = yield* Queue.bounded<Change>(mostChanges)
  for (const shard of all) {
    const outage = Outage.make(faults, `Changes of the shard ${shard.name} cannot be watched`)
    const follow = shard
      .use(({ outbox }) => outbox.nextChange)
      .pipe(
        Effect.flatMap((change) => {
          outage.succeeded()
          return Queue.offer(changes, change)
        }),
        Effect.catchCause((cause) =>
          Effect.andThen(outage.failed(cause), Effect.sleep(retryMillis)),
        ),
      )
    yield* Effect.forkScoped(Effect.forever(follow))
  }

  return {
    ping: home.stores.memberships.ping,

    publish: (event, ...rest) =>
      on(event.projectId, ({ outbox }) => outbox.publish(event, ...rest)),
    publishTo: (event, ...rest) =>
      on(event.projectId, ({ outbox }) => outbox.publishTo(event, ...rest)),

    claim: Effect.fnUntraced(function* (options) {
      const turns = yield* claimRest(yield* claimShares(options), options)
      return together(turns, options.limit)
    }),
    settle: (claim, settlement) =>
      on(claim.webhook.projectId, ({ outbox }) => outbox.settle(claim, settlement)),
    nextChange: Queue.take(changes),

    deliveries: (webhook, page) =>
      on(webhook.projectId, ({ outbox }) => outbox.deliveries(webhook, page)),
    find: (projectId, eventId) => on(projectId, ({ outbox }) => outbox.find(projectId, eventId)),
    replay: (webhook, ...rest) =>
      on(webhook.projectId, ({ outbox }) => outbox.replay(webhook, ...rest)),

    backlog: (most) =>
      Effect.map(
        Effect.forEach(all, (shard) => shard.use(({ outbox }) => outbox.backlog(most)), {
          concurrency: "unbounded",
        }),
        (found) => sum(found, most),
      ),
  }
})
