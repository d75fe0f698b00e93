/** The part of `MembershipStore` over several shards that announces the ends of memberships. */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { type ChangeContext, isReplayedResponse } from "../base/change-context.ts"
import { InvalidInput, type StoreUnavailable } from "../base/errors.ts"
import { Faults, makeOutageReporter } from "../base/faults.ts"
import type { Millis } from "../base/time.ts"
import { type ProjectId, ProjectNotFound } from "../base/values.ts"
import type { Event } from "../events/event.ts"
import type { FeedHistory, FeedStore } from "../events/feed-store.ts"
import type { DecideAnnouncement } from "../memberships/expiry.ts"
import type { AuditRow, ProjectSummary } from "../memberships/membership.ts"
import type { ExpiryStore, MembershipStore, SweepResult } from "../memberships/store.ts"
import {
  type ActivityCell,
  compareTroubles,
  fillCells,
  lastHour,
} from "../webhooks/delivery-activity.ts"
import type { Backlog, Claim, ClaimResult, Outbox, OutboxChange } from "../webhooks/outbox.ts"
import type { KeyUse, WebhookStore } from "../webhooks/store.ts"
import { type RoutedShards, type Routing, type Shard, rotate, shareEvenly } from "./shard-map.ts"

const expiryShardsNothing: SweepResult = { events: [], isMore: false }

/**
 * Makes the store, if the home can announce ends. Every shard is watched before it is swept, also one that
 * is opened later. One that does not answer is left out, unless all are silent.
 */
const makeExpiryShards = ({ all, home }: RoutedShards, faults: Faults): ExpiryStore | undefined => {
  const first = home.stores.memberships.expiry
  if (first === undefined) return undefined
  const watched = new Set<Shard>()
  const outages = new Map(
    all.map((shard) => [
      shard,
      makeOutageReporter(
        faults,
        `Ends of memberships of the shard ${shard.name} cannot be announced`,
      ),
    ]),
  )
  let leads: ReadonlyArray<Millis>
  let turn = 0

  const sweepShard = (shard: Shard, limit: number, judge: DecideAnnouncement) =>
    shard
      .use(({ memberships: { expiry } }) => {
        if (expiry === undefined) return Effect.succeed(expiryShardsNothing)
        const watch = Effect.map(expiry.watch(leads), () => watched.add(shard))
        const sweep = expiry.sweep(limit, judge)
        return watched.has(shard) ? sweep : Effect.andThen(watch, sweep)
      })
      .pipe(
        Effect.tap(() => Effect.sync(() => outages.get(shard)?.succeeded())),
        Effect.tapCause((cause) => outages.get(shard)?.failed(cause) ?? Effect.void),
        Effect.exit,
      )

  return {
    watch: (given) => {
      leads = given
      watched.clear()
      return Effect.tap(first.watch(given), () => Effect.sync(() => watched.add(home)))
    },

    sweep: Effect.fnUntraced(function* (limit, judge) {
      const events: Array<Event> = []
      let isMore = false
      let failure: Exit.Exit<SweepResult, StoreUnavailable> | undefined
      let silent = 0
      for (const shard of rotate(all, turn++)) {
        // Whether the others have any, the next sweep finds out, which begins with another.
        if (events.length === limit) return { events, isMore: true }
        const exit = yield* sweepShard(shard, limit - events.length, judge)
        if (Exit.isSuccess(exit)) {
          events.push(...exit.value.events)
          isMore ||= exit.value.isMore
        } else {
          failure = exit
          silent++
        }
      }
      return failure === undefined || silent < all.length ? { events, isMore } : yield* failure
    }),
  }
}

/** The port `MembershipStore` over several shards. */

type Store = MembershipStore["Service"]

const byId = (one: { readonly id: string }, other: { readonly id: string }): number =>
  one.id < other.id ? -1 : 1

