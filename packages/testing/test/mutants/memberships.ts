/** Stores of memberships that are wrong. */

import {
  type AuditRow,
  EndDate,
  EndDateConflict,
  type Ending,
  EventId,
  type Import,
  MembershipNotFound,
  MembershipStore,
  Outbox,
  ProjectId,
  type UserId,
  completeEvent,
  endDateConflict,
  hostOrigin,
  isEndsLater,
  isReplayedResponse,
  laterOf,
} from "@tenure/core/store"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { sequenceOf } from "../../src/support/fixtures.ts"
import { mutantsOf } from "./Mutant.ts"

type Store = MembershipStore["Service"]

/** Changes the rows of the audit trail. */
const auditing =
  (change: (row: AuditRow) => ReadonlyArray<AuditRow>) =>
  ({ history }: Store): Partial<Store> => ({
    history: (projectId, page) =>
      Effect.map(history(projectId, page), (rows) => rows.flatMap(change)),
  })

const all = { userId: undefined, limit: 1_000_000 } as const

const endOfSecond = (endDate: EndDate): EndDate => EndDate(Math.floor(endDate / 1000) * 1000 + 999)

/** What an extension must say to leave the membership as it is. */
const unchanged = ({ currentEndDate }: EndDateConflict) => ({
  endDate: currentEndDate,
  expectedEndDate: currentEndDate,
})

/** Returns the event of a change with another sequence. */
const renumber = <Result extends object>(result: Result, { event }: Ending, sequence: number) =>
  isReplayedResponse(result) || isEndsLater(result) ? result : completeEvent(event, sequence)

/** Makes each membership of an import an import of its own. */
const eachOf = (imported: Import): ReadonlyArray<Import> =>
  imported.memberships.map((one) => ({ ...imported, memberships: [one] }))

