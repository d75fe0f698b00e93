/**
 * Presents several cells' stores as one store.
 *
 * A project's data is in its cell: memberships, webhooks, events and deliveries, audit trail, and the
 * responses to its changes' idempotency keys. So each change stays one statement in one database. The
 * home has the data outside projects: API keys, tickets, limits, and the audit trail for projects and
 * keys. It has all project ids as well, without their data, so that keys can give access to them and
 * lists have one order and one cursor.
 *
 * - **Projects** are created in their cell, then in the home, and deleted in the opposite order, so
 *   that no key has access to a project created again. Either can be repeated after a crash.
 * - **Deliveries** are claimed from all cells at the same time, an equal share from each; unused shares
 *   go to the others, in turns. A claim is settled in its project's cell.
 * - **The feed** has a separate history for each cell.
 * - **A cell that does not answer** fails the requests for its projects. Without the home, only cached
 *   API keys can be authenticated.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { StoreUnavailable } from "../base/errors.ts"
import { ErrorReporter, makeOutageReporter } from "../base/faults.ts"
import type { Millis } from "../base/time.ts"
import { invariant, type ProjectId, ProjectNotFound } from "../base/values.ts"
import type { Event } from "../events/event.ts"
import { FeedStore } from "../events/feed-store.ts"
import type { AuditRow } from "../memberships/audit-trail.ts"
import { type ExpiryStore, type SweepResult } from "../memberships/expiry-store.ts"
import type { DecideAnnouncement } from "../memberships/expiry.ts"
import { MembershipStore } from "../memberships/store.ts"
import {
  type ActivityCell,
  compareTroubles,
  fillCells,
  lastHour,
} from "../webhooks/delivery-activity.ts"
import {
  type Backlog,
  type Claim,
  type ClaimResult,
  Outbox,
  type OutboxChange,
} from "../webhooks/outbox.ts"
import { type KeyUse, WebhookStore } from "../webhooks/store.ts"
import { type Cell, Cells, type HomeStores, cellNumber, rotate, shareEvenly } from "./cell.ts"

/** All cells, ordered by number. */
export type AllCells = readonly [Cell, ...ReadonlyArray<Cell>]

/** Returns a project's cell. */
const cellOf = (all: AllCells, projectId: ProjectId): Cell => {
  const cell = all[cellNumber(projectId, all.length)]
  invariant(cell !== undefined, "a project is in no cell")
  return cell
}

const nothingToAnnounce: SweepResult = { events: [], isMore: false, nextDueMillis: Infinity }

/** Returns the lesser time, if both are known. */
const lesser = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? undefined : Math.min(one, other)

/**
 * The part in `MembershipStore` for announcements. A cell that does not answer is left out, unless all
 * fail.
 */
const makeExpiry = (
  home: ExpiryStore | undefined,
  all: AllCells,
  faults: ErrorReporter,
): ExpiryStore | undefined => {
  if (home === undefined) return undefined
  const outages = new Map(
    all.map((cell) => [
      cell,
      makeOutageReporter(
        faults,
        `Ends of memberships of the cell ${cell.name} cannot be announced`,
      ),
    ]),
  )
  const watched = new Set<Cell>()
  let leads: ReadonlyArray<Millis>
  let turn = 0

  const watchCell = (cell: Cell) =>
    Effect.map(cell.memberships.expiry?.watch(leads) ?? Effect.void, () => watched.add(cell))

  /** Sweeps a cell, after starting its watch. */
  const sweepCell = (cell: Cell, limit: number, decide: DecideAnnouncement) => {
    const sweep = cell.memberships.expiry?.sweep(limit, decide) ?? Effect.succeed(nothingToAnnounce)
    return (watched.has(cell) ? sweep : Effect.andThen(watchCell(cell), sweep)).pipe(
      Effect.tap(({ events }) =>
        Effect.sync(() => {
          invariant(events.length <= limit, "a cell exceeded the limit of a sweep")
          outages.get(cell)?.succeeded()
        }),
      ),
      Effect.tapCause((cause) => outages.get(cell)?.failed(cause) ?? Effect.void),
      Effect.exit,
    )
  }

  return {
    watch: (given) =>
      Effect.suspend(() => {
        leads = given
        watched.clear()
        // A cell now down is watched by the first sweep to reach it. The home records the watch's
        // beginning.
        const watch = Effect.forEach(all, (cell) => Effect.ignore(watchCell(cell)), {
          concurrency: "unbounded",
        })
        return Effect.andThen(watch, home.watch(given))
      }),

    watchedSince: home.watchedSince,

    sweep: Effect.fnUntraced(function* (limit, decide) {
      const events: Array<Event> = []
      let isMore = false
      let nextDueMillis: number | undefined = Infinity
      let failure: Exit.Exit<SweepResult, StoreUnavailable> | undefined
      let silent = 0
      for (const cell of rotate(all, turn++)) {
        // The next sweep begins with another cell, and finds any events in the others.
        if (events.length === limit) return { events, isMore: true }
        const exit = yield* sweepCell(cell, limit - events.length, decide)
        if (Exit.isSuccess(exit)) {
          events.push(...exit.value.events)
          isMore ||= exit.value.isMore
          nextDueMillis = lesser(nextDueMillis, exit.value.nextDueMillis)
        } else {
          nextDueMillis = undefined
          failure = exit
          silent++
        }
      }
      return failure === undefined || silent < all.length
        ? { events, isMore, nextDueMillis }
        : yield* failure
    }),
  }
}

