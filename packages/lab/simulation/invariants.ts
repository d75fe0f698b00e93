/** What holds in every run. */

import type { Call, Commit, Run, StoredEvent } from "./record.ts"
import type { Weather } from "./weather.ts"
import { holdMillis, maxAttempts, reminderSeconds } from "./world.ts"

/** Something that holds in every run. */
export interface Invariant {
  readonly name: string
  /** Returns what is wrong in a run. */
  readonly find: (run: Run, weather: Weather) => ReadonlyArray<string>
}

/** Events with the time at which the stores made the change. */
interface Change extends StoredEvent {
  readonly commit: Commit
  /** The grace of its project then. */
  readonly graceMillis: number
}

/** All changes, in each project's order. */
export const changesOf = ({ commits, graces, remains }: Run): ReadonlyArray<Change> => {
  const byId = new Map(commits.map((commit, index) => [commit.eventId, { commit, index }]))
  return remains.events.flatMap((event) => {
    const { commit, index = 0 } = byId.get(event.id) ?? {}
    if (commit === undefined) return []
    const last = graces.findLast((one) => one.projectId === event.projectId && one.commits <= index)
    return [{ ...event, commit, graceMillis: last?.graceMillis ?? 0 }]
  })
}

const dateOf = (value: unknown): number | undefined =>
  typeof value === "string" ? Date.parse(value) : undefined

/** What a client can tell a change by: it alone asks for this date, or has this mark. */
export const markOf = ({ data, projectId, type }: StoredEvent): unknown => {
  switch (type) {
    case "memberships.extension_undone":
      return data["bulk_extension_id"]
    case "membership.ended":
      return endOf(projectId, data["user_id"])
    case "membership.paused":
    case "membership.resumed":
      return data["reason"]
    default:
      return dateOf(data["new_end_date"]) ?? data["mark"]
  }
}

/** What a membership's ends have in common. */
const endOf = (projectId: string, userId: unknown): string => `end of ${userId} in ${projectId}`

export const markOfCall = ({ action, endDate, projectId, subject, userId }: Call): unknown => {
  switch (action) {
    case "publish":
    case "undo":
    case "pause":
    case "resume":
      return subject
    case "end":
      return endOf(projectId, userId)
    default:
      return endDate
  }
}

const textOf = ({ action, projectId, status, subject, tries, userId }: Call): string =>
  `${action} of ${userId ?? subject ?? "all"} in ${projectId} (${tries} tries, answered ${status})`

/** Calls whose change has a mark that no other call has. */
const marked = new Set(["grant", "extend", "extendAll", "pause", "resume", "publish"])
/** Calls whose change is known. Another call may undo or end the same. */
const changing = new Set([...marked, "undo", "end"])

/** Members by project and user, each with what it takes to know its date at any time. */
interface Ledger {
  own: number | undefined
  bulks: Array<{ readonly id: string; readonly to: number; readonly isNeverShortening: boolean }>
  /** Its pause: since when, by the clock of the process, and until when. */
  pause: { readonly since: number; readonly until: number | undefined } | undefined
  /** When a pause ended by itself that was not told. */
  resumedAt: number | undefined
}

/** Returns a member's date that stands: the one set last for it alone, then changed by each bulk extension since. */
const standing = ({ bulks, own }: Ledger): number | undefined =>
  own === undefined
    ? undefined
    : bulks.reduce(
        (date, { isNeverShortening, to }) => (isNeverShortening ? Math.max(date, to) : to),
        own,
      )

/** Returns a member's date by the store's clock: later by the time paused if its pause is over. */
const effective = (ledger: Ledger, now: number): number | undefined => {
  const date = standing(ledger)
  const { since, until = Infinity } = ledger.pause ?? { since: 0 }
  return date === undefined || until > now ? date : date + Math.max(0, until - since)
}

