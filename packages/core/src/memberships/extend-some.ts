/** Extends the memberships in a segment, page by page. */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type ChangeContext, isReplayedResponse } from "../base/change-context.ts"
import type { Repeatable } from "../base/host-method.ts"
import type { Decoded, HostInputOf } from "../base/operation-input.ts"
import { knownEventTypes } from "../events/event.ts"
import { type AnnouncementCounts, type BulkExample, maxExamples } from "./bulk-extension.ts"
import { knownZone } from "./calendar.ts"
import { endDateNotInFuture, formatEndDate, lastEndDate } from "./end-date.ts"
import type { segmentExtension } from "./extension-inputs.ts"
import {
  type ChangeServices,
  changeEvent,
  changeFound,
  endAfter,
  findEndOfDay,
  reportChange,
  unrepeatable,
} from "./extensions.ts"
import { type Term, maxMemberChanges } from "./member-changes.ts"
import { type Membership, UserId, laterOf } from "./membership.ts"
import { isInSegment } from "./segment.ts"

/** How a segment is extended. */
export type ExtendingSome = HostInputOf<typeof segmentExtension> & Repeatable

/** A page of a segment after its extension. */
export interface SegmentResult {
  /** How many memberships were extended. Of a dry run: how many would be, on all pages. */
  readonly total: number
  /** The next page's `after`; `undefined` after the last one. */
  readonly next: UserId | undefined
  /** After a dry run: up to ten memberships, and their new end dates. */
  readonly examples?: ReadonlyArray<BulkExample> | undefined
  /** After a dry run: how many memberships would end earlier. */
  readonly wouldShorten?: number | undefined
  /** After a dry run: the announcements it sets off; `undefined` if ends are not announced. */
  readonly announcements?: AnnouncementCounts | undefined
}

type Given = Decoded<typeof segmentExtension>

/** A membership to extend, and its term afterwards. */
interface Extended {
  readonly before: Membership
  readonly after: Term
}

type FindTerm = (membership: Membership) => Term | undefined

// Reading so many takes a while, where few of them are in the segment.
const maxPagesRead = 10

/** Reads the next memberships in a segment. Where few are, it returns fewer, and where to go on. */
const readPage = Effect.fnUntraced(function* (
  { store }: Pick<ChangeServices, "store">,
  { projectId, where }: Pick<Given, "projectId" | "where">,
  after: UserId | undefined,
  at: number,
) {
  const found: Array<Membership> = []
  const { state, userIds } = where
  let place = after
  for (let pages = 0; pages < maxPagesRead; pages++) {
    const limit = maxMemberChanges
    const only = state && { state, at }
    const page = yield* store.list(projectId, { after: place, limit, userIds, only })
    for (const one of page) {
      if (!isInSegment(one, where)) continue
      if (found.length === maxMemberChanges) return { found, next: found.at(-1)?.userId }
      found.push(one)
    }
    if (page.length < limit) return { found, next: undefined }
    place = page.at(-1)?.userId
  }
  return { found, next: place }
})

/** Returns the function that finds the term of a membership after its extension; `undefined` if it stays as it is. */
const findTerms = Effect.fnUntraced(function* (
  services: Pick<ChangeServices, "store">,
  given: Given,
  at: number,
) {
  if (given.by !== undefined) {
    const { by, from } = given
    const { timeZone: named } = yield* services.store.findProject(given.projectId)
    const timeZone = given.timeZone ?? (yield* Effect.fromResult(knownZone(named)))
    return (membership: Membership): Term | undefined => {
      const end = endAfter({ by, from, timeZone }, membership, at)
      if (Result.isFailure(end) || membership.endDate === lastEndDate) return undefined
      const { instant: endDate, ...form } = end.success
      return { endDate, ...form, pause: membership.pause }
    }
  }
  const { mode, through } = given
  const inDays = through !== undefined
  const endDate = inDays
    ? yield* findEndOfDay(services, given.projectId, { ...given, through })
    : given.endDate
  if (endDate <= at) return yield* endDateNotInFuture
  return ({ endDate: before, pause }: Membership): Term | undefined =>
    laterOf(before, { endDate, mode }) === undefined
      ? { endDate, inDays, keptDay: undefined, pause }
      : undefined
})