type Memberships = MembershipStore["Service"]

/** A deletion's result in the home or in the project's cell: nothing, if the project is not there. */
const ifThere = (deletion: ReturnType<Memberships["deleteProject"]>) =>
  Effect.catchTag(deletion, "ProjectNotFound", () => Effect.succeed("absent" as const))

/** Makes the port `MembershipStore`. */
const makeCellMemberships = (
  { apiKeys, memberships: home }: HomeStores,
  all: AllCells,
  faults: ErrorReporter,
): Memberships => {
  const on = (projectId: ProjectId): Memberships => cellOf(all, projectId).memberships

  const summariesOf = Effect.fnUntraced(function* (ids: ReadonlyArray<ProjectId>) {
    const byCell = new Map<Memberships, Array<ProjectId>>()
    for (const id of ids) byCell.set(on(id), [...(byCell.get(on(id)) ?? []), id])
    const found = yield* Effect.forEach(
      byCell,
      ([memberships, own]) =>
        memberships.listProjects({ within: new Set(own), after: undefined, limit: own.length }),
      { concurrency: "unbounded" },
    )
    return new Map(found.flat().map((summary) => [summary.id, summary]))
  })

  /** Adds the keys' names from the home. */
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
    ping: home.ping,
    expiry: makeExpiry(home.expiry, all, faults),

    createProject: Effect.fnUntraced(function* (projectId, context) {
      const { idempotency } = context
      // Another request's key must be refused before anything is created.
      const known =
        idempotency === undefined ? undefined : yield* home.recall(idempotency, undefined)
      if (known !== undefined) return known
      yield* on(projectId).createProject(projectId, { ...context, idempotency: undefined })
      return yield* home.createProject(projectId, context)
    }),

    updateProject: (change) => on(change.projectId).updateProject(change),

    deleteProject: Effect.fnUntraced(function* (projectId, context) {
      const { idempotency } = context
      const own = on(projectId)
      // Another request's key must be refused before anything is removed.
      if (idempotency !== undefined) yield* own.recall(idempotency, undefined)
      // From the home first: no key may have access to a project created again.
      const fromHome = yield* ifThere(home.deleteProject(projectId, context))
      const fromCell = yield* ifThere(own.deleteProject(projectId, context))
      if (fromCell !== "absent") return fromCell
      // If several deletions run at the same time, the cell's counts. A repetition may find nothing
      // there.
      if (fromHome === "absent" || fromHome === undefined)
        return yield* new ProjectNotFound({ projectId })
      return fromHome
    }),

    findProject: (projectId) => on(projectId).findProject(projectId),

    listProjects: Effect.fnUntraced(function* (page) {
      const listed = yield* home.listProjects(page)
      const summaries = yield* summariesOf(listed.map(({ id }) => id))
      // A project may be in the home alone while it is being created.
      return listed.map((project) => summaries.get(project.id) ?? project)
    }),

    grant: (change) => on(change.projectId).grant(change),
    grantIfAbsent: (change) => on(change.projectId).grantIfAbsent(change),
    import: (change) => on(change.projectId).import(change),
    extend: (change) => on(change.projectId).extend(change),
    changeEach: (change) => on(change.projectId).changeEach(change),
    extendAll: (change) => on(change.projectId).extendAll(change),
    setMetadata: (change) => on(change.projectId).setMetadata(change),
    end: (change) => on(change.projectId).end(change),
    move: (change) => on(change.projectId).move(change),
    pause: (change) => on(change.projectId).pause(change),
    resume: (change) => on(change.projectId).resume(change),
    erase: (change) => on(change.projectId).erase(change),

    undoBulkExtension: (undo) => on(undo.projectId).undoBulkExtension(undo),
    bulkExtensions: (projectId, page) => on(projectId).bulkExtensions(projectId, page),
    previewBulkExtension: (projectId, change, offsets) =>
      on(projectId).previewBulkExtension(projectId, change, offsets),
    countEnds: (projectId, query) => on(projectId).countEnds(projectId, query),
    countEndedBetween: (projectId, ago) => on(projectId).countEndedBetween(projectId, ago),
    previewPublication: (projectId, ...rest) =>
      on(projectId).previewPublication(projectId, ...rest),
    previewUndo: (projectId, target, offsets) =>
      on(projectId).previewUndo(projectId, target, offsets),
    recall: (idempotency, projectId) =>
      (projectId === undefined ? home : on(projectId)).recall(idempotency, projectId),
    find: (projectId, userId) => on(projectId).find(projectId, userId),
    list: (projectId, page) => on(projectId).list(projectId, page),
    listEnding: (projectId, page) => on(projectId).listEnding(projectId, page),
    recordShown: (projectId, ...rest) => on(projectId).recordShown(projectId, ...rest),
    history: (projectId, page) =>
      projectId === undefined
        ? home.history(projectId, page)
        : Effect.flatMap(on(projectId).history(projectId, page), named),
    searchHistory: (projectId, page) =>
      projectId === undefined
        ? home.searchHistory(projectId, page)
        : Effect.flatMap(on(projectId).searchHistory(projectId, page), ({ next, rows }) =>
            Effect.map(named(rows), (found) => ({ rows: found, next })),
          ),
    selectedChanges: (projectId, page) => on(projectId).selectedChanges(projectId, page),
  }
}