/** Replays a project's changes, as somebody would with pencil and paper. Instants are by the store's clock. */
const makeReplay = () => {
  const ledgers = new Map<string, Ledger>()
  const of = (userId: unknown): Ledger => {
    const known = ledgers.get(String(userId))
    if (known !== undefined) return known
    const ledger: Ledger = {
      own: undefined,
      bulks: [],
      pause: undefined,
      resumedAt: undefined,
    }
    ledgers.set(String(userId), ledger)
    return ledger
  }
  /** Ends the pauses that are over. Bulk extensions before that are part of the dates then. */
  const passTo = (now: number): void => {
    for (const ledger of ledgers.values()) {
      const { until = Infinity } = ledger.pause ?? {}
      if (until > now) continue
      ledger.own = effective(ledger, now)
      ledger.bulks = []
      ledger.pause = undefined
      ledger.resumedAt = until
    }
  }
  return {
    passTo,
    dateOf: (userId: unknown, now: number): number | undefined => effective(of(userId), now),
    /** A member's own date, to which no later bulk extension is applied. */
    ownDateOf: (userId: unknown): number | undefined => of(userId).own,
    pauseOf: (userId: unknown) => of(userId).pause,
    /** When a member's pause ended by itself, if that was not told. */
    resumedAt: (userId: unknown): number | undefined => of(userId).resumedAt,
    members: (now: number): ReadonlyMap<string, number> =>
      new Map(
        [...ledgers].flatMap(([userId, ledger]) => {
          const date = effective(ledger, now)
          return date === undefined ? [] : [[userId, date] as const]
        }),
      ),
    apply: ({ at, commit, data, id, type }: Change): void => {
      passTo(commit.storeMillis)
      const to = dateOf(data["new_end_date"])
      switch (type) {
        case "membership.paused": {
          const ledger = of(data["user_id"])
          ledger.pause = { since: at, until: dateOf(data["resumes_at"]) }
          ledger.resumedAt = undefined
          return
        }
        case "membership.resumed": {
          const ledger = of(data["user_id"])
          ledger.resumedAt = undefined
          if (data["request_id"] === null) return
          ledger.own = dateOf(data["end_date"])
          ledger.bulks = []
          ledger.pause = undefined
          return
        }
        case "membership.granted":
        case "membership.extended": {
          const ledger = of(data["user_id"])
          ledger.own = to
          ledger.bulks = []
          return
        }
        case "membership.ended": {
          const ledger = of(data["user_id"])
          ledger.own = undefined
          ledger.bulks = []
          ledger.pause = undefined
          ledger.resumedAt = undefined
          return
        }
        case "memberships.extended": {
          const isNeverShortening = data["mode"] === "never_shorten"
          for (const ledger of ledgers.values()) {
            if (to !== undefined && ledger.own !== undefined)
              ledger.bulks.push({ id, to, isNeverShortening })
          }
          return
        }
        case "memberships.extension_undone": {
          const undone = data["bulk_extension_id"]
          for (const ledger of ledgers.values()) {
            ledger.bulks = ledger.bulks.filter((bulk) => bulk.id !== undone)
          }
        }
      }
    },
  }
}

const projectsOf = (changes: ReadonlyArray<Change>) =>
  Map.groupBy(changes, ({ projectId }) => projectId)

const includes = ({ end, start }: Call, at: number): boolean => at >= start && at <= end

/** Every change that was answered was made, at a moment between its request and its answer. */
const answered: Invariant = {
  name: "what was answered was done",
  find: (run) => {
    const changes = Map.groupBy(changesOf(run), markOf)
    const left = new Set(run.remains.webhooks.map(({ id }) => id))
    const done = run.calls.filter(({ status }) => status === 200)
    return done.flatMap((call) => {
      const { action, subject } = call
      if (action === "createWebhook") {
        const id = String(call.data["id"])
        return left.has(id) || run.deleted.has(id) ? [] : [`${textOf(call)} was not made`]
      }
      if (action === "deleteWebhook") {
        return left.has(subject ?? "") ? [`${textOf(call)} was not made`] : []
      }
      if (action === "setGrace") {
        const isMade = run.graces.some(
          (one) =>
            one.projectId === call.projectId &&
            one.graceMillis === call.graceMillis &&
            includes(call, one.at),
        )
        return isMade ? [] : [`${textOf(call)} was not made`]
      }
      if (!changing.has(action)) return []
      const made = changes.get(markOfCall(call)) ?? []
      const inTime = made.filter(({ commit: { at } }) => includes(call, at))
      return inTime.length > 0 ? [] : [`${textOf(call)} was not made`]
    })
  },
}