/** Returns what a shard knows of an idempotency key. Fails if it belongs to another request. */
const recallIn = (shard: Shard, { once }: ChangeContext) =>
  once === undefined
    ? Effect.undefined
    : shard.use(({ memberships }) => memberships.recall(once, undefined))

/** Returns those of a few projects that a shard has. */
const summariesIn = (shard: Shard, ids: ReadonlyArray<ProjectId>) =>
  shard.use(({ memberships }) =>
    memberships.listProjects({ within: new Set(ids), after: undefined, limit: ids.length }),
  )

/** Makes the store. */
export const makeMembershipShards = (
  shards: RoutedShards,
  routing: Routing,
  faults: Faults,
): Store => {
  const { all, apiKeys, directory, home, map } = shards
  const { locate, on, shardOf } = routing

  /** Returns projects of the directory: from their shards, or from where they are while they are moved. */
  const summariesOf = Effect.fnUntraced(function* (ids: ReadonlyArray<ProjectId>) {
    const byShard = new Map<Shard, Array<ProjectId>>()
    for (const id of ids) byShard.set(shardOf(id), [...(byShard.get(shardOf(id)) ?? []), id])
    const mapped = (yield* Effect.forEach(byShard, ([shard, own]) => summariesIn(shard, own), {
      concurrency: "unbounded",
    })).flat()
    const found = new Set(mapped.map(({ id }) => id))
    const missing = ids.filter((id) => !found.has(id))
    if (missing.length === 0) return mapped
    const moving = (yield* Effect.forEach(all, (shard) => summariesIn(shard, missing), {
      concurrency: "unbounded",
    })).flat()
    // Both ends of a move have it for a while.
    return [...mapped, ...new Map(moving.map((project) => [project.id, project])).values()]
  })

  const listProjects: Store["listProjects"] = Effect.fnUntraced(function* ({ limit, ...page }) {
    const listed: Array<ProjectSummary> = []
    let after = page.after
    // A project that is just being created or deleted may be in the directory alone.
    for (;;) {
      const asked = { within: page.within, after, limit: limit - listed.length }
      const [here, elsewhere] = yield* Effect.all(
        [home.use(({ memberships }) => memberships.listProjects(asked)), directory.list(asked)],
        { concurrency: "unbounded" },
      )
      const named = new Set(elsewhere)
      const own = here.filter(({ id }) => !named.has(id))
      const next = [...own.map(({ id }) => id), ...elsewhere].toSorted().slice(0, asked.limit)
      const ids = new Set(next)
      const others = yield* summariesOf(elsewhere.filter((id) => ids.has(id)))
      listed.push(...[...own.filter(({ id }) => ids.has(id)), ...others].toSorted(byId))
      const last = next.at(-1)
      if (last === undefined || next.length < asked.limit || listed.length === limit) return listed
      after = last
    }
  })

  /** Adds the names of keys, which are in the home. */
  const named = Effect.fnUntraced(function* (rows: ReadonlyArray<AuditRow>) {
    const ids = new Set(rows.flatMap(({ origin: { keyId } }) => keyId ?? []))
    if (ids.size === 0) return rows
    const names = yield* apiKeys.names(ids)
    return rows.map((row) => ({
      ...row,
      keyName: row.origin.keyId && names.get(row.origin.keyId),
    }))
  })

  return {
    ping: home.stores.memberships.ping,
    expiry: makeExpiryShards(shards, faults),

    createProject: Effect.fnUntraced(function* (projectId, occasion) {
      if (map(projectId) === undefined) {
        return yield* new InvalidInput({
          field: "projectId",
          problem: "must be one that an entry of the databases names",
        })
      }
      const shard = shardOf(projectId)
      // A key of another request must be refused before anything is created.
      const known = shard === home ? undefined : yield* recallIn(home, occasion)
      if (known !== undefined) return known
      const place = yield* locate(projectId)
      // Keys that opened what was deleted must not open what is created.
      if (place === "directory")
        yield* directory.remove(projectId, { ...occasion, once: undefined })
      const created = yield* shard.use(({ memberships }) =>
        memberships.createProject(projectId, occasion),
      )
      if (shard === home) return created
      const added = yield* directory.add(projectId, occasion)
      // The same request may have been answered elsewhere, before its name was removed above.
      if (isReplayedResponse(added) && !(yield* directory.has(projectId)))
        yield* directory.add(projectId, { ...occasion, once: undefined })
      return added
    }),

    deleteProject: Effect.fnUntraced(function* (projectId, occasion) {
      const remove = on(projectId, ({ memberships }) =>
        memberships.deleteProject(projectId, occasion),
      )
      const shard = shardOf(projectId)
      if (shard === home) return yield* remove
      const known = yield* recallIn(home, occasion)
      // A key of another request must be refused before anything is removed.
      yield* recallIn(shard, occasion)
      // One that is being moved has to stay known.
      const place = known === undefined ? yield* locate(projectId) : "directory"
      if (place === "nowhere") return yield* new ProjectNotFound({ projectId })
      // Its name goes first: no key may open a project that is created again.
      const removed = yield* directory.remove(projectId, occasion)
      if (place === "shard" && !isReplayedResponse(removed)) return yield* remove
      // There may be no more to delete.
      return yield* Effect.catchTag(remove, "ProjectNotFound", () => Effect.succeed(removed))
    }),

    findProject: (projectId) =>
      on(projectId, ({ memberships }) => memberships.findProject(projectId)),
    listProjects,

    grant: (change) => on(change.projectId, ({ memberships }) => memberships.grant(change)),
    import: (change) => on(change.projectId, ({ memberships }) => memberships.import(change)),
    extend: (change) => on(change.projectId, ({ memberships }) => memberships.extend(change)),
    extendAll: (change) => on(change.projectId, ({ memberships }) => memberships.extendAll(change)),
    setMetadata: (change) =>
      on(change.projectId, ({ memberships }) => memberships.setMetadata(change)),
    end: (change) => on(change.projectId, ({ memberships }) => memberships.end(change)),
    erase: (change) => on(change.projectId, ({ memberships }) => memberships.erase(change)),

    undoBulkExtension: (undo) =>
      on(undo.projectId, ({ memberships }) => memberships.undoBulkExtension(undo)),
    bulkExtensions: (projectId, page) =>
      on(projectId, ({ memberships }) => memberships.bulkExtensions(projectId, page)),
    previewBulkExtension: (projectId, change) =>
      on(projectId, ({ memberships }) => memberships.previewBulkExtension(projectId, change)),
    countEnds: (projectId, query) =>
      on(projectId, ({ memberships }) => memberships.countEnds(projectId, query)),
    previewPublication: (projectId, ...rest) =>
      on(projectId, ({ memberships }) => memberships.previewPublication(projectId, ...rest)),
    previewUndo: (projectId, target) =>
      on(projectId, ({ memberships }) => memberships.previewUndo(projectId, target)),
    recall: (once, projectId) =>
      projectId === undefined
        ? home.use(({ memberships }) => memberships.recall(once, projectId))
        : on(projectId, ({ memberships }) => memberships.recall(once, projectId)),
    find: (projectId, userId) =>
      on(projectId, ({ memberships }) => memberships.find(projectId, userId)),
    list: (projectId, page) =>
      on(projectId, ({ memberships }) => memberships.list(projectId, page)),

    listEnding: (projectId, page) =>
      on(projectId, ({ memberships }) => memberships.listEnding(projectId, page)),
    recordShown: (projectId, ...rest) =>
      on(projectId, ({ memberships }) => memberships.recordShown(projectId, ...rest)),
    history: (projectId, page) =>
      projectId === undefined
        ? home.use(({ memberships }) => memberships.history(projectId, page))
        : Effect.flatMap(
            on(projectId, ({ memberships }) => memberships.history(projectId, page)),
            shardOf(projectId) === home ? Effect.succeed : named,
          ),
  }
}