/** Asks all cells. Returns the available answers, and fails if there are none. */
const askAnswering = <A, E>(
  all: AllCells,
  ask: (cell: Cell) => Effect.Effect<A, E>,
): Effect.Effect<ReadonlyArray<A>, E> =>
  Effect.gen(function* () {
    const exits = yield* Effect.forEach(all, (cell) => Effect.exit(ask(cell)), {
      concurrency: "unbounded",
    })
    const found = exits.flatMap((exit) => (Exit.isSuccess(exit) ? [exit.value] : []))
    const [first] = exits
    if (found.length === 0 && first !== undefined && Exit.isFailure(first)) {
      return yield* Effect.failCause(first.cause)
    }
    return found
  })

type Options = Parameters<Outbox["Service"]["claim"]>[0]

// The pause before asking a cell again after it did not answer.
const retryMillis = 250

// How many changes wait for the dispatcher; then the cells wait.
const maxChanges = 16

const isFailing = ({ webhook }: Claim): boolean => webhook.failures > 0

const failingOf = (claims: ReadonlyArray<Claim>): number => claims.filter(isFailing).length

const sooner = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other)

/** A cell's share in a claim, and its deliveries claimed so far. */
interface Turn {
  readonly cell: Cell
  readonly limit: number
  readonly failing: number
  readonly claimed: ClaimResult
}

const nothingClaimed: ClaimResult = { claims: [], nextDueMillis: undefined, keptBack: [] }

const silence: ClaimResult = { ...nothingClaimed, nextDueMillis: retryMillis }

/** Whether a share was too small for a cell. */
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

const longest = (times: ReadonlyArray<number | undefined>): number | undefined => {
  const known = times.filter((time) => time !== undefined)
  return known.length === 0 ? undefined : Math.max(...known)
}

const sum = (all: ReadonlyArray<Backlog>, most: number): Backlog => ({
  waiting: sumOf(
    all.map(({ waiting }) => waiting),
    most,
  ),
  dueForMillis: longest(all.map(({ dueForMillis }) => dueForMillis)),
  lateForMillis: longest(all.map(({ lateForMillis }) => lateForMillis)),
  failedDeliveries: sumOf(
    all.map(({ failedDeliveries }) => failedDeliveries),
    most,
  ),
  disabledWebhooks: sumOf(
    all.map(({ disabledWebhooks }) => disabledWebhooks),
    most,
  ),
})

