/** Membership stores that break a promise. */

import { currentMoment, isEndsLater, isReplayedResponse, stateAt } from "@tenure/core/internal"
import {
  type Announcement,
  ApiKeyStore,
  type AuditPage,
  type AuditRow,
  type BulkChange,
  type ChangedMember,
  type ChangedMembers,
  type DecideAnnouncement,
  type DueMembership,
  EndDate,
  type EndingPage,
  type ExpiryStore,
  type MemberChange,
  type MemberChanges,
  type Membership,
  MembershipStore,
  Millis,
  type Pause,
  type SelectedChangesPage,
  type UserId,
  WebhookStore,
  alreadyMember,
  completeEvent,
  decideAuditPage,
  endDateConflict,
  hostOrigin,
  instantForm,
  isAlreadyMember,
  isOver,
  laterOf,
  replayedResponse,
  searchingHistory,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { change as changeIn, longAgo, p2 } from "../../src/support/fixtures.ts"
import { wrongStores } from "./wrong-store.ts"

type Store = MembershipStore["Service"]
type Search = Parameters<Store["searchHistory"]>[1]
type EndingQuery = Parameters<Store["listEnding"]>[1]

/** Returns a bulk extension to the same date in another mode. */
const inMode = (bulk: BulkChange, mode: "set" | "neverShorten"): BulkChange =>
  bulk.mode === "extendBy" ? bulk : { ...bulk, mode }

/** Changes audit rows. */
const auditing =
  (change: (row: AuditRow) => ReadonlyArray<AuditRow>) =>
  ({ history }: Store): Partial<Store> => ({
    history: (projectId, page) =>
      Effect.map(history(projectId, page), (rows) => rows.flatMap(change)),
  })

/** Changes the pages. */
const paging =
  (change: (page: EndingPage) => EndingPage) =>
  ({ listEnding }: Store): Partial<Store> => ({
    listEnding: (projectId, page) => Effect.map(listEnding(projectId, page), change),
  })

/** Changes what is asked for. */
const asking =
  (change: (page: EndingQuery) => EndingQuery) =>
  ({ listEnding }: Store): Partial<Store> => ({
    listEnding: (projectId, page) => listEnding(projectId, change(page)),
  })

/** Changes what a search finds. */
const searching =
  (change: (page: AuditPage) => AuditPage) =>
  ({ searchHistory }: Store): Partial<Store> => ({
    searchHistory: (projectId, search) => Effect.map(searchHistory(projectId, search), change),
  })

/** Changes what is searched for. */
const searchingFor =
  (change: (search: Search) => Search) =>
  ({ searchHistory }: Store): Partial<Store> => ({
    searchHistory: (projectId, search) => searchHistory(projectId, change(search)),
  })

/** Changes a page of selected changes. */
const selecting =
  (change: (page: ChangedMembers, selected: SelectedChangesPage) => ChangedMembers) =>
  ({ selectedChanges }: Store): Partial<Store> => ({
    selectedChanges: (projectId, page) =>
      Effect.map(selectedChanges(projectId, page), (found) => change(found, page)),
  })

/** Changes the members with selected changes. */
const changingMembers = (change: (member: ChangedMember) => Partial<ChangedMember>) =>
  selecting(({ bulk, members }) => ({
    bulk,
    members: members.map((member) => ({ ...member, ...change(member) })),
  }))

/** Changes what changes are selected. */
const selectingFor =
  (change: (page: SelectedChangesPage) => SelectedChangesPage) =>
  ({ selectedChanges }: Store): Partial<Store> => ({
    selectedChanges: (projectId, page) => selectedChanges(projectId, change(page)),
  })

/** Changes each of several changes. */
const changingEach =
  (change: (one: MemberChange) => Partial<MemberChange>) =>
  ({ changeEach }: Store): Partial<Store> => ({
    changeEach: (all) =>
      changeEach({ ...all, changes: all.changes.map((one) => ({ ...one, ...change(one) })) }),
  })

/** Changes how a store announces ends. */
const announcing =
  (change: (right: ExpiryStore) => Partial<ExpiryStore>) =>
  (store: Store): Partial<Store> => ({
    expiry: store.expiry && { ...store.expiry, ...change(store.expiry) },
  })

/** Changes what a store does with what is decided. */
const deciding = (change: (judge: DecideAnnouncement) => DecideAnnouncement) =>
  announcing(({ sweep }) => ({ sweep: (limit, judge) => sweep(limit, change(judge)) }))

const yearMillis = 31_536_000_000

/** Adds the time paused to dates some times more, or less, after pauses that have ended by themselves. */
const correcting =
  (factor: number) =>
  ({ extend, find, list, pause }: Store): Partial<Store> => {
    const begun = new Map<UserId, Pause>()
    const corrected = Effect.fnUntraced(function* (found: Membership) {
      const { endDate, userId } = found
      const { since, until = Infinity } = begun.get(userId) ?? { since: 0, until: Infinity }
      const { unix } = yield* currentMoment
      const isCorrected = found.pause === undefined && until <= unix
      return isCorrected
        ? { ...found, endDate: EndDate(endDate + factor * (until - since)) }
        : found
    })
    return {
      extend: (extension) => {
        begun.delete(extension.userId)
        return extend(extension)
      },
      pause: (pausing) => {
        begun.set(pausing.userId, { since: pausing.at, until: pausing.until })
        return pause(pausing)
      },
      find: (...asked) => Effect.flatMap(find(...asked), corrected),
      list: (...asked) =>
        Effect.flatMap(list(...asked), (found) => Effect.forEach(found, corrected)),
    }
  }

export const wrongMembershipStores = wrongStores("MembershipStore", MembershipStore, {
  "behaves like a map from user ids to end dates, for any sequence of changes": {
    "expects no date": ({ extend }) => ({
      extend: ({ expectedEndDate: _, ...extension }) => extend(extension),
    }),
    "shortens nothing": (right) => ({
      extendAll: (extension) =>
        right.extendAll({ ...extension, bulk: inMode(extension.bulk, "neverShorten") }),
    }),
    "shortens, too": (right) => ({
      extendAll: (extension) =>
        right.extendAll({ ...extension, bulk: inMode(extension.bulk, "set") }),
    }),
    "undoes the newest bulk extension": ({ bulkExtensions, undoBulkExtension }) => ({
      undoBulkExtension: Effect.fnUntraced(function* (undoing) {
        const [newest] = yield* bulkExtensions(undoing.projectId, { after: undefined, limit: 1 })
        const bulkExtensionId = newest?.id ?? undoing.bulkExtensionId
        return yield* undoBulkExtension({ ...undoing, bulkExtensionId })
      }),
    }),
  },
  "follows any sequence of changes, days and sweeps, and has each membership once that nobody changes meanwhile":
    {
      "has no second page": paging(({ memberships }) => ({
        memberships,
        next: undefined,
      })),
      "has the first page again and again": asking((page) => ({
        ...page,
        after: undefined,
      })),
    },
  "announces each end date once, and only those that hold, for any sequence of changes, days, sweeps and deaths of processes":
    {
      "forgets when dates were set": deciding(
        (judge) => (candidate, now) => judge({ ...candidate, dateSetAt: -Infinity }, now),
      ),
      "forgets what was announced": deciding(
        (judge) => (candidate, now) => judge({ ...candidate, announced: undefined }, now),
      ),
    },
  "is unknown before, and then what the watch says": {
    "says that it began with time": announcing(() => ({ watchedSince: Effect.succeed(0) })),
  },
  "keeps back what a bulk extension sets off, for as long as it lasts": {
    "takes all changes for those of one": deciding(
      (judge) => (candidate, now) => judge({ ...candidate, isSetWithOthers: false }, now),
    ),
  },
  "keeps nothing back that a later change of one membership sets off": {
    "takes all changes for those of many": deciding(
      (judge) => (candidate, now) => judge({ ...candidate, isSetWithOthers: true }, now),
    ),
  },
  "are those that come by a date for all that is over, with grace for 0 days": {
    "counts each member once more": ({ previewBulkExtension }) => ({
      previewBulkExtension: (projectId, change, offsets) =>
        Effect.map(previewBulkExtension(projectId, change, offsets), (preview) => ({
          ...preview,
          moved: preview.moved?.map((count) => count + 1),
        })),
    }),
    "counts nobody": ({ previewBulkExtension }) => ({
      previewBulkExtension: (projectId, change, offsets) =>
        Effect.map(previewBulkExtension(projectId, change, offsets), (preview) => ({
          ...preview,
          moved: preview.moved?.map(() => 0),
        })),
    }),
  },
  "keeps back the ends that a new grace moves, and no reminders": {
    "forgets when the grace was set": deciding(
      (judge) => (candidate, now) => judge({ ...candidate, graceSetAt: undefined }, now),
    ),
  },
  "succeeds once, if many expect the same date at the same time": ({ extend, find }) => ({
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
  "is granted once, if many ask at the same time, with or without keys": ({ find, grant }) => ({
    grantIfAbsent: Effect.fnUntraced(function* ({ isFinal: _, ...granted }) {
      const found = find(granted.projectId, granted.userId)
      const left = yield* Effect.catchTag(found, "MembershipNotFound", () => Effect.undefined)
      if (left !== undefined) return alreadyMember(left)
      yield* Effect.yieldNow
      return yield* grant(granted)
    }),
  }),
  "leaves a membership as it is, even an expired one, and returns it": {
    "replaces expired ones": ({ find, grant, grantIfAbsent }) => ({
      grantIfAbsent: Effect.fnUntraced(function* (granted) {
        const found = find(granted.projectId, granted.userId)
        const left = yield* Effect.catchTag(found, "MembershipNotFound", () => Effect.undefined)
        const isExpired = left !== undefined && left.endDate < Date.UTC(2020, 0)
        return yield* isExpired ? grant(granted) : grantIfAbsent(granted)
      }),
    }),
    "sets metadata": ({ find, grantIfAbsent, setMetadata }) => ({
      grantIfAbsent: Effect.fnUntraced(function* (granted) {
        const result = yield* grantIfAbsent(granted)
        const { metadata, projectId, userId } = granted
        if (isAlreadyMember(result) && metadata !== undefined) {
          const { metadata: expected } = yield* Effect.orDie(find(projectId, userId))
          const { event } = changeIn(projectId)
          yield* Effect.orDie(setMetadata({ ...granted, event, metadata, expected }))
        }
        return result
      }),
    }),
  },
  "keeps its key with the first response, also if it has left the membership": ({
    grantIfAbsent,
  }) => ({ grantIfAbsent: (granted) => grantIfAbsent({ ...granted, isFinal: false }) }),
  "keeps no key for a membership that it has left, unless it is final": ({ grantIfAbsent }) => ({
    grantIfAbsent: (granted) => grantIfAbsent({ ...granted, isFinal: true }),
  }),
  "ends with the latest date, if many arrive at the same time": ({ extend, find }) => ({
    extend: Effect.fnUntraced(function* ({ mode, ...extension }) {
      const { endDate } = yield* find(extension.projectId, extension.userId)
      yield* Effect.yieldNow
      const later = laterOf(endDate, { ...extension, mode })
      return yield* extend({ ...extension, mode: later && mode })
    }),
  }),
  "audits each membership, with its origin and both dates": auditing((row) => [
    row.action === "imported" ? { ...row, origin: hostOrigin } : row,
  ]),
  "has one event, and an audit row for each in its order, however many memberships there are":
    auditing((row) => (row.action === "imported" ? [] : [row])),
  "returns only memberships in one state, to the limit, by the date that holds": ({ list }) => ({
    list: (projectId, { after, limit }) => list(projectId, { after, limit }),
  }),
  "returns only memberships of the users asked for, in the same way": ({ list }) => ({
    list: (projectId, { userIds: _, ...page }) => list(projectId, page),
  }),
  "returns the reason of every change": auditing((row) => [
    row.action === "extended" ? row : { ...row, reason: undefined },
  ]),
  "has nothing after a cursor that no row has": ({ history }) => ({
    history: (projectId, page) => history(projectId, { ...page, after: undefined }),
  }),
  "has those that have not ended, soonest first, page by page": asking((page) => ({
    ...page,
    limit: page.limit + 1,
  })),
  "orders projects by their ids, page by page, of those within": ({ listProjects }) => ({
    listProjects: (page) => listProjects({ ...page, within: "all" }),
  }),
  "sets the time zone of one project, and moves no end date": () => ({
    updateProject: () => Effect.void,
  }),
  "fails if the project has other settings than expected, or does not exist": ({
    findProject,
    updateProject,
  }) => ({
    updateProject: Effect.fnUntraced(function* (change) {
      const found = findProject(change.projectId)
      const expected = yield* Effect.orElseSucceed(found, () => change.expected)
      return yield* updateProject({ ...change, expected })
    }),
  }),
  "is in the trail of the project with what differs, if anything does": ({ updateProject }) => ({
    updateProject: (change) => updateProject({ ...change, reason: undefined }),
  }),
  "makes a change of a project's settings once, repeats its answer, and refuses another request": ({
    updateProject,
  }) => ({
    updateProject: ({ idempotency: _, ...change }) => updateProject(change),
  }),
  "counts where memberships are listed by state or by end date": {
    "lists those in grace in no state": ({ list }) => ({
      list: (projectId, page) =>
        Effect.map(list(projectId, page), (found) =>
          page.only?.state === "active"
            ? found.filter(({ endDate }) => endDate > (page.only?.at ?? 0))
            : found,
        ),
    }),
    "lists none in grace by end date": ({ listEnding }) => ({
      listEnding: (projectId, page) =>
        Effect.flatMap(currentMoment, ({ unix }) =>
          Effect.map(listEnding(projectId, page), ({ memberships, next }) => ({
            memberships: memberships.filter(({ endDate }) => endDate > unix),
            next,
          })),
        ),
    }),
  },
  "is kept with the first response of a grant": ({ grant }) => ({
    grant: ({ grace: _, ...granted }) => grant(granted),
  }),
  "would make a difference to those that ended within it": ({ countEndedBetween }) => ({
    countEndedBetween: (projectId, { to }) => countEndedBetween(projectId, { from: Millis(0), to }),
  }),
  "an end comes at once, and that it has expired when the grace is over": deciding(
    (judge) => (candidate, now) => judge({ ...candidate, grace: Millis(0) }, now),
  ),
  "memberships expire at once when the grace becomes shorter, and once": (store) => {
    let longest = Millis(0)
    return deciding((judge) => (candidate, now) => {
      longest = Millis(Math.max(longest, candidate.grace))
      return judge({ ...candidate, grace: longest }, now)
    })(store)
  },
  "happens once if several delete the project at the same time": () => ({
    deleteProject: () => Effect.void,
  }),
  "makes a grant once, repeats its answer, and refuses another request": ({ grant, recall }) => ({
    grant: Effect.fnUntraced(function* ({ idempotency, ...granted }) {
      const known = idempotency && (yield* recall(idempotency, granted.projectId))
      yield* Effect.yieldNow
      return known ?? (yield* grant(granted))
    }),
  }),
  "goes to a new user, with a row and an event of both, in one step": auditing((row) => [
    row.action === "moved" ? { ...row, subject: undefined } : row,
  ]),
  "stays as it is if either user's is not as expected": ({ find, move }) => ({
    move: Effect.fnUntraced(function* (moving) {
      const from = yield* Effect.orElseSucceed(
        find(moving.projectId, moving.userId),
        () => moving.expected.from,
      )
      return yield* move({ ...moving, expected: { ...moving.expected, from } })
    }),
  }),
  "makes a move once, repeats its answer, and refuses another request": ({ move }) => ({
    move: ({ idempotency: _, ...moving }) => move(moving),
  }),
  "makes a change of metadata once, repeats its answer, and refuses another request": ({
    setMetadata,
  }) => ({
    setMetadata: (change) =>
      setMetadata({
        ...change,
        idempotency: change.idempotency && { ...change.idempotency, answer: undefined },
      }),
  }),
  "returns when a grant was made, and the metadata that it has left or set": ({ grant }) => ({
    grant: (granted) =>
      grant({
        ...granted,
        idempotency: granted.idempotency && { ...granted.idempotency, answer: "" },
      }),
  }),
  "has no history, and nobody else loses any": ({ erase }) => ({
    erase: (erasure) => erase({ ...erasure, origin: hostOrigin }),
  }),
  "is removed from events, also those to be delivered, and nothing else is": ({ erase }) => ({
    erase: (erasure) => erase({ ...erasure, event: changeIn(erasure.projectId).event }),
  }),
  "is erased after the membership has ended, and if nothing is known": ({ erase }) => ({
    erase: (erasure) =>
      Effect.map(erase(erasure), (result) => result ?? completeEvent(erasure.event, 0)),
  }),
  "keeps what other projects know, and a history of what follows": ({ erase }) => ({
    erase: (erasure) =>
      Effect.tap(erase(erasure), () => Effect.ignore(erase({ ...erasure, ...changeIn(p2) }))),
  }),
  "is erased once with an idempotency key, whatever was written since": ({ erase }) => ({
    erase: ({ idempotency: _, ...erasure }) => erase(erasure),
  }),
  "is an instant unless a change says otherwise, and is stored by each of them": {
    "extends without the form": ({ extend }) => ({
      extend: ({ inDays: _, keptDay: __, ...extension }) => extend(extension),
    }),
    "grants without the form": ({ grant }) => ({
      grant: ({ inDays: _, keptDay: __, ...granted }) => grant(granted),
    }),
    "imports without the kept day": (right) => ({
      import: ({ memberships, ...imported }) =>
        right.import({
          ...imported,
          memberships: memberships.map(({ keptDay: _, ...one }) => one),
        }),
    }),
  },
  "stays where an extension leaves the date as it is": ({ extend, find, grant }) => ({
    extend: Effect.fnUntraced(function* (extension) {
      const result = yield* extend(extension)
      if (!isEndsLater(result)) return result
      const { endDate, projectId, userId } = yield* find(extension.projectId, extension.userId)
      yield* Effect.ignore(grant({ ...changeIn(projectId), userId, endDate }))
      return result
    }),
  }),
  "can be expected": ({ extend }) => ({
    extend: ({ expectedForm: _, ...extension }) => extend(extension),
  }),
  "moves with the later date, and is expected": {
    "moves without the form": ({ move }) => ({
      move: ({ inDays: _, keptDay: __, ...moving }) => move(moving),
    }),
    "expects no form of the other user's": ({ find, move }) => ({
      move: Effect.fnUntraced(function* (moving) {
        const to = yield* Effect.orElseSucceed(
          find(moving.projectId, moving.to),
          () => moving.expected.to,
        )
        return yield* move({ ...moving, expected: { ...moving.expected, to } })
      }),
    }),
  },
  "is that of the member's own date, as far as bulk extensions leave it, and comes back when they are undone":
    {
      "keeps the kept day over bulk extensions": (right) => {
        const kept = new Map<string, number | undefined>()
        return {
          extend: (extension) =>
            Effect.tap(right.extend(extension), () =>
              Effect.sync(() => kept.set(extension.userId, extension.keptDay)),
            ),
          find: (projectId, userId) =>
            Effect.map(right.find(projectId, userId), (found) => ({
              ...found,
              keptDay: found.keptDay ?? kept.get(userId),
            })),
        }
      },
      "forgets the kept day at a bulk extension": (right) => {
        let isForgotten = false
        return {
          extend: (extension) => {
            isForgotten = false
            return right.extend(extension)
          },
          extendAll: (extension) => {
            isForgotten = true
            return right.extendAll(extension)
          },
          find: (projectId, userId) =>
            Effect.map(right.find(projectId, userId), (found) => ({
              ...found,
              keptDay: isForgotten ? undefined : found.keptDay,
            })),
        }
      },
      "forgets that a bulk extension was to a day": (right) => ({
        extendAll: ({ bulk, ...extension }) =>
          right.extendAll({
            ...extension,
            bulk: bulk.mode === "extendBy" ? bulk : { ...bulk, inDays: false },
          }),
      }),
    },
  "returns the total and the date of the bulk extension that was made, also if it is recalled": (
    right,
  ) => ({
    extendAll: ({ idempotency, ...extension }) =>
      right.extendAll({
        ...extension,
        idempotency: idempotency && { ...idempotency, answer: idempotency.answer ?? "2" },
      }),
  }),
  "returns the later date that an extension has left, whatever the answer is otherwise": ({
    extend,
    recall,
  }) => ({
    extend: Effect.fnUntraced(function* ({ idempotency, ...extension }) {
      const known = idempotency && (yield* recall(idempotency, extension.projectId))
      const answer = idempotency?.answer
      return known !== undefined && answer !== undefined
        ? replayedResponse(answer)
        : yield* extend({ ...extension, idempotency })
    }),
  }),
  "finds what a filter of the whole trail finds, page by page": {
    "ends with a page that is full": searching(({ rows }) => ({ rows, next: undefined })),
    "repeats the last row": searching(({ next, rows }) => ({
      rows,
      next: next && (rows.at(-2)?.cursor ?? next),
    })),
  },
  "finds only what matches all of its fields, from `since` on, and before `until`": {
    "finds what is as late as `until`": searchingFor(({ until, ...search }) => ({
      ...search,
      until: until && until + 1,
    })),
    "finds nothing as early as `since`": searchingFor(({ since, ...search }) => ({
      ...search,
      since: since && since + 1,
    })),
    "takes one field only": searchingFor(({ action, keyId, ...search }) => ({
      ...search,
      action,
      keyId: action === undefined ? keyId : undefined,
    })),
  },
  "finds rows behind more others than a page is made from": {
    "ends with a page that has none": searching((page) =>
      page.rows.length === 0 ? { ...page, next: undefined } : page,
    ),
    "ends with the first row before `since`": ({ history }) => ({
      searchHistory: (projectId, { after, limit, userId, ...filter }) =>
        Effect.map(history(projectId, { userId, after, limit: 10_000 }), (rows) => {
          const end = rows.findIndex(({ at }) => at < (filter.since ?? -Infinity))
          const read = end === -1 ? rows : rows.slice(0, end)
          return decideAuditPage(read, 10_000, limit, filter)
        }),
    }),
  },
  "finds nothing of an erased person, and the changes of others": ({ history }) => ({
    searchHistory: (projectId, { userId: _, ...page }) =>
      searchingHistory(history)(projectId, { ...page, userId: undefined }),
  }),
  "tells the date and its form before, and whether there was a membership": {
    "has instants only": changingMembers(({ before }) => ({
      before: before && { ...before, ...instantForm },
    })),
    "finds a membership that was granted later": changingMembers(({ from = EndDate(0) }) => ({
      from,
    })),
  },
  "tells the date that any change has set before, in a pause or not": changingMembers(
    ({ from, before }) => ({ before: before && { ...before, endDate: EndDate((from ?? 0) + 1) } }),
  ),
  "tells the pause before, which other changes leave": {
    "does not know when it ends": changingMembers(({ pause }) => ({
      pause: pause && { ...pause, until: undefined },
    })),
    "knows no pause": changingMembers(() => ({ pause: undefined })),
  },
  "tells an ended membership from one that others have granted again": changingMembers(() => ({
    other: undefined,
  })),
  "tells the first change since that is not selected": changingMembers(({ other }) => ({
    other: other && { ...other, at: other.at + 1 },
  })),
  "tells moves, also selected ones, and no bulk extensions": selecting(
    ({ bulk, members }, { selection: { keyId } }) => ({
      bulk,
      members: members.map(({ other, ...member }) => ({
        ...member,
        other: other?.keyId === keyId ? undefined : other,
      })),
    }),
  ),
  "leaves pauses that end by themselves out, but for the date afterwards": {
    "keeps the kept day": changingMembers(({ before }) => ({
      before: before && { ...before, keptDay: 30 },
    })),
    "has changes by nobody as those by others": changingMembers(({ other }) => ({
      other: other ?? { keyId: undefined, at: 0 },
    })),
  },
  "leaves announcements out": changingMembers(({ other }) => ({
    other: other ?? { keyId: undefined, at: 0 },
  })),
  "tells bulk extensions since the earliest date before, and their place among the changes": {
    "leaves out those before the first selected change": selecting(
      ({ bulk, members }, { selection: { since } }) => ({
        members,
        bulk: bulk.filter(({ at }) => at >= since),
      }),
    ),
    "forgets that they were undone": selecting(({ bulk, members }) => ({
      members,
      bulk: bulk.map((one) => ({ ...one, isUndone: false })),
    })),
    "counts those before by the end": selecting(({ bulk, members }) => ({
      bulk,
      members: members.map((one) => ({ ...one, bulkBefore: bulk.length })),
    })),
  },
  "returns users in the order of code units, page by page": {
    "begins again": selectingFor((page) => ({ ...page, after: undefined })),
    "sorts by words": selecting(({ bulk, members }) => ({
      bulk,
      members: members.toSorted((one, other) => one.userId.localeCompare(other.userId)),
    })),
  },
  "selects what matches all of its fields, from `since` on, and before `until`": {
    "selects what is as late as `until`": selectingFor(({ selection, ...page }) => ({
      ...page,
      selection: { ...selection, until: selection.until && selection.until + 1 },
    })),
    "selects nothing as early as `since`": selectingFor(({ selection, ...page }) => ({
      ...page,
      selection: { ...selection, since: selection.since + 1 },
    })),
    "takes no list of requests": selectingFor(({ selection, ...page }) => ({
      ...page,
      selection: { ...selection, requestIds: undefined },
    })),
  },
  "set dates, forms and pauses, and create and remove memberships": {
    "leaves pauses": changingEach(({ from, to }) => ({
      to: to && { ...to, pause: to.pause ?? from?.pause },
    })),
    "keeps no day": changingEach(({ to }) => ({ to: to && { ...to, keptDay: undefined } })),
    "removes nobody": changingEach(({ from, to = from }) => ({ to })),
  },
  "fail, and change nobody, unless each is as expected": ({ changeEach, find }) => ({
    changeEach: Effect.fnUntraced(function* (change) {
      const changes = yield* Effect.forEach(change.changes, (one) =>
        Effect.map(Effect.option(find(change.projectId, one.userId)), (found) => ({
          ...one,
          from: one.from && Option.getOrElse(found, () => one.from),
        })),
      )
      return yield* changeEach({ ...change, changes })
    }),
  }),
  "give own dates: earlier bulk extensions do not apply, and later ones do": ({
    changeEach,
    undoBulkExtension,
  }) => {
    const made: Array<MemberChanges> = []
    return {
      changeEach: (change) => {
        made.push(change)
        return changeEach(change)
      },
      // They lose it again.
      undoBulkExtension: (undo) =>
        Effect.tap(undoBulkExtension(undo), () =>
          Effect.ignore(
            Effect.forEach(made, (change) =>
              changeEach({
                ...change,
                changes: change.changes.map(({ from, to, ...one }) => ({
                  ...one,
                  from: to,
                  to: to && { ...to, endDate: from?.endDate ?? EndDate(0) },
                  event: changeIn(change.projectId).event,
                })),
              }),
            ),
          ),
        ),
    }
  },
  "are made once with an idempotency key": ({ changeEach }) => ({
    changeEach: ({ idempotency: _, ...change }) => changeEach(change),
  }),
  "has the first change of a member that it selects as the first": selectingFor(
    ({ selection, ...page }) => ({ ...page, selection: { ...selection, since: longAgo } }),
  ),
  "is empty in an empty project, and fails without one": ({ selectedChanges }) => ({
    selectedChanges: (projectId, page) =>
      Effect.catchTag(selectedChanges(projectId, page), "ProjectNotFound", () =>
        Effect.succeed({ members: [], bulk: [] }),
      ),
  }),
  "finds what the rule finds in the whole trail": selectingFor((page) => ({
    ...page,
    limit: page.limit + 1,
  })),
  "leaves out announcements": searchingFor((search) => ({ ...search, announcements: true })),
  "has who was shown what": ({ recordShown }) => ({
    recordShown: (...shown) => Effect.ignore(recordShown(...shown)),
  }),
  "make a chain if members are extended often at the same time, with idempotency keys": (
    right,
  ) => ({
    extend: ({ idempotency: _, ...extension }) => right.extend(extension),
  }),
  "counts the days around today, the active, and those that end soon": ({ countEnds }) => ({
    countEnds: (projectId, query) =>
      Effect.map(countEnds(projectId, query), (counts) => ({
        ...counts,
        endsIn7Days: counts.endsIn7Days + 1,
      })),
  }),
  "counts what more time would lead to, which ends nobody after the last instant": ({
    countEnds,
  }) => ({
    countEnds: (projectId, { days }) => countEnds(projectId, { days, change: undefined }),
  }),
  "returns only users whose ids start with a prefix": ({ list }) => ({
    list: (projectId, { prefix: _, ...page }) => list(projectId, page),
  }),
  "restores a date that later requests left as it was": ({ extend }) => ({
    extend: (extension) =>
      Effect.catchTag(extend(extension), "EndDateConflict", (conflict) => {
        const { expectedEndDate: _, ...rest } = extension
        const kept = extend({ ...rest, endDate: conflict.currentEndDate })
        return Effect.andThen(Effect.ignore(kept), Effect.fail(conflict))
      }),
  }),
  "can be expected after everybody has more time, and are capped at the last instant": ({
    previewBulkExtension,
  }) => ({
    previewBulkExtension: (projectId, bulk) =>
      Effect.map(previewBulkExtension(projectId, bulk), (preview) => ({
        ...preview,
        lifetimesEnded: 0,
      })),
  }),
  "says why it cannot be made, and so does its preview": ({ previewUndo }) => ({
    previewUndo: (projectId, target) => previewUndo(projectId, { ...target, madeAfter: longAgo }),
  }),
  "is listed, with who made it": ({ bulkExtensions }) => ({
    bulkExtensions: (projectId, page) =>
      Effect.map(bulkExtensions(projectId, page), (rows) =>
        rows.map((row) => ({ ...row, undone: row.undone && { ...row.undone, by: hostOrigin } })),
      ),
  }),
  "makes the undoing of a bulk extension once, repeats its answer, and refuses another request": (
    right,
  ) => ({
    undoBulkExtension: ({ idempotency: _, ...undoing }) => right.undoBulkExtension(undoing),
  }),
  "returns who made which, newest first, page by page": ({ bulkExtensions }) => ({
    bulkExtensions: (projectId, { limit }) =>
      bulkExtensions(projectId, { after: undefined, limit }),
  }),
  "makes an ending once, repeats its answer, and refuses another request": auditing((row) =>
    row.action === "ended" ? [] : [row],
  ),
  "makes the creation of a project once, repeats its answer, and refuses another request": (
    right,
  ) => ({
    createProject: (projectId, { idempotency: _, ...context }) =>
      right.createProject(projectId, context),
  }),
  "come at each reminder and at the end, once": announcing(({ watch }) => ({
    watch: () => watch([Millis(0)]),
  })),
  "come also for members that were looked at while the clock was ahead": announcing((right) => ({
    watch: (leads) => Effect.as(right.watch(leads), -1e15),
  })),
  "are reminders that are late for another reason, whatever was changed but the date": deciding(
    (judge) => (candidate, now) => judge({ ...candidate, dateSetAt: now }, now),
  ),
  "are of no more members than asked for, and tell whether there are more": announcing((right) => ({
    sweep: (limit, judge) => right.sweep(10 * limit, judge),
  })),
  "come at the next checks that a store names, and none before": announcing(({ nextCheckAt }) => ({
    nextCheckAt: nextCheckAt && (() => nextCheckAt() + 1),
  })),
  "come in the time that a sweep names, if it names one": announcing(({ sweep }) => ({
    sweep: (limit, judge) =>
      Effect.map(sweep(limit, judge), (swept) => ({ ...swept, nextDueMillis: 1000 })),
  })),
  "lasts until the member is resumed, and the end date is later by the time paused": {
    "adds no time": ({ resume }) => ({
      resume: ({ expected, ...resuming }) =>
        resume({
          ...resuming,
          at: expected.pause.since,
          endDate: expected.endDate,
          expected,
        }),
    }),
    "ends it after a year": ({ pause }) => ({
      pause: (pausing) => pause({ ...pausing, until: pausing.until ?? pausing.at + yearMillis }),
    }),
  },
  "begins and ends on request, with an event and a row each": {
    "has no end that only a request ends": ({ pause }) => ({
      pause: (pausing) => pause({ ...pausing, until: pausing.until ?? pausing.at + 1000 }),
    }),
    "records no beginning": auditing((row) => (row.action === "paused" ? [] : [row])),
  },
  "is refused unless the membership is as expected, and changes nothing then": {
    "begins whatever the date is": ({ find, pause }) => ({
      pause: Effect.fnUntraced(function* (pausing) {
        const found = find(pausing.projectId, pausing.userId)
        const expected = yield* Effect.orElseSucceed(found, () => pausing.expected)
        return yield* pause({ ...pausing, expected })
      }),
    }),
    "begins while another lasts": ({ find, pause, resume }) => ({
      pause: Effect.fnUntraced(function* (pausing) {
        const { projectId, userId } = pausing
        const found = yield* Effect.option(find(projectId, userId))
        const before = Option.getOrUndefined(found)
        if (before?.pause !== undefined) {
          const { endDate, pause: old } = before
          const { event } = changeIn(projectId)
          yield* resume({ ...pausing, event, endDate, expected: { endDate, pause: old } })
        }
        return yield* pause(pausing)
      }),
    }),
    "ends whichever pause there is": ({ find, resume }) => ({
      resume: Effect.fnUntraced(function* ({ expected, ...resuming }) {
        const found = find(resuming.projectId, resuming.userId)
        const { pause } = yield* Effect.orElseSucceed(found, () => expected)
        return yield* resume({
          ...resuming,
          expected: { ...expected, pause: pause ?? expected.pause },
        })
      }),
    }),
  },
  "is in every list and count": {
    "lists the paused with the active": ({ list }) => ({
      list: (projectId, { only, ...page }) =>
        Effect.map(list(projectId, page), (found) =>
          found.filter(
            (one) =>
              only === undefined ||
              stateAt(one, only.at) === only.state ||
              (only.state === "active" && one.pause !== undefined),
          ),
        ),
    }),
    "counts no paused": ({ countEnds }) => ({
      countEnds: (...asked) =>
        Effect.map(countEnds(...asked), (counts) => ({ ...counts, paused: 0 })),
    }),
    "would activate the paused": ({ previewBulkExtension }) => ({
      previewBulkExtension: (...asked) =>
        Effect.map(previewBulkExtension(...asked), (preview) => ({
          ...preview,
          reactivated: preview.reactivated + 1,
        })),
    }),
  },
  "stays when the date that stands is changed, and is told by a grant": {
    "loses it by a grant": ({ end, grant }) => ({
      grant: Effect.fnUntraced(function* (granted) {
        yield* Effect.ignore(end({ ...changeIn(granted.projectId), userId: granted.userId }))
        return yield* grant(granted)
      }),
    }),
    "says nothing of it": ({ grant }) => ({
      grant: (granted) =>
        Effect.map(grant(granted), (result) =>
          isReplayedResponse(result) ? result : { ...result, pause: undefined },
        ),
    }),
    "loses it by an import": ({ end, ...right }) => ({
      import: Effect.fnUntraced(function* (imported) {
        for (const { userId } of imported.memberships) {
          yield* Effect.ignore(end({ ...changeIn(imported.projectId), userId }))
        }
        return yield* right.import(imported)
      }),
    }),
    "moves its date with bulk extensions only afterwards": ({ extendAll, find }) => {
      let added = 0
      return {
        extendAll: (extension) => {
          if (extension.bulk.mode === "extendBy") added += extension.bulk.by
          return extendAll(extension)
        },
        find: (...asked) =>
          Effect.map(find(...asked), (found) =>
            found.pause === undefined
              ? found
              : { ...found, endDate: EndDate(found.endDate - added) },
          ),
      }
    },
  },
  "ends with the membership, and cannot be moved": {
    "stays for the next member": ({ end, find, grant, ...right }) => {
      const left = new Map<UserId, Pause>()
      return {
        end: Effect.fnUntraced(function* (ending) {
          const found = yield* Effect.option(find(ending.projectId, ending.userId))
          const { pause } = Option.getOrUndefined(found) ?? {}
          if (pause !== undefined) left.set(ending.userId, pause)
          return yield* end(ending)
        }),
        grant: Effect.fnUntraced(function* (granted) {
          const { endDate, projectId, userId } = granted
          const memberships = [{ userId, endDate, pause: left.get(userId) }]
          yield* right.import({ ...changeIn(projectId), memberships })
          return yield* grant(granted)
        }),
      }
    },
    "is moved": ({ find, move, resume }) => ({
      move: Effect.fnUntraced(function* (moving) {
        const { projectId, to, userId } = moving
        for (const one of [userId, to]) {
          const found = yield* Effect.option(find(projectId, one))
          const { endDate = moving.endDate, pause } = Option.getOrUndefined(found) ?? {}
          if (pause === undefined) continue
          const expected = { endDate, pause }
          yield* Effect.ignore(
            resume({ ...changeIn(projectId), at: pause.since, userId: one, endDate, expected }),
          )
        }
        return yield* move(moving)
      }),
    }),
  },
  "is imported as it was exported": (right) => ({
    import: ({ memberships, ...imported }) =>
      right.import({
        ...imported,
        memberships: memberships.map(({ pause: _, ...one }) => one),
      }),
  }),
  "ends by itself, whatever runs, and the end date is later by the time paused": {
    "adds no time": correcting(-1),
    "adds the time twice": correcting(1),
    "ends it at the next sweep": ({ find, pause }) => {
      const begun = new Map<UserId, Pause>()
      return {
        pause: (pausing) => {
          begun.set(pausing.userId, { since: pausing.at, until: pausing.until })
          return pause(pausing)
        },
        find: (projectId, userId) =>
          Effect.map(find(projectId, userId), (found) => ({
            ...found,
            pause: found.pause ?? begun.get(userId),
          })),
      }
    },
    "publishes it when somebody reads": ({ find, setMetadata }) => ({
      find: Effect.fnUntraced(function* (projectId, userId) {
        const found = yield* find(projectId, userId)
        const { metadata } = found
        const change = { ...changeIn(projectId), userId, metadata, expected: metadata }
        if (found.pause === undefined) yield* Effect.ignore(setMetadata(change))
        return found
      }),
    }),
  },
  "drops a kept day when it ends, and keeps a day a day": {
    "keeps the kept day": (right) => {
      const kept = new Map<UserId, number | undefined>()
      return {
        extend: (extension) => {
          kept.set(extension.userId, extension.keptDay)
          return right.extend(extension)
        },
        find: (projectId, userId) =>
          Effect.map(right.find(projectId, userId), (found) => ({
            ...found,
            keptDay: kept.get(userId),
          })),
      }
    },
    "makes it an instant": ({ find, pause }) => {
      const begun = new Set<UserId>()
      return {
        pause: (pausing) => {
          begun.add(pausing.userId)
          return pause(pausing)
        },
        find: (projectId, userId) =>
          Effect.map(find(projectId, userId), (found) => ({
            ...found,
            inDays: found.inDays && !(begun.has(userId) && found.pause === undefined),
          })),
      }
    },
  },
  "leaves a membership for life as it is": correcting(1),
  "is a change of one membership at its end, which later changes of all come after": {
    "forgets a bulk extension when it ends": correcting(1),
    "adds the time to what a bulk extension sets": (right) => {
      const begun = new Map<UserId, Pause>()
      return {
        pause: (pausing) => {
          begun.set(pausing.userId, { since: pausing.at, until: pausing.until })
          return right.pause(pausing)
        },
        extendAll: Effect.fnUntraced(function* (extension) {
          const { projectId } = extension
          const result = yield* right.extendAll(extension)
          const { unix } = yield* currentMoment
          for (const [userId, { since, until = Infinity }] of begun) {
            if (until > unix) continue
            const { endDate: set } = yield* Effect.orDie(right.find(projectId, userId))
            const endDate = EndDate(set + until - since)
            yield* Effect.ignore(right.extend({ ...changeIn(projectId), userId, endDate }))
          }
          return result
        }),
      }
    },
    "records the end after the bulk extension": ({ history }) => ({
      history: (projectId, page) =>
        Effect.map(history(projectId, page), (rows) =>
          rows.toSorted(
            (one, other) => Number(other.action === "resumed") - Number(one.action === "resumed"),
          ),
        ),
    }),
  },
  "adds nothing to a date that is set after it, and can begin again": {
    "adds the time again": ({ extend, pause }) => {
      const begun = new Map<UserId, Pause>()
      return {
        pause: (pausing) => {
          begun.set(pausing.userId, { since: pausing.at, until: pausing.until })
          return pause(pausing)
        },
        extend: (extension) => {
          const { since, until = since } = begun.get(extension.userId) ?? { since: 0 }
          const endDate = EndDate(extension.endDate + until - since)
          return extend({ ...extension, endDate })
        },
      }
    },
    "has the next change begin where the date stood": (right) => {
      const stood = new Map<UserId, EndDate>()
      return {
        pause: (pausing) => {
          stood.set(pausing.userId, pausing.expected.endDate)
          return right.pause(pausing)
        },
        history: (projectId, page) =>
          Effect.map(right.history(projectId, page), (rows) =>
            rows.map((row) =>
              row.action === "extended" && row.userId !== undefined
                ? { ...row, from: stood.get(row.userId) }
                : row,
            ),
          ),
      }
    },
  },
  "keeps the time paused when another one begins": ({ extend, find, pause }) => {
    const stood = new Map<UserId, EndDate>()
    return {
      pause: Effect.fnUntraced(function* (pausing) {
        const { expected, projectId, userId } = pausing
        const endDate = stood.get(userId) ?? expected.endDate
        stood.set(userId, endDate)
        yield* Effect.ignore(extend({ ...changeIn(projectId), userId, endDate }))
        return yield* pause({ ...pausing, expected: yield* Effect.orDie(find(projectId, userId)) })
      }),
    }
  },
  "leaves others what they may change after its end": ({ extend }) => ({
    extend: ({ expectedEndDate: _, ...extension }) => extend(extension),
  }),
  "announces nothing but its end, which is published once": {
    "publishes nothing": deciding(
      (judge) =>
        ({ pause: _, ...candidate }, now) =>
          judge(candidate, now),
    ),
    "publishes it twice": deciding((judge) => {
      let last: Announcement | undefined
      return (candidate, now) => {
        const outcome = judge(candidate, now)
        if (outcome.announcement?.action === "resumed") {
          last = outcome.announcement
          return { ...outcome, alarm: now }
        }
        const announcement = outcome.announcement ?? last
        last = undefined
        return { ...outcome, announcement }
      }
    }),
    "publishes the date that stood": deciding(
      (judge) => (candidate, now) =>
        judge(
          candidate.pause?.until === undefined
            ? candidate
            : {
                ...candidate,
                endDate: EndDate(candidate.endDate - candidate.pause.until + candidate.pause.since),
              },
          now,
        ),
    ),
    "records it from the later date": auditing((row) => [
      row.action === "resumed" ? { ...row, from: row.to } : row,
    ]),
  },
  "skips reminders whose time had come when it ended, and tells the expiry": {
    "sends late reminders": deciding(
      (judge) => (candidate, now) => judge({ ...candidate, dateSetAt: -Infinity }, now),
    ),
    "is silent afterwards": deciding((judge) => (candidate, now) => {
      const outcome = judge(candidate, now)
      return outcome.announcement?.action === "resumed" ? { ...outcome, alarm: undefined } : outcome
    }),
  },
  "is announced with a date to which later bulk extensions apply, by their numbers": {
    "publishes nothing if the member was changed since": deciding(
      (judge) =>
        ({ pause, ...candidate }, now) =>
          judge(
            candidate.dateSetAt > (pause?.until ?? Infinity) ? candidate : { ...candidate, pause },
            now,
          ),
    ),
    "keeps the date from bulk extensions": ({ expiry, extend }) => ({
      expiry: expiry && {
        ...expiry,
        sweep: Effect.fnUntraced(function* (limit, judge) {
          const told: Array<DueMembership> = []
          const swept = yield* expiry.sweep(limit, (candidate, now) => {
            const outcome = judge(candidate, now)
            if (outcome.announcement?.action === "resumed") told.push(candidate)
            return outcome
          })
          for (const { endDate, projectId, userId } of told) {
            yield* Effect.ignore(extend({ ...changeIn(projectId), userId, endDate }))
          }
          return swept
        }),
      },
    }),
  },
  "is announced if it began before ends were watched": deciding(
    (judge) =>
      ({ pause: _, ...candidate }, now) =>
        judge(candidate, now),
  ),
  "that has no end is resumed, and the end is announced then": (store) => {
    const silent = new Set<UserId>()
    return {
      ...deciding((judge) => (candidate, now) => {
        const outcome = judge(candidate, now)
        return silent.has(candidate.userId) ? { ...outcome, announcement: undefined } : outcome
      })(store),
      resume: (resuming) => {
        silent.add(resuming.userId)
        return store.resume(resuming)
      },
    }
  },
  "announces nothing when the date that stands is changed": deciding(
    (judge) =>
      ({ pause, ...candidate }, now) =>
        judge(pause !== undefined && isOver(pause, now) ? { ...candidate, pause } : candidate, now),
  ),
  "makes a pause once, repeats its answer, and refuses another request": ({ pause }) => ({
    pause: ({ idempotency: _, ...pausing }) => pause(pausing),
  }),
})

/** Stores whose changes the audit trail shows wrongly. */
export const wronglyAudited = [
  ...wrongStores("MembershipStore", ApiKeyStore, {
    "has who changed keys and projects, and only of changes": ({ add }) => ({
      add: (key, { at }) => add(key, { at, origin: hostOrigin }),
    }),
  }),
  ...wrongStores("MembershipStore", WebhookStore, {
    "has who changed webhooks, and only of changes": ({ rotateSecret }) => ({
      rotateSecret: (projectId, webhookId, rotation, { at }) =>
        rotateSecret(projectId, webhookId, rotation, { at, origin: hostOrigin }),
    }),
  }),
]