/** Asks all shards. Returns what those that answer say, and fails if none does. */
const askAnswering = <A, E>(
  all: ReadonlyArray<Shard>,
  ask: (shard: Shard) => Effect.Effect<A, E>,
): Effect.Effect<ReadonlyArray<A>, E> =>
  Effect.gen(function* () {
    const exits = yield* Effect.forEach(all, (shard) => Effect.exit(ask(shard)), {
      concurrency: "unbounded",
    })
    const found = exits.flatMap((exit) => (Exit.isSuccess(exit) ? [exit.value] : []))
    const [first] = exits
    if (found.length === 0 && first !== undefined && Exit.isFailure(first)) {
      return yield* Effect.failCause(first.cause)
    }
    return found
  })

/** The port `Outbox` over several shards. Each keeps its own promises; they share what a process claims. */

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
  readonly claimed: ClaimResult
}

const nothing: ClaimResult = { claims: [], nextDueMillis: undefined, keptBack: [] }

const outboxShardsSilent: ClaimResult = { ...nothing, nextDueMillis: retryMillis }

/** Whether a share was too small for a shard. */
const mayHaveMore = ({ claimed: { claims, nextDueMillis }, failing, limit }: Turn): boolean =>
  claims.length === limit ? nextDueMillis === 0 || limit === 0 : failingOf(claims) === failing