const sumOf = (
  one: AnnouncementCounts | undefined,
  other: AnnouncementCounts | undefined,
): AnnouncementCounts | undefined =>
  one &&
  other && {
    expiring: one.expiring + other.expiring,
    overdue: one.overdue + other.overdue,
    expired: one.expired + other.expired,
    next24Hours: one.next24Hours + other.next24Hours,
  }

const extendedIn = (found: ReadonlyArray<Membership>, termOf: FindTerm): ReadonlyArray<Extended> =>
  found.flatMap((before) => {
    const after = termOf(before)
    return after === undefined ? [] : [{ before, after }]
  })

const formatPage = ({ next, total }: SegmentResult): string => `${total} ${next ?? ""}`

const parsePage = (answer: string): SegmentResult => {
  const [total = "", next = ""] = answer.split(" ")
  return { total: Number(total), next: next === "" ? undefined : UserId(next) }
}

/** Makes the act `extendSome`. */
export const makeExtendSome = (services: ChangeServices) => {
  const { foresee, store } = services

  const preview = Effect.fnUntraced(function* (given: Given, at: number, termOf: FindTerm) {
    const { grace } = yield* store.findProject(given.projectId)
    const foresight = yield* foresee(grace, true)
    let next = given.after
    let total = 0
    let wouldShorten = 0
    let announcements = foresight?.countEach([], at)
    const examples: Array<BulkExample> = []
    do {
      const page = yield* readPage(services, given, next, at)
      const extended = extendedIn(page.found, termOf)
      total += extended.length
      const ends = extended.map(({ after, before }) => ({
        before: before.endDate,
        after: after.endDate,
        isPaused: before.pause !== undefined,
      }))
      wouldShorten += ends.filter(({ after, before }) => after < before).length
      // In a pause, nothing is announced.
      const announced = ends.filter(({ isPaused }) => !isPaused)
      announcements = sumOf(announcements, foresight?.countEach(announced, at))
      for (const { after, before } of extended.slice(0, maxExamples - examples.length)) {
        const { endDate, userId } = before
        examples.push({ userId, endDate, wouldEnd: after.endDate })
      }
      next = page.next
    } while (next !== undefined)
    const result: SegmentResult = { total, next, examples, wouldShorten, announcements }
    return result
  })

  const extendPage = Effect.fnUntraced(function* (
    given: Given,
    context: ChangeContext,
    termOf: FindTerm,
  ) {
    const { at, idempotency } = context
    const { projectId, reason } = given
    const draft = { ...context, projectId, reason }
    const page = yield* readPage(services, given, given.after, at)
    const changes = extendedIn(page.found, termOf).map(({ after, before }) => ({
      userId: before.userId,
      from: before,
      to: after,
      event: changeEvent(services, draft, knownEventTypes.extended, {
        project_id: projectId,
        user_id: before.userId,
        new_end_date: formatEndDate(after.endDate),
      }),
    }))
    const result: SegmentResult = { total: changes.length, next: page.next }
    if (changes.length === 0) {
      // After an extension, the page may have nobody any more.
      return (idempotency && (yield* store.recall(idempotency, projectId))) ?? result
    }
    const made = yield* store.changeEach({
      ...draft,
      action: "extended",
      changes,
      idempotency: idempotency && { ...idempotency, answer: formatPage(result) },
    })
    if (isReplayedResponse(made)) return made
    for (const event of made) yield* reportChange(services, context, event)
    return result
  })

  return Effect.fnUntraced(function* (given: Given, context: ChangeContext) {
    const { at, idempotency } = context
    const { by, dryRun, projectId, reason } = given
    if (by !== undefined && idempotency === undefined && !dryRun) return yield* unrepeatable()
    if (dryRun) return yield* preview(given, at, yield* findTerms(services, given, at))
    const attempt = Effect.flatMap(findTerms(services, given, at), (termOf) =>
      extendPage(given, context, termOf),
    )
    return yield* changeFound(
      services,
      { ...context, projectId, reason },
      Effect.catchTag(attempt, "MemberChangesConflict", () => Effect.undefined),
      parsePage,
    )
  })
}