/** Makes a counter of how often a call's change was made, if that can be known. */
const makeCount = (run: Run): ((call: Call) => number) => {
  const changes = Map.groupBy(changesOf(run), markOf)
  const urls = Map.groupBy(run.remains.webhooks, ({ url }) => url)
  return (call) => {
    if (call.action === "createWebhook") return (urls.get(call.subject ?? "") ?? []).length
    return marked.has(call.action) ? (changes.get(markOfCall(call)) ?? []).length : 0
  }
}

/** A request with an idempotency key takes effect once, however often it arrives. */
const idempotency: Invariant = {
  name: "an idempotency key takes effect once",
  find: (run) => {
    const count = makeCount(run)
    return run.calls.flatMap((call) => {
      const { hasKey, tries } = call
      const made = count(call)
      // The network may double each request. A request that failed keeps no key, and its double may succeed.
      const most = hasKey ? 1 : 2 * tries
      return made > most ? [`${textOf(call)} was made ${made} times`] : []
    })
  },
}

/** Whether a call is reported as refused. */
const isRefused = ({ code, status }: Call): boolean =>
  status >= 400 && status < 500 && status !== 429 && code !== "IDEMPOTENCY_IN_PROGRESS"

/** A call that is reported as refused has changed nothing. */
const refused: Invariant = {
  name: "what was refused was not done",
  find: (run, { http }) => {
    // A refused request's double comes later, and may succeed then.
    if (http.doubled > 0) return []
    const count = makeCount(run)
    const changes = Map.groupBy(changesOf(run), markOf)
    /** Whether a refused call has ended a membership, because no other can have. */
    const hasEnded = (call: Call): boolean => {
      if (call.action !== "end") return false
      const mark = markOfCall(call)
      const others = run.calls.filter((one) => markOfCall(one) === mark && !isRefused(one))
      const isByOther = (at: number): boolean =>
        others.some((one) => (one.status === 200 ? includes(one, at) : at >= one.start))
      const ends = changes.get(mark) ?? []
      return ends.some(({ commit: { at } }) => includes(call, at) && !isByOther(at))
    }
    return run.calls
      .filter((call) => isRefused(call) && (count(call) > 0 || hasEnded(call)))
      .map((call) => `${textOf(call)} was made`)
  },
}

/** A client asks again no sooner than the server has told it to. */
const waits: Invariant = {
  name: "clients wait as they are asked to",
  find: (run) =>
    run.waits
      .filter(({ asked, taken }) => taken < asked)
      .map(({ asked, taken }) => `a client waited ${taken} ms, and was asked to wait ${asked} ms`),
}

/** The dates in the end are those that the events tell, in their order. */
const dates: Invariant = {
  name: "dates follow from the events",
  find: (run) => {
    const byProject = projectsOf(changesOf(run))
    const found = Map.groupBy(run.remains.members, ({ projectId }) => projectId)
    const names = new Set([...byProject.keys(), ...found.keys()])
    return [...names].flatMap((projectId) => {
      const replay = makeReplay()
      for (const change of byProject.get(projectId) ?? []) replay.apply(change)
      const expected = replay.members(run.remains.storeMillis)
      const actual = new Map((found.get(projectId) ?? []).map((one) => [one.userId, one.endDate]))
      return [...new Set([...expected.keys(), ...actual.keys()])].flatMap((userId) =>
        expected.get(userId) === actual.get(userId)
          ? []
          : [
              `${userId} of ${projectId} ends at ${show(actual.get(userId))} in place of ${show(expected.get(userId))}`,
            ],
      )
    })
  },
}