const together = (turns: ReadonlyArray<Turn>, limit: number): ClaimResult => {
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

/** Adds up the minutes of all shards. Their clocks may be in different minutes. */
const sumMinutes = (all: ReadonlyArray<ReadonlyArray<ActivityCell>>): ReadonlyArray<ActivityCell> =>
  fillCells(lastHour, Math.max(...all.map((minutes) => minutes.at(-1)?.at ?? 0)), all.flat())

/** Makes the outbox. Watches the changes of all shards for as long as the scope is open. */
export const makeOutboxShards = Effect.fnUntraced(function* (
  { all, home }: RoutedShards,
  { on }: Routing,
): Effect.fn.Return<Outbox["Service"], never, Scope.Scope> {
  const faults = yield* Faults
  const outages = new Map(
    all.map((shard) => [
      shard,
      makeOutageReporter(faults, `Deliveries of the shard ${shard.name} cannot be claimed`),
    ]),
  )
  let turn = 0

  /** Claims from a shard. One that does not answer has nothing for now, and keeps no other waiting for long. */
  const claimFrom = (shard: Shard, options: Options): Effect.Effect<ClaimResult> =>
    options.limit <= 0
      ? Effect.succeed(nothing)
      : shard
          .use(({ outbox }) => outbox.claim(options))
          .pipe(
            Effect.tap(() => Effect.sync(() => outages.get(shard)?.succeeded())),
            Effect.catchCause((cause) =>
              Effect.as(outages.get(shard)?.failed(cause) ?? Effect.void, outboxShardsSilent),
            ),
          )

  /** Claims an equal share from each shard, all at the same time. */
  const claimShares = (options: Options) => {
    const order = rotate(all, turn++)
    const limits = shareEvenly(options.limit, order.length)
    const failing = shareEvenly(options.failing, order.length)
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

  const changes = yield* Queue.bounded<OutboxChange>(mostChanges)
  for (const shard of all) {
    const outage = makeOutageReporter(
      faults,
      `Changes of the shard ${shard.name} cannot be watched`,
    )
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
    attempted: (webhook, page) =>
      on(webhook.projectId, ({ outbox }) => outbox.attempted(webhook, page)),
    progress: (projectId, webhookIds) =>
      on(projectId, ({ outbox }) => outbox.progress(projectId, webhookIds)),
    activity: (webhook) => on(webhook.projectId, ({ outbox }) => outbox.activity(webhook)),
    minutes: (projectId) =>
      projectId === undefined
        ? Effect.map(
            Effect.forEach(all, (shard) => shard.use(({ outbox }) => outbox.minutes(undefined)), {
              concurrency: "unbounded",
            }),
            sumMinutes,
          )
        : on(projectId, ({ outbox }) => outbox.minutes(projectId)),
    troubled: (most) =>
      Effect.map(
        askAnswering(all, (shard) => shard.use(({ outbox }) => outbox.troubled(most))),
        (found) => found.flat().toSorted(compareTroubles).slice(0, most),
      ),
    find: (projectId, eventId) => on(projectId, ({ outbox }) => outbox.find(projectId, eventId)),
    replay: (webhook, ...rest) =>
      on(webhook.projectId, ({ outbox }) => outbox.replay(webhook, ...rest)),
    replayMany: (webhook, ...rest) =>
      on(webhook.projectId, ({ outbox }) => outbox.replayMany(webhook, ...rest)),

    backlog: (most) =>
      Effect.map(
        Effect.forEach(all, (shard) => shard.use(({ outbox }) => outbox.backlog(most)), {
          concurrency: "unbounded",
        }),
        (found) => sum(found, most),
      ),
  }
})

/** The port `FeedStore` over several shards, each of which has a history of its own. */

const historyOf = (shard: Shard): FeedHistory => ({
  read: (...asked) => shard.use(({ feed }) => feed.read(...asked)),
})

/** Makes the store. */
export const makeFeedShards = (
  { all }: RoutedShards,
  { on, shardOf }: Routing,
): FeedStore["Service"] => {
  const [home, ...others] = all
  const first = historyOf(home)
  const histories = new Map(others.map((shard) => [shard, historyOf(shard)] as const))
  return {
    read: (projects, ...rest) => on(projects[0], ({ feed }) => feed.read(projects, ...rest)),
    latest: (projectId, ...rest) => on(projectId, ({ feed }) => feed.latest(projectId, ...rest)),
    histories: {
      all: [first, ...histories.values()],
      of: (projectId) => histories.get(shardOf(projectId)) ?? first,
    },
  }
}

/** The port `WebhookStore` over several shards. */

/** Makes the store. */
export const makeWebhookShards = (
  { all, home }: RoutedShards,
  { on }: Routing,
  keyUses = new Map<Shard, ReadonlyArray<KeyUse>>(),
): WebhookStore["Service"] => ({
  ping: home.stores.memberships.ping,
  encryptionKeys: (now) =>
    Effect.map(
      askAnswering(all, (shard) =>
        Effect.tap(
          shard.use(({ webhooks }) => webhooks.encryptionKeys(now)),
          (uses) => Effect.sync(() => keyUses.set(shard, uses)),
        ),
      ),
      // Databases may have other keys under the same id, so that each is judged by itself. During an outage of one, its
      // last answer holds.
      () => all.flatMap((shard) => keyUses.get(shard) ?? []),
    ),
  add: (webhook, ...rest) =>
    on(webhook.projectId, ({ webhooks }) => webhooks.add(webhook, ...rest)),
  list: (projectId) => on(projectId, ({ webhooks }) => webhooks.list(projectId)),
  find: (projectId, ...rest) => on(projectId, ({ webhooks }) => webhooks.find(projectId, ...rest)),
  rotateSecret: (projectId, ...rest) =>
    on(projectId, ({ webhooks }) => webhooks.rotateSecret(projectId, ...rest)),
  addSigningKey: (projectId, ...rest) =>
    on(projectId, ({ webhooks }) => webhooks.addSigningKey(projectId, ...rest)),
  update: (webhook, ...rest) =>
    on(webhook.projectId, ({ webhooks }) => webhooks.update(webhook, ...rest)),
  enable: (projectId, ...rest) =>
    on(projectId, ({ webhooks }) => webhooks.enable(projectId, ...rest)),
  remove: (projectId, ...rest) =>
    on(projectId, ({ webhooks }) => webhooks.remove(projectId, ...rest)),
})
