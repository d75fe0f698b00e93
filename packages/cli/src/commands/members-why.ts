/** `tenure members why`: how a member's end date came about. */

import type { AuditRow, Membership } from "@tenure/client"
import { datelessActions, fixedMillis } from "@tenure/core/internal"
import { DurationText, Millis } from "@tenure/core/store"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { callApi, listed } from "../support/api.ts"
import { Failure } from "../support/failure.ts"
import { projectFlag, userId } from "../support/flags.ts"
import { printResult } from "../support/output.ts"
import {
  endText,
  isoOf,
  lastEndDate,
  layOut,
  pauseText,
  pluralize,
  printable,
} from "../support/text.ts"

/** A change to a member, as the API returns it. */
type Change = Omit<AuditRow, "user_id" | "subject" | "changes">

/** A change to a member's end date, with both dates. */
export interface DatedChange extends Change {
  /** Whether this change set the current date. */
  readonly sets_current_date: boolean
}

// Without a date, a move has taken the membership away.
const leaving: ReadonlySet<string> = new Set(["ended", "moved"])

/** Tells whether a change is the beginning of a pause, which leaves the date. */
const isPause = ({ action }: Change): boolean => action === "paused"

// A membership is paused if the last one of these is a pause.
const pausing: ReadonlySet<string> = new Set(["paused", "resumed", ...leaving])

const isOfAll = ({ action }: Change): boolean => action.startsWith("bulk_")

/** How much later a bulk extension made each date, in milliseconds. */
const lengthOf = ({ extend_by }: Change): number =>
  extend_by === null || !DurationText.is(extend_by)
    ? 0
    : (fixedMillis(DurationText(extend_by)) ?? Millis(0))

// A duration leaves a membership for life as it is.
const moved = (date: string | null, millis: number): string | null =>
  date === null || date === lastEndDate ? date : isoOf(Date.parse(date) + millis)

/** The date after a change, as far as the change itself and the date before it tell. */
const dateAfter = (change: Change, before: string | null): string | null => {
  switch (change.action) {
    case "bulk_extended_by":
      return moved(before, lengthOf(change))
    // It brings back a date from before.
    case "bulk_undone":
      return null
    default:
      return change.to
  }
}

/** The date before a change, as far as the change itself and the date after it tell. */
const dateBefore = (change: Change, after: string | null): string | null => {
  if (!isOfAll(change)) return change.from
  return change.action === "bulk_extended_by" ? moved(after, -lengthOf(change)) : null
}

/**
 * Fills in the member's dates. Rows for bulk changes have none, because each member has different ones.
 *
 * @param changes - newest first, as the API lists them
 * @param current - the end date now; `undefined` if there is no membership
 */
const explainDates = (
  changes: ReadonlyArray<Change>,
  current: string | undefined,
): ReadonlyArray<DatedChange> => {
  const told = changes
    .filter((change) => isPause(change) || !datelessActions.has(change.action))
    .toReversed()
  const last = told.findLastIndex((change) => !isPause(change))
  let before: string | null = null
  const forward = told.map((change) => {
    const from = isOfAll(change) ? before : change.from
    before = dateAfter(change, from)
    return { change, from, to: before }
  })
  // If a change leaves a date open, the next change tells it, or the current date.
  let after: string | null = current ?? null
  const filled = forward.toReversed().map(({ change, from, to }, index) => {
    const end = to ?? (leaving.has(change.action) ? null : after)
    const start = from ?? dateBefore(change, end)
    after = start
    return {
      ...change,
      from: start,
      to: end,
      sets_current_date:
        index === told.length - 1 - last && current !== undefined && end === current,
    }
  })
  return filled.toReversed()
}

const names: Partial<Record<Change["action"], string>> = {
  bulk_extended: "all set to",
  bulk_lengthened: "all extended",
  bulk_extended_by: "all extended",
  bulk_undone: "undone for all",
}

// More do not fit on a screen.
const maxShown = 20

// The API's largest page. A member has few changes.
const maxRead = 1000

/** Says how the date came about, in one sentence. */
const sentenceOf = (
  changes: ReadonlyArray<DatedChange>,
  state: Membership["state"] | null,
): string => {
  const last = changes.findLast((change) => !isPause(change))
  if (last === undefined) return "The audit trail does not tell how it came about: it is older."
  if (state === null) return `The last change was made on ${last.at} by ${authorOf(last)}.`
  if (last.sets_current_date)
    return `The date that holds now was set on ${last.at} by ${authorOf(last)}.`
  const pause = changes.findLast(({ action }) => pausing.has(action))
  // A sweep records that it has ended by itself.
  return pause !== undefined && isPause(pause) && state !== "paused"
    ? `The pause of ${pause.at} has ended by itself, and the time paused was added to the date.`
    : "The last change in the audit trail has set another date: a change is missing there."
}