const show = (date: number | undefined): string =>
  date === undefined ? "no date" : new Date(date).toISOString()

/** Whether a call tells a member's end date, or that there is none. */
export const isReading = ({ action, code, status }: Call): boolean => {
  if (action === "find") return status === 200 || status === 404
  return (action === "extend" || action === "end") && code === "MEMBERSHIP_NOT_FOUND"
}

/** What was read held at a moment between the request and the answer. */
const reads: Invariant = {
  name: "reads see what holds",
  find: (run) => {
    const byProject = projectsOf(changesOf(run))
    return run.calls.filter(isReading).flatMap((call) => {
      const replay = makeReplay()
      const dateAt = (now: number) => replay.dateOf(call.userId, now)
      let held = new Set<number | undefined>([undefined])
      for (const change of byProject.get(call.projectId) ?? []) {
        if (change.commit.at > call.end) break
        if (change.commit.at < call.start) held = new Set()
        // A pause may be over before the change.
        else held.add(dateAt(change.commit.storeMillis))
        replay.apply(change)
        held.add(dateAt(Math.max(change.commit.storeMillis, call.storeStart)))
      }
      held.add(dateAt(call.storeEnd))
      const found = call.status === 200 ? call.endDate : undefined
      return held.has(found) ? [] : [`${textOf(call)} found ${show(found)}`]
    })
  },
}

const refOf = (url: string, eventId: string): string => `${url} ${eventId}`

/** Every event reaches every webhook that is there, signed, or is given up after all attempts. */
const delivered: Invariant = {
  name: "every event is delivered or given up",
  find: (run) => {
    const { arrivals, created, remains } = run
    const accepted = new Set(
      arrivals
        .filter(({ isAccepted }) => isAccepted)
        .map(({ eventId, url }) => refOf(url, eventId)),
    )
    const byRef = new Map(remains.deliveries.map((one) => [`${one.webhookId} ${one.eventId}`, one]))
    const projects = new Map(run.webhooks.map(({ id, projectId }) => [id, projectId]))
    const unsigned = arrivals.filter(({ isVerified }) => !isVerified)
    return [
      ...unsigned.map(({ eventId, url }) => `${eventId} reached ${url} without a valid signature`),
      ...remains.webhooks.flatMap(({ id, url }) =>
        changesOf(run)
          .filter(
            ({ commit, projectId }) =>
              projectId === projects.get(id) && commit.at > (created.get(id) ?? Infinity),
          )
          .flatMap((change) => {
            const delivery = byRef.get(`${id} ${change.id}`)
            const what = `${change.type} ${change.id} to ${url}`
            if (delivery === undefined) return [`${what} has no delivery`]
            const { attempts, state } = delivery
            if (state === "failed") return attempts >= maxAttempts ? [] : [`${what} was given up`]
            if (state !== "delivered") return [`${what} is ${state} in the end`]
            return accepted.has(refOf(url, change.id)) ? [] : [`${what} was not accepted`]
          }),
      ),
    ]
  },
}

/** What a receiver can verify is what is in the feed. */
const trusted: Invariant = {
  name: "receivers trust what happened",
  find: ({ arrivals, remains }) => {
    const events = new Map(remains.events.map((event) => [event.id, event]))
    return arrivals.flatMap(({ eventId, trusted: found, url }) => {
      if (found === undefined) return []
      if (typeof found === "string") return [`${eventId} at ${url} is not trusted: ${found}`]
      const { data, type } = events.get(eventId) ?? {}
      const isSame = found.type === type && JSON.stringify(found.data) === JSON.stringify(data)
      return isSame ? [] : [`${eventId} at ${url} is another event`]
    })
  },
}

// A lease is over by then, and a delivery that was settled nowhere is attempted again.
const leaseMillis = 60_000