/** Adds up all cells' minutes. Their clocks may be in different minutes. */
const sumMinutes = (all: ReadonlyArray<ReadonlyArray<ActivityCell>>): ReadonlyArray<ActivityCell> =>
  fillCells(lastHour, Math.max(...all.map((minutes) => minutes.at(-1)?.at ?? 0)), all.flat())

/** Reports changes in some cells' outboxes, as an outbox's `nextChange` does. */
export interface CellChanges {
  /** Its name in logs. */
  readonly name: string
  readonly next: Effect.Effect<OutboxChange, StoreUnavailable>
}

/**
 * Makes the port `Outbox`. Each cell keeps its own guarantees; they share a process's claims. Watches
 * all cells' changes while the scope is open.
 */
const makeCellOutbox = Effect.fnUntraced(function* (
  all: AllCells,
  watched: ReadonlyArray<CellChanges>,
): Effect.fn.Return<Outbox["Service"], never, Scope.Scope> {
  const faults = yield* ErrorReporter
  const outages = new Map(
    all.map((cell) => [
      cell,
      makeOutageReporter(faults, `Deliveries of the cell ${cell.name} cannot be claimed`),
    ]),
  )
  let turn = 0

  const on = (projectId: ProjectId) => cellOf(all, projectId).outbox

  /**
   * Claims from a cell. A cell that does not answer yields nothing for now, and keeps no other waiting
   * for long.
   */
  const claimFrom = (cell: Cell, options: Options): Effect.Effect<ClaimResult> =>
    options.limit <= 0
      ? Effect.succeed(nothingClaimed)
      : cell.outbox.claim(options).pipe(
          Effect.tap(({ claims }) =>
            Effect.sync(() => {
              invariant(claims.length <= options.limit, "a cell exceeded the limit of a claim")
              outages.get(cell)?.succeeded()
            }),
          ),
          Effect.catchCause((cause) =>
            Effect.as(outages.get(cell)?.failed(cause) ?? Effect.void, silence),
          ),
        )

  /** Claims an equal share from each cell, all at the same time. */
  const claimShares = (options: Options) => {
    const order = rotate(all, turn++)
    const limits = shareEvenly(options.limit, order.length)
    const failing = shareEvenly(options.failing, order.length)
    const first = order.map((cell, index) => ({
      cell,
      limit: limits[index] ?? 0,
      failing: failing[index] ?? 0,
    }))
    return Effect.forEach(
      first,
      (one) =>
        Effect.map(
          claimFrom(one.cell, { ...options, limit: one.limit, failing: one.failing }),
          (claimed): Turn => ({ ...one, claimed }),
        ),
      { concurrency: "unbounded" },
    )
  }

  /** Claims unused shares from cells with too small a share, one after the other. */
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
      const more = yield* claimFrom(one.cell, { ...options, limit, failing })
      limit -= more.claims.length
      failing = Math.max(0, failing - failingOf(more.claims))
      settled.push({
        ...one,
        claimed: { ...more, claims: [...one.claimed.claims, ...more.claims] },
      })
    }
    return settled
  })

  const changes = yield* Queue.bounded<OutboxChange>(maxChanges)
  for (const { name, next } of watched) {
    const outage = makeOutageReporter(faults, `Changes of ${name} cannot be watched`)
    const follow = next.pipe(
      Effect.flatMap((change) => {
        outage.succeeded()
        return Queue.offer(changes, change)
      }),
      Effect.catchCause((cause) => Effect.andThen(outage.failed(cause), Effect.sleep(retryMillis))),
    )
    yield* Effect.forkScoped(Effect.forever(follow))
  }

  return {
    // Across all cells: each cell's metrics tell whether it answers.
    ping: Effect.asVoid(askAnswering(all, ({ outbox }) => outbox.ping)),

    publish: (event, ...rest) => on(event.projectId).publish(event, ...rest),
    publishTo: (event, ...rest) => on(event.projectId).publishTo(event, ...rest),

    claim: Effect.fnUntraced(function* (options) {
      const turns = yield* claimRest(yield* claimShares(options), options)
      return together(turns, options.limit)
    }),
    settle: (claim, settlement) => on(claim.webhook.projectId).settle(claim, settlement),
    nextChange: Queue.take(changes),

    deliveries: (webhook, page) => on(webhook.projectId).deliveries(webhook, page),
    attempted: (webhook, page) => on(webhook.projectId).attempted(webhook, page),
    progress: (projectId, webhookIds) => on(projectId).progress(projectId, webhookIds),
    activity: (webhook) => on(webhook.projectId).activity(webhook),
    minutes: (projectId) =>
      projectId === undefined
        ? Effect.map(
            Effect.forEach(all, ({ outbox }) => outbox.minutes(undefined), {
              concurrency: "unbounded",
            }),
            sumMinutes,
          )
        : on(projectId).minutes(projectId),
    troubled: (most) =>
      Effect.map(
        askAnswering(all, ({ outbox }) => outbox.troubled(most)),
        (found) => found.flat().toSorted(compareTroubles).slice(0, most),
      ),
    find: (projectId, eventId) => on(projectId).find(projectId, eventId),
    replay: (webhook, ...rest) => on(webhook.projectId).replay(webhook, ...rest),
    replayMany: (webhook, ...rest) => on(webhook.projectId).replayMany(webhook, ...rest),
    cancel: (webhook, ...rest) => on(webhook.projectId).cancel(webhook, ...rest),

    backlog: (most) =>
      Effect.map(
        Effect.forEach(all, ({ outbox }) => outbox.backlog(most), { concurrency: "unbounded" }),
        (found) => sum(found, most),
      ),
  }
})