const authorOf = ({ key_id, key_name }: Change): string => key_name ?? key_id ?? "the host itself"

const rowOf = (change: DatedChange) => ({
  now: change.sets_current_date ? "→" : " ",
  at: change.at,
  change: names[change.action] ?? change.action,
  from: change.from && endText(change.from),
  to: change.to && endText(change.to),
  by: authorOf(change),
  reason: change.reason,
  request: change.request_id,
})

/** How a member's date came about. */
interface Explanation {
  readonly project_id: string
  readonly user_id: string
  /** `null` if there is no membership, or for life. */
  readonly end_date: string | null
  /** The last whole day, if the membership counts in days. */
  readonly through: string | null
  /** When it expires, if it has ended, and is still active. */
  readonly grace_until: string | null
  /** When its pause began, if it is paused. */
  readonly paused_at: string | null
  /** When its pause ends by itself. */
  readonly resumes_at: string | null
  /** `null` if there is no membership. */
  readonly state: Membership["state"] | null
  /** Oldest first. */
  readonly changes: ReadonlyArray<DatedChange>
}

const standingOf = ({
  end_date,
  grace_until,
  paused_at,
  resumes_at,
  state,
  through,
}: Explanation): string => {
  if (state === null) return "is no member"
  if (paused_at !== null)
    return end_date === null
      ? `is ${pauseText(paused_at, resumes_at)}: a member for life`
      : `is ${pauseText(paused_at, resumes_at)}: the end date ${end_date} stands, and is later afterwards by the time paused`
  if (end_date === null) return "is a member for life: the membership never ends"
  if (state === "active" && grace_until === null) {
    return `is active${through === null ? "" : ` through ${through},`} until ${end_date}`
  }
  const ended = `it ended${through === null ? "" : ` with the day ${through},`} at ${end_date}`
  return grace_until === null
    ? `has expired: ${ended}`
    : `is active, in grace until ${grace_until}: ${ended}`
}

const linesOf = (explanation: Explanation) => {
  const { changes, project_id, state, user_id } = explanation
  const left = changes.length - maxShown
  return [
    printable(`${user_id} of ${project_id} ${standingOf(explanation)}`),
    "",
    ...(left > 0 ? [`${pluralize(left, "earlier change")}: see tenure members history.`] : []),
    ...(changes.length === 0 ? [] : layOut(changes.slice(-maxShown).map(rowOf), Infinity).lines),
    "",
    printable(sentenceOf(changes, state)),
  ]
}

/** The command. */
export const whyCommand = Command.make(
  "why",
  { user: userId, project: projectFlag },
  Effect.fnUntraced(function* ({ project: project_id, user: user_id }) {
    const member = yield* callApi(({ memberships }, options) =>
      memberships.get({ project_id, user_id }, options),
    ).pipe(
      Effect.map(({ data }) => data),
      Effect.catchIf(
        ({ code }) => code === "MEMBERSHIP_NOT_FOUND",
        () => Effect.succeed(undefined),
      ),
    )
    const found = yield* listed(({ memberships }) =>
      memberships.history({ project_id, user_id, limit: maxRead }),
    ).pipe(Stream.take(maxRead), Stream.runCollect)
    if (member === undefined && found.length === 0) {
      const message = `${user_id} is no member of ${project_id}, and the audit trail knows of none.`
      return yield* new Failure({ kind: "notFound", message })
    }
    const explanation: Explanation = {
      project_id,
      user_id,
      end_date: member?.end_date ?? null,
      through: member?.through ?? null,
      grace_until: member?.grace_until ?? null,
      paused_at: member?.paused_at ?? null,
      resumes_at: member?.resumes_at ?? null,
      state: member?.state ?? null,
      changes: explainDates(found, member && (member.end_date ?? lastEndDate)),
    }
    yield* printResult(explanation, () => linesOf(explanation))
  }),
).pipe(
  Command.withDescription("Tells how the end date of a member came about, and by whom"),
  Command.withExamples([{ command: "tenure members why 1001 --project shop" }]),
)