/** A receiver that has accepted an event gets it again only if something went wrong. */
const repeated: Invariant = {
  name: "deliveries are repeated with reason only",
  find: ({ arrivals, troubles }) =>
    [...Map.groupBy(arrivals, ({ eventId, url }) => refOf(url, eventId))].flatMap(([ref, all]) => {
      const first = all.findIndex(({ isAccepted }) => isAccepted)
      const again = all.slice(first + 1)
      const last = again.at(-1)
      if (first === -1 || last === undefined) return []
      const from = (all[first]?.at ?? 0) - leaseMillis
      const reasons = troubles.filter((at) => at >= from && at <= last.at).length
      const unheard = all.filter(({ isAccepted, isHeard }) => !(isAccepted && isHeard)).length
      return again.length > reasons + unheard
        ? [`${ref} arrived ${again.length} times after it was accepted`]
        : []
    }),
}

/** A feed reader gets all its project's events, each once, in one order. */
const feed: Invariant = {
  name: "the feed has every event once",
  find: ({ readers, remains }) =>
    readers.flatMap(({ got, projectId, way }) => {
      const all = remains.events.filter((event) => event.projectId === projectId)
      const wrong = all.findIndex(({ id }, place) => got[place] !== id)
      if (wrong !== -1) {
        return [
          `the reader of ${projectId} by ${way} got ${got[wrong] ?? "nothing"} in place of ${all[wrong]?.id}`,
        ]
      }
      return got.length > all.length
        ? [`the reader of ${projectId} by ${way} got more than there is`]
        : []
    }),
}

/** The announcements of a date, in their order. */
const announcing = ["membership.expiring", "membership.overdue", "membership.expired"]

/** What is wrong with the grace of an announcement. */
const graceProblem = (
  { commit, data, graceMillis, type }: Change,
  date: number,
): string | undefined => {
  if (type === "membership.expired") {
    return commit.storeMillis < date + graceMillis ? "comes before the grace is over" : undefined
  }
  if (type !== "membership.overdue") return undefined
  if (graceMillis === 0) return "has no grace"
  return dateOf(data["grace_until"]) === date + graceMillis ? undefined : "has another grace"
}

/** The change that gave a member its date. */
interface Dated {
  readonly date: number
  readonly at: number
  readonly isOfMany: boolean
}

const manyTypes = new Set(["memberships.extended", "memberships.extension_undone"])