/** Makes the port `FeedStore`: each cell has its own history. */
const makeCellFeed = (all: AllCells): FeedStore["Service"] => {
  const on = (projectId: ProjectId) => cellOf(all, projectId).feed
  return {
    read: (projects, ...rest) => on(projects[0]).read(projects, ...rest),
    latest: (projectId, ...rest) => on(projectId).latest(projectId, ...rest),
    histories: { all: [all[0].feed, ...all.slice(1).map(({ feed }) => feed)], of: on },
  }
}

/** Makes the port `WebhookStore`. */
const makeCellWebhooks = (all: AllCells): WebhookStore["Service"] => {
  const on = (projectId: ProjectId) => cellOf(all, projectId).webhooks
  const keyUses = new Map<Cell, ReadonlyArray<KeyUse>>()
  return {
    ping: Effect.asVoid(askAnswering(all, ({ webhooks }) => webhooks.ping)),
    encryptionKeys: (now) =>
      Effect.map(
        askAnswering(all, (cell) =>
          Effect.tap(cell.webhooks.encryptionKeys(now), (uses) =>
            Effect.sync(() => keyUses.set(cell, uses)),
          ),
        ),
        // Cells may have other keys under the same id, so each is judged by itself. During a cell's
        // outage, its last answer holds.
        () => all.flatMap((cell) => keyUses.get(cell) ?? []),
      ),
    add: (webhook, ...rest) => on(webhook.projectId).add(webhook, ...rest),
    list: (projectId) => on(projectId).list(projectId),
    find: (projectId, ...rest) => on(projectId).find(projectId, ...rest),
    rotateSecret: (projectId, ...rest) => on(projectId).rotateSecret(projectId, ...rest),
    addSigningKey: (projectId, ...rest) => on(projectId).addSigningKey(projectId, ...rest),
    update: (webhook, ...rest) => on(webhook.projectId).update(webhook, ...rest),
    enable: (projectId, ...rest) => on(projectId).enable(projectId, ...rest),
    remove: (projectId, ...rest) => on(projectId).remove(projectId, ...rest),
  }
}

/**
 * Makes the cells' stores, open as long as the scope.
 *
 * @param given.home - has the data outside projects, and all projects' names
 * @param given.cells - all cells, ordered by number
 * @param given.changes - reports changes in the outboxes, for each cell or for some together
 */
export const makeCellStores = Effect.fnUntraced(function* ({
  cells,
  changes,
  home,
}: {
  readonly home: HomeStores
  readonly cells: AllCells
  readonly changes: ReadonlyArray<CellChanges>
}) {
  return Context.make(MembershipStore, makeCellMemberships(home, cells, yield* ErrorReporter)).pipe(
    Context.add(WebhookStore, makeCellWebhooks(cells)),
    Context.add(Outbox, yield* makeCellOutbox(cells, changes)),
    Context.add(FeedStore, makeCellFeed(cells)),
    Context.add(Cells, cells),
  )
})