/** Stores of memberships that are wrong. */
export const memberships = mutantsOf(MembershipStore, {
  "audits a grant without the date before": auditing((row) => [
    row.action === "granted" ? { ...row, from: undefined } : row,
  ]),

  "audits an ending without the date before": auditing((row) => [
    row.action === "ended" ? { ...row, from: undefined } : row,
  ]),

  "audits only extensions with their origin": auditing((row) => [
    row.action === "extended" ? row : { ...row, origin: hostOrigin },
  ]),

  "audits only extensions with their reason": auditing((row) => [
    row.action === "extended" ? row : { ...row, reason: undefined },
  ]),

  "audits an extension without its reason": auditing((row) => [
    row.action === "extended" ? { ...row, reason: undefined } : row,
  ]),

  "does not audit endings": auditing((row) => (row.action === "ended" ? [] : [row])),

  "repeats bulk extensions in the history of each user": ({ history }) => ({
    history: (projectId, { limit, userId }) =>
      Effect.map(history(projectId, all), (rows) =>
        rows
          .filter((row) => userId === undefined || [userId, undefined].includes(row.userId))
          .slice(0, limit),
      ),
  }),

  "limits the history before it selects the user": ({ history }) => ({
    history: (projectId, { limit, userId }) =>
      Effect.map(history(projectId, { userId: undefined, limit }), (rows) =>
        rows.filter((row) => userId === undefined || userId === row.userId),
      ),
  }),

  "empties the audit trail when its project is created again": ({ createProject, history }) => {
    let hidden = 0
    return {
      createProject: Effect.fnUntraced(function* (projectId, occasion) {
        yield* createProject(projectId, occasion)
        hidden = (yield* Effect.orDie(history(projectId, all))).length
      }),
      history: (projectId, { limit, userId }) =>
        Effect.map(history(projectId, { userId, limit: limit + hidden }), (rows) =>
          rows.slice(0, -hidden || undefined),
        ),
    }
  },

  "ignores the idempotency keys of projects": ({ createProject }) => ({
    createProject: (projectId, { once: _, ...occasion }) => createProject(projectId, occasion),
  }),

  "ignores idempotency keys": ({ extend }) => ({
    extend: ({ once: _, ...extension }) => extend(extension),
  }),

  "takes any request for the one of its idempotency key": ({ extend, recall }) => ({
    recall: (once, projectId) => recall({ ...once, fingerprint: "a request" }, projectId),
    extend: (extension) =>
      extend(
        extension.once === undefined
          ? extension
          : { ...extension, once: { ...extension.once, fingerprint: "a request" } },
      ),
  }),

  "shares idempotency keys among owners": ({ extend }) => ({
    extend: (extension) =>
      extend(
        extension.once === undefined
          ? extension
          : { ...extension, once: { ...extension.once, owner: "all" } },
      ),
  }),

  "keeps the idempotency keys of each project apart": ({ grant, recall }) => ({
    recall: (once, projectId) => recall({ ...once, key: `${once.key} ${projectId}` }, projectId),
    grant: ({ once, ...granted }) =>
      grant(
        once === undefined
          ? granted
          : { ...granted, once: { ...once, key: `${once.key} ${granted.projectId}` } },
      ),
  }),

  "looks for idempotency keys before its turn": ({ grant, recall }) => ({
    grant: Effect.fnUntraced(function* ({ once, ...granted }) {
      const known = once && (yield* recall(once, granted.projectId))
      yield* Effect.yieldNow
      return known ?? (yield* grant(granted))
    }),
  }),

  "counts anew for a bulk extension that is repeated": ({ extendAll, list }) => ({
    extendAll: Effect.fnUntraced(function* (extension) {
      const result = yield* extendAll(extension)
      if (!isReplayedResponse(result)) return result
      const members = yield* list(extension.projectId, {
        after: undefined,
        limit: 1_000_000,
      })
      return { ...result, answer: String(members.length) }
    }),
  }),

  "reads the date for the audit trail before its turn": ({ extend, find, history }) => {
    const stale = new Map<AuditRow, EndDate>()
    return {
      extend: Effect.fnUntraced(function* (extension) {
        const { endDate } = yield* find(extension.projectId, extension.userId)
        yield* Effect.yieldNow
        const extended = yield* extend(extension)
        const [row] = yield* Effect.orDie(history(extension.projectId, all))
        if (row !== undefined) stale.set(row, endDate)
        return extended
      }),
      history: (projectId, page) =>
        Effect.map(history(projectId, page), (rows) =>
          rows.map((row) => ({ ...row, from: stale.get(row) ?? row.from })),
        ),
    }
  },

  "ignores an extension that changes nothing": ({ extend, find }) => ({
    extend: Effect.fnUntraced(function* (extension) {
      const { endDate } = yield* find(extension.projectId, extension.userId)
      if (endDate !== extension.endDate) return yield* extend(extension)
      return completeEvent(extension.event, 0)
    }),
  }),

  "ignores the end date that an extension expects": ({ extend }) => ({
    extend: ({ expectedEndDate: _, ...extension }) => extend(extension),
  }),

  "compares the end date that an extension expects before its turn": ({ extend, find }) => ({
    extend: Effect.fnUntraced(function* ({ expectedEndDate, ...extension }) {
      const conflict = endDateConflict(
        yield* find(extension.projectId, extension.userId),
        expectedEndDate,
      )
      if (conflict !== undefined) return yield* conflict
      yield* Effect.yieldNow
      return yield* extend(extension)
    }),
  }),

  "compares the end date that an extension expects to the second": ({ extend, find }) => ({
    extend: Effect.fnUntraced(function* (extension) {
      const { endDate } = yield* find(extension.projectId, extension.userId)
      const { expectedEndDate = endDate } = extension
      const isNear = Math.abs(expectedEndDate - endDate) < 1000
      return yield* extend({ ...extension, expectedEndDate: isNear ? endDate : expectedEndDate })
    }),
  }),

  "compares the end date that an extension expects to the one before a bulk extension": ({
    extend,
    extendAll,
    find,
    list,
  }) => {
    const before = new Map<UserId, EndDate>()
    return {
      extendAll: Effect.fnUntraced(function* (extension) {
        const page = { after: undefined, limit: 1_000_000 }
        for (const { endDate, userId } of yield* list(extension.projectId, page)) {
          if (!before.has(userId)) before.set(userId, endDate)
        }
        return yield* extendAll(extension)
      }),
      extend: Effect.fnUntraced(function* ({ expectedEndDate, ...extension }) {
        const found = yield* find(extension.projectId, extension.userId)
        const own = { ...found, endDate: before.get(extension.userId) ?? found.endDate }
        const conflict = endDateConflict(own, expectedEndDate)
        if (conflict !== undefined) return yield* conflict
        return yield* extend(extension)
      }),
    }
  },

  "says that a membership with another end date is missing": ({ extend }) => ({
    extend: (extension) =>
      Effect.catchTag(extend(extension), "EndDateConflict", (conflict) =>
        Effect.fail(new MembershipNotFound(conflict)),
      ),
  }),

  "tells the wanted date as the current one": ({ extend }) => ({
    extend: (extension) =>
      Effect.mapError(extend(extension), (error) =>
        error._tag === "EndDateConflict"
          ? new EndDateConflict({ ...extension, currentEndDate: extension.endDate })
          : error,
      ),
  }),

  "audits an extension that fails because of the date": ({ extend }) => ({
    extend: (extension) =>
      Effect.tapError(extend(extension), (error) =>
        error._tag === "EndDateConflict"
          ? Effect.ignore(extend({ ...extension, ...unchanged(error) }))
          : Effect.void,
      ),
  }),

  "publishes the event of an extension that fails because of the date": ({ extend }, context) => ({
    extend: (extension) =>
      Effect.tapError(extend(extension), () =>
        Effect.ignore(Context.get(context, Outbox).publish(completeEvent(extension.event, 0))),
      ),
  }),

  "ignores the mode of an extension": ({ extend }) => ({
    extend: ({ mode: _, ...extension }) => extend(extension),
  }),

  "compares the date of an extension that never shortens before its turn": ({ extend, find }) => ({
    extend: Effect.fnUntraced(function* ({ mode, ...extension }) {
      const { endDate } = yield* find(extension.projectId, extension.userId)
      yield* Effect.yieldNow
      const later = laterOf(endDate, { ...extension, mode })
      return yield* extend({ ...extension, mode: later && mode })
    }),
  }),

  "says that an extension that leaves a later date has set its own": ({ extend }) => ({
    extend: (extension) =>
      Effect.map(extend(extension), (result) =>
        isEndsLater(result) ? completeEvent(extension.event, 0) : result,
      ),
  }),

  "audits an extension that leaves a later date": ({ extend }) => ({
    extend: (extension) =>
      Effect.tap(extend(extension), (result) =>
        isEndsLater(result)
          ? Effect.ignore(extend({ ...extension, once: undefined, endDate: result.endDate }))
          : Effect.void,
      ),
  }),

  "publishes the event of an extension that leaves a later date": ({ extend }, context) => ({
    extend: (extension) =>
      Effect.tap(extend(extension), (result) =>
        isEndsLater(result)
          ? Effect.ignore(Context.get(context, Outbox).publish(completeEvent(extension.event, 0)))
          : Effect.void,
      ),
  }),

  "keeps no idempotency key of an extension that leaves a later date": ({ extend, find }) => ({
    extend: Effect.fnUntraced(function* (extension) {
      const { endDate } = yield* find(extension.projectId, extension.userId)
      const isLeft = laterOf(endDate, extension) !== undefined
      return yield* extend(isLeft ? { ...extension, once: undefined } : extension)
    }),
  }),

  "counts those at the date as later": ({ count }) => ({
    count: (projectId, endDate) => count(projectId, EndDate(endDate - 1)),
  }),

  "counts to the second": ({ count }) => ({
    count: (projectId, endDate) => count(projectId, endOfSecond(endDate)),
  }),

  "counts by the dates before a bulk extension": ({ count, extendAll }) => {
    let before: ReturnType<typeof count> | undefined
    return {
      extendAll: Effect.fnUntraced(function* (extension) {
        before = Effect.succeed(yield* count(extension.projectId, extension.endDate))
        return yield* extendAll(extension)
      }),
      count: (projectId, endDate) => before ?? count(projectId, endDate),
    }
  },

  "counts nobody in a project that does not exist": ({ count }) => ({
    count: (projectId, endDate) =>
      Effect.catchTag(count(projectId, endDate), "ProjectNotFound", () =>
        Effect.succeed({ total: 0, later: 0 }),
      ),
  }),

  "ignores a bulk extension of nobody": ({ extendAll, list }) => ({
    extendAll: Effect.fnUntraced(function* (extension) {
      const members = yield* list(extension.projectId, { after: undefined, limit: 1 })
      return members.length === 0
        ? { total: 0, event: completeEvent(extension.event, 0) }
        : yield* extendAll(extension)
    }),
  }),

  "publishes an event for each member of a bulk extension": ({ extendAll }, context) => ({
    extendAll: Effect.fnUntraced(function* (extension) {
      const extended = yield* extendAll(extension)
      if (isReplayedResponse(extended)) return extended
      const { publish } = Context.get(context, Outbox)
      for (let member = 1; member < extended.total; member++) yield* publish(extended.event)
      return extended
    }),
  }),

  "publishes the event of an ending that fails": ({ end }, context) => ({
    end: (ending) =>
      Effect.tapError(end(ending), () =>
        Effect.ignore(Context.get(context, Outbox).publish(completeEvent(ending.event, 0))),
      ),
  }),

  "does not count memberships that a bulk extension leaves as they are": ({ extendAll, list }) => ({
    extendAll: Effect.fnUntraced(function* (extension) {
      const page = { after: undefined, limit: 1_000_000 }
      const members = yield* Effect.orElseSucceed(list(extension.projectId, page), () => [])
      const extended = yield* extendAll(extension)
      const left = members.filter(({ endDate }) => endDate > extension.endDate)
      return extension.mode === "set" || isReplayedResponse(extended)
        ? extended
        : { ...extended, total: extended.total - left.length }
    }),
  }),

  "shortens memberships that end later": ({ extendAll }) => ({
    extendAll: (extension) => extendAll({ ...extension, mode: "set" }),
  }),

  "never shortens a membership": ({ extendAll }) => ({
    extendAll: (extension) => extendAll({ ...extension, mode: "neverShorten" }),
  }),

  "knows only the last bulk extension that never shortens": ({ extendAll, find, ...right }) => {
    const dates = new Map<UserId, EndDate>()
    let floor: EndDate | undefined
    return {
      extendAll: (extension) => {
        floor = extension.mode === "set" ? undefined : extension.endDate
        return extendAll(extension)
      },
      extend: (extension) => {
        dates.set(extension.userId, extension.endDate)
        return right.extend(extension)
      },
      find: (projectId, userId) =>
        Effect.map(find(projectId, userId), (membership) => {
          const own = dates.get(userId)
          return own === undefined || floor === undefined
            ? membership
            : { ...membership, endDate: EndDate(Math.max(own, floor)) }
        }),
    }
  },

  "imports memberships without audit rows": auditing((row) =>
    row.action === "imported" ? [] : [row],
  ),

  "audits an import without the dates before": auditing((row) => [
    row.action === "imported" ? { ...row, from: undefined } : row,
  ]),

  "audits an import without its origin": auditing((row) => [
    row.action === "imported" ? { ...row, origin: hostOrigin } : row,
  ]),

  "audits an import in the order of user ids": ({ import: importAll }) => ({
    import: (imported) =>
      importAll({
        ...imported,
        memberships: imported.memberships.toSorted((one, other) =>
          one.userId < other.userId ? -1 : 1,
        ),
      }),
  }),

  "audits an import as one row for all": ({ history }) => ({
    history: (projectId, page) =>
      Effect.map(history(projectId, page), (rows) =>
        rows.filter((row, index) => row.action !== "imported" || rows[index - 1]?.at !== row.at),
      ),
  }),

  "leaves existing memberships as they are in an import": (right) => ({
    import: Effect.fnUntraced(function* (imported) {
      const page = { after: undefined, limit: 1_000_000 }
      const members = yield* right.list(imported.projectId, page)
      const users = new Set(members.map(({ userId }) => userId))
      const joining = imported.memberships.filter(({ userId }) => !users.has(userId))
      return yield* right.import({ ...imported, memberships: joining })
    }),
  }),

  "publishes an event for each membership of an import": (right, context) => ({
    import: Effect.fnUntraced(function* (imported) {
      const event = yield* right.import(imported)
      if (isReplayedResponse(event)) return event
      const { publish } = Context.get(context, Outbox)
      for (let more = 1; more < imported.memberships.length; more++) {
        yield* publish({ ...event, id: EventId(crypto.randomUUID()) })
      }
      return event
    }),
  }),

  "ignores an import of nobody": (right) => ({
    import: (imported) =>
      imported.memberships.length === 0
        ? Effect.succeed(completeEvent(imported.event, 0))
        : right.import(imported),
  }),

  "imports the first hundred memberships": (right) => ({
    import: (imported) =>
      right.import({ ...imported, memberships: imported.memberships.slice(0, 100) }),
  }),

  "does not count imported memberships": (right) => {
    let imported = 0
    return {
      import: (change) => {
        imported += change.memberships.length
        return right.import(change)
      },
      extendAll: (change) =>
        Effect.map(right.extendAll(change), (extended) =>
          isReplayedResponse(extended)
            ? extended
            : { ...extended, total: extended.total - imported },
        ),
    }
  },

  "imports memberships one after another": (right) => ({
    import: Effect.fnUntraced(function* (imported) {
      for (const one of eachOf(imported)) {
        yield* Effect.yieldNow
        yield* right.import(one)
      }
      return completeEvent(imported.event, 0)
    }),
  }),

  "keeps a part of an import whose event cannot be stored": (right) => {
    const published = new Set<EventId>()
    return {
      grant: (change) => {
        published.add(change.event.id)
        return right.grant(change)
      },
      import: Effect.fnUntraced(function* (imported) {
        const isRefused = published.has(imported.event.id)
        const part = imported.memberships.slice(0, isRefused ? 1 : undefined)
        const event = yield* right.import({ ...imported, memberships: part })
        return isRefused ? yield* Effect.die("the id of the event is not unique") : event
      }),
    }
  },

  "ends the user's memberships in all projects": ({ createProject, end }) => {
    const projects = new Set<ProjectId>()
    return {
      createProject: (projectId, occasion) => {
        projects.add(projectId)
        return createProject(projectId, occasion)
      },
      end: Effect.fnUntraced(function* (ending) {
        const ended = yield* end(ending)
        yield* Effect.forEach(projects, (projectId) => Effect.ignore(end({ ...ending, projectId })))
        return ended
      }),
    }
  },

  "finds the memberships of other projects": ({ createProject, find }) => {
    const projects = new Set<ProjectId>()
    return {
      createProject: (projectId, occasion) => {
        projects.add(projectId)
        return createProject(projectId, occasion)
      },
      find: (projectId, userId) =>
        Effect.firstSuccessOf([projectId, ...projects].map((one) => find(one, userId))),
    }
  },

  "compares the names of projects without regard to case": (right) => {
    const lower = (projectId: ProjectId) => ProjectId(projectId.toLowerCase())
    const lowered = <Change extends { readonly projectId: ProjectId }>(change: Change): Change => ({
      ...change,
      projectId: lower(change.projectId),
    })
    return {
      createProject: (projectId, occasion) => right.createProject(lower(projectId), occasion),
      grant: (change) => right.grant(lowered(change)),
      find: (projectId, userId) =>
        Effect.map(right.find(lower(projectId), userId), (found) => ({ ...found, projectId })),
    }
  },

  "creates a membership when it extends one that does not exist": ({ extend, grant }) => ({
    extend: (extension) =>
      Effect.catchTag(extend(extension), "MembershipNotFound", () =>
        Effect.mapError(grant(extension), () => new MembershipNotFound(extension)),
      ),
  }),

  "applies a bulk extension to those who join later": ({ extend, extendAll, grant }) => {
    let bulk: EndDate | undefined
    return {
      extendAll: (extension) => {
        bulk = extension.endDate
        return extendAll(extension)
      },
      grant: Effect.fnUntraced(function* (change) {
        const granted = yield* grant(change)
        if (bulk !== undefined) yield* Effect.orDie(extend({ ...change, endDate: bulk }))
        return granted
      }),
    }
  },

  "lists all members whoever is asked for": ({ list }) => ({
    list: (projectId, { userIds: _, ...page }) => list(projectId, page),
  }),

  "takes the limit before it leaves out users": ({ list }) => ({
    list: (projectId, { userIds, ...page }) =>
      Effect.map(list(projectId, page), (members) =>
        members.filter(({ userId }) => userIds?.includes(userId) !== false),
      ),
  }),

  "lists a user who is asked for twice twice": ({ list }) => ({
    list: (projectId, page) =>
      Effect.map(list(projectId, page), (members) =>
        members.flatMap(
          (one) => page.userIds?.filter((id) => id === one.userId).map(() => one) ?? one,
        ),
      ),
  }),

  "lists the date before a bulk extension": ({ extendAll, list }) => {
    let before: ReadonlyMap<UserId, EndDate> = new Map()
    return {
      extendAll: Effect.fnUntraced(function* (extension) {
        const page = { after: undefined, limit: 1_000_000 }
        const members = yield* list(extension.projectId, page)
        before = new Map(members.map(({ endDate, userId }) => [userId, endDate]))
        return yield* extendAll(extension)
      }),
      list: (projectId, page) =>
        Effect.map(list(projectId, page), (members) =>
          members.map((one) => ({ ...one, endDate: before.get(one.userId) ?? one.endDate })),
        ),
    }
  },

  "gives changes the sequence that they had before their turn": ({ extend }) => {
    let sequence = 1_000_000
    return {
      extend: Effect.fnUntraced(function* (extension) {
        const before = ++sequence
        yield* Effect.yieldNow
        if (before % 2 === 0) yield* Effect.yieldNow
        return renumber(yield* extend(extension), extension, before)
      }),
    }
  },

  "counts the changes of those who return anew": ({ end, extend, grant }) => {
    const counts = new Map<UserId, number>()
    const next = (userId: UserId): number => {
      const count = 1 + (counts.get(userId) ?? 0)
      counts.set(userId, count)
      return count
    }
    return {
      grant: (change) =>
        Effect.map(grant(change), (result) => renumber(result, change, next(change.userId))),
      extend: (change) =>
        Effect.map(extend(change), (result) => renumber(result, change, next(change.userId))),
      end: (change) =>
        Effect.map(end(change), (result) => {
          const sequence = next(change.userId)
          counts.delete(change.userId)
          return renumber(result, change, sequence)
        }),
    }
  },

  "counts bulk extensions by themselves": ({ extendAll }) => {
    let count = 0
    return {
      extendAll: (extension) =>
        Effect.map(extendAll(extension), (extended) =>
          isReplayedResponse(extended)
            ? extended
            : { ...extended, event: completeEvent(extension.event, ++count) },
        ),
    }
  },

  "gives an import the sequence of its first membership": (right) => ({
    import: (imported) =>
      Effect.map(right.import(imported), (event) => {
        if (isReplayedResponse(event)) return event
        const first = sequenceOf(event) - imported.memberships.length + 1
        return completeEvent(imported.event, first)
      }),
  }),

  "numbers an event anew when it returns it": ({ extend }) => {
    let count = 1_000_000_000
    return {
      extend: (extension) =>
        Effect.map(extend(extension), (event) => renumber(event, extension, ++count)),
    }
  },

  "sets the date and stores the rest in a second step": ({ extend, find }) => {
    const early = new Map<UserId, EndDate>()
    return {
      extend: Effect.fnUntraced(function* (extension) {
        yield* find(extension.projectId, extension.userId)
        early.set(extension.userId, extension.endDate)
        yield* Effect.yieldNow
        const extended = yield* extend(extension)
        early.delete(extension.userId)
        return extended
      }),
      find: (projectId, userId) =>
        Effect.map(find(projectId, userId), (found) => ({
          ...found,
          endDate: early.get(userId) ?? found.endDate,
        })),
    }
  },

  "keeps the date of a change whose event cannot be stored": ({ extend, find, grant }) => {
    const published = new Set<EventId>()
    const set = new Map<UserId, EndDate>()
    return {
      grant: (change) => {
        published.add(change.event.id)
        return grant(change)
      },
      extend: Effect.fnUntraced(function* (extension) {
        const { event, endDate, userId } = extension
        if (published.has(event.id)) {
          set.set(userId, endDate)
          return yield* Effect.die("the id of the event is not unique")
        }
        published.add(event.id)
        return yield* extend(extension)
      }),
      find: (projectId, userId) =>
        Effect.map(find(projectId, userId), (found) => ({
          ...found,
          endDate: set.get(userId) ?? found.endDate,
        })),
    }
  },
})

/** Outboxes that do not get the events of some changes. */
export const eventsOfMemberships = mutantsOf(Outbox, {
  "publishes no event for an ending": ({ claim }) => ({
    claim: (options) =>
      Effect.map(claim(options), (claimed) => ({
        ...claimed,
        claims: claimed.claims.filter(({ event }) => JSON.parse(event.body).type !== "ended"),
      })),
  }),
})