/** An end is announced once for a date, not before its time, and only if it holds. It expires when the grace is over. */
const announcements: Invariant = {
  name: "ends are announced once, for dates that hold",
  find: (run, { isCalm }) =>
    [...projectsOf(changesOf(run))].flatMap(([projectId, changes]) => {
      const replay = makeReplay()
      /** Each member's last announcement: an end that an undo brings back is not announced again. */
      const announced = new Map<
        string,
        { readonly type: string; readonly date: number | undefined }
      >()
      /** What gave each member its date. */
      const dated = new Map<string, Dated>()
      const noteResumed = (now: number): void => {
        replay.passTo(now)
        for (const [userId, date] of replay.members(now)) {
          const at = replay.resumedAt(userId)
          if (at !== undefined && dated.get(userId)?.date !== date)
            dated.set(userId, { date, at, isOfMany: false })
        }
      }
      /** The members whose last end was told: not again if a bulk extension sets another date in the past. */
      const told = new Set<string>()
      /** The latest time of a change by any clock: those far ahead hold nothing back. */
      let latest = -Infinity
      const wrong: Array<string> = []
      for (const change of changes) {
        const { commit, data, graceMillis, type } = change
        noteResumed(commit.storeMillis)
        replay.apply(change)
        // By the store's clock, a pause may be over when it begins.
        if (type === "membership.paused") noteResumed(commit.storeMillis)
        latest = Math.max(latest, change.at, commit.storeMillis)
        if (type === "membership.granted" || type === "membership.extended") {
          told.delete(String(data["user_id"]))
        }
        for (const [userId, date] of replay.members(commit.storeMillis)) {
          if (dated.get(userId)?.date !== date)
            dated.set(userId, { date, at: commit.storeMillis, isOfMany: manyTypes.has(type) })
          if (date > commit.storeMillis) told.delete(userId)
          else if (announced.get(userId)?.date === date) told.add(userId)
        }
        if (type === "membership.ended") announced.delete(String(data["user_id"]))
        const order = announcing.indexOf(type)
        if (order === -1) continue
        const userId = String(data["user_id"])
        const date = dateOf(data["end_date"])
        const what = `${type} of ${userId} in ${projectId} for ${show(date)}`
        const current = replay.dateOf(userId, commit.storeMillis)
        if (current !== date) wrong.push(`${what}, which ends at ${show(current)}`)
        const lead = type === "membership.expiring" ? 1000 * reminderSeconds : 0
        if (commit.storeMillis < (date ?? 0) - lead) wrong.push(`${what} is too early`)
        const { at: datedAt = Infinity, isOfMany = false } = dated.get(userId) ?? {}
        const setAt = datedAt - commitMillis
        const isHeld = isOfMany && commit.storeMillis < setAt + holdMillis
        if (isHeld && latest <= commit.storeMillis + holdMillis) wrong.push(`${what} was not held`)
        if (lead > 0 && (date ?? 0) - lead <= setAt)
          wrong.push(`${what} was late when that was set`)
        const problem = graceProblem(change, date ?? 0)
        if (problem !== undefined) wrong.push(`${what} ${problem}`)
        const earlier = announced.get(userId)
        const isSame = earlier?.date === date
        if (isSame && announcing.indexOf(earlier?.type ?? "") >= order) wrong.push(`${what} again`)
        // Something that is due is found in this time if nothing fails.
        const sweepMillis = run.longestPause + commitMillis
        const isLong =
          graceMillis > sweepMillis &&
          graceSince(run, change) < (date ?? 0) - sweepMillis - holdMillis
        const wasSetBefore = setAt + (isOfMany ? holdMillis : 0) < (date ?? 0) - sweepMillis
        const isToldOnce = type === "membership.expired" && !(isSame && earlier?.type === overdue)
        if (isCalm && isLong && wasSetBefore && isToldOnce) wrong.push(`${what} was not overdue`)
        announced.set(userId, { type, date })
        if (type === "membership.expired") told.add(userId)
      }
      const { storeMillis } = run.remains
      replay.passTo(storeMillis)
      const since = Math.max(...run.watchedSince)
      for (const [userId, date] of replay.members(storeMillis)) {
        // Nothing is announced in a pause.
        if (replay.pauseOf(userId) !== undefined) continue
        const last = announced.get(userId)
        // Also when the clock was ahead, and has been set back.
        const isTold =
          told.has(userId) || (last?.type === "membership.expired" && last.date === date)
        if (
          date > since &&
          date < storeMillis - foundMillis - 2 * holdMillis - longestGrace(run) &&
          !isTold
        ) {
          wrong.push(`the end of ${userId} in ${projectId} at ${show(date)} is not announced`)
        }
      }
      return wrong
    }),
}

/** What is wrong with a change, before it is applied, as far as pauses go. */
const pauseProblem = (
  replay: ReturnType<typeof makeReplay>,
  { at, commit, data, type }: Change,
): string | undefined => {
  const userId = data["user_id"]
  const date = replay.dateOf(userId, commit.storeMillis)
  const pause = replay.pauseOf(userId)
  const told = dateOf(data["end_date"])
  if (announcing.includes(type)) return pause && "comes in a pause"
  if (type === "membership.paused") {
    if (pause !== undefined) return "begins in a pause"
    return told === date ? undefined : `tells ${show(told)} in place of ${show(date)}`
  }
  if (type !== "membership.resumed") return undefined
  if (data["request_id"] !== null) {
    if (pause === undefined || date === undefined) return "ends no pause"
    const { since, until = Infinity } = pause
    const later = date + Math.max(0, Math.min(at, until) - since)
    return told === later ? undefined : `tells ${show(told)} in place of ${show(later)}`
  }
  const resumesAt = dateOf(data["resumes_at"])
  if (replay.resumedAt(userId) !== resumesAt) return "ends no pause by itself, or again"
  // A bulk extension that came before the sweep has its own event.
  const own = replay.ownDateOf(userId)
  return told === own ? undefined : `tells ${show(told)} in place of ${show(own)}`
}

/** In a pause, nothing is announced. Afterwards, the end is later by the time paused. That a pause ended by itself is told once. */
const pauses: Invariant = {
  name: "pauses let time stand, and their ends are told once",
  find: (run) =>
    [...projectsOf(changesOf(run))].flatMap(([projectId, changes]) => {
      const replay = makeReplay()
      const wrong: Array<string> = []
      for (const change of changes) {
        replay.passTo(change.commit.storeMillis)
        const problem = pauseProblem(replay, change)
        const userId = change.data["user_id"]
        if (problem !== undefined)
          wrong.push(`${change.type} of ${userId} in ${projectId} ${problem}`)
        replay.apply(change)
      }
      const { storeMillis } = run.remains
      replay.passTo(storeMillis)
      for (const userId of replay.members(storeMillis).keys()) {
        const at = replay.resumedAt(userId)
        if (at !== undefined && at < storeMillis - foundMillis)
          wrong.push(`that ${userId} in ${projectId} resumed at ${show(at)} is not told`)
      }
      return wrong
    }),
}

// A statement is committed in this time.
const commitMillis = 1000

// Something that is due is found in this time.
const foundMillis = 310_000

const overdue = "membership.overdue"

/** Since when a project has had the grace that it had at a change. */
const graceSince = ({ graces }: Run, { commit, projectId }: Change): number =>
  graces.findLast((one) => one.projectId === projectId && one.at <= commit.at)?.at ?? -Infinity

const longestGrace = ({ graces }: Run): number =>
  Math.max(0, ...graces.map(({ graceMillis }) => graceMillis))

// The limiter's clock counts whole milliseconds.
const tickMillis = 1

/** No more requests pass than the limits allow. */
const limits: Invariant = {
  name: "limits hold",
  find: ({ admissions, takes }, { drift, limit }) => {
    if (limit === undefined) return []
    const perMilli = (limit / 60_000) * (1 + drift)
    const isOver = takes.some((from, first) =>
      takes.slice(first).some((to, more) => more + 1 > limit + perMilli * (to - from + tickMillis)),
    )
    return [
      ...(isOver ? [`more than ${limit} requests were let pass in a minute`] : []),
      ...(admissions.length > takes.length
        ? [`${admissions.length} requests were answered, and ${takes.length} let pass`]
        : []),
    ]
  },
}

// A claim that the stores have made before is on its way for so long, or an attempt ends.
const stopMillis = 2000

/** Nothing is signed with a deleted webhook's secret. */
const secrets: Invariant = {
  name: "a deleted webhook gets nothing",
  find: ({ arrivals, deleted, webhooks }) =>
    webhooks.flatMap(({ id, url }) => {
      const at = deleted.get(id) ?? Infinity
      return arrivals
        .filter((arrival) => arrival.url === url && arrival.sentAt > at + stopMillis)
        .map(
          ({ eventId, sentAt }) => `${eventId} was sent to ${url} ${sentAt - at} ms after its end`,
        )
    }),
}

/** Those that judge a member's end dates by what happened to this member alone. */
export const ofEndDates: ReadonlyArray<Invariant> = [answered, idempotency, refused, dates, reads]

export const invariants: ReadonlyArray<Invariant> = [
  answered,
  idempotency,
  refused,
  waits,
  dates,
  reads,
  delivered,
  trusted,
  repeated,
  feed,
  announcements,
  pauses,
  limits,
  secrets,
]
