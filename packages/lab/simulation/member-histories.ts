/** Memberships' histories in a run, for a linearizability checker. */

import {
  type Ask,
  type MemberHistory,
  type MemberOperation,
  type Told,
  found,
} from "../member-history.ts"
import { changesOf, isReading, markOf, markOfCall, ofEndDates } from "./invariants.ts"
import type { Call, Run } from "./record.ts"
import type { Outcome } from "./simulate.ts"

interface Member {
  readonly projectId: string
  readonly userId: string
}

/** Members nobody has paused: to a checker, a membership is a date. */
const membersOf = ({ calls }: Run): ReadonlyArray<Member> => {
  const paused = new Set(
    calls.flatMap(({ action, projectId, userId }) =>
      action === "pause" ? [`${projectId} ${userId}`] : [],
    ),
  )
  const members = new Map(
    calls.flatMap(({ projectId, userId }) =>
      userId === undefined ? [] : [[`${projectId} ${userId}`, { projectId, userId }] as const],
    ),
  )
  return [...members].flatMap(([ref, member]) => (paused.has(ref) ? [] : [member]))
}

const ofAll: ReadonlySet<string> = new Set<Call["action"]>(["extendAll", "undo"])

/** Returns what concerns a member. */
const runOf = (run: Run, { projectId, userId }: Member): Run => ({
  ...run,
  calls: run.calls.filter(
    (call) => call.projectId === projectId && (call.userId === userId || ofAll.has(call.action)),
  ),
  remains: {
    ...run.remains,
    events: run.remains.events.filter(
      ({ data, projectId: of, type }) =>
        of === projectId && (data["user_id"] === userId || type.startsWith("memberships.")),
    ),
    members: run.remains.members.filter(
      (one) => one.projectId === projectId && one.userId === userId,
    ),
  },
})

/** Returns what a call asks for. `id` names the bulk extension that it makes. */
const askOf = ({ action, endDate = 0, isNeverShortening, subject = "" }: Call, id: string): Ask => {
  switch (action) {
    case "grant":
      return { do: "set", date: endDate }
    case "extend":
      return { do: "extend", date: endDate }
    case "extendAll":
      return { do: "extendAll", id, date: endDate, neverShorten: isNeverShortening }
    case "undo":
      return { do: "undo", id: subject }
    case "end":
      return { do: "end" }
    default:
      return { do: "read" }
  }
}

const isOpen = ({ code, status }: Call): boolean =>
  status === 0 || status === 429 || status >= 500 || code === "IDEMPOTENCY_IN_PROGRESS"

const unknown: Told = { answer: "unknown" }

/** Returns what a caller learns; `undefined` if it is nothing about a membership. */
const toldBy = (call: Call): Told | undefined => {
  const { action, endDate, status } = call
  if (isReading(call)) return found(status === 200 ? endDate : undefined)
  if (action === "find") return undefined
  if (isOpen(call)) return unknown
  return status === 200 ? { answer: "done" } : undefined
}

/**
 * Returns a call's operations: what its caller learns, and what was done without the caller's knowledge. As far as
 * events tell how often a change was made, nothing else may have been done, so the history is judged more strictly than
 * by what clients know.
 */
const operationsOf = (
  call: Call,
  eventIds: ReadonlyArray<string>,
  isDoubling: boolean,
): ReadonlyArray<MemberOperation> => {
  const { action, client, end, hasKey, start, status } = call
  const operation = (index: number, told: Told): MemberOperation => ({
    client,
    call: start,
    return: told.answer === "unknown" ? null : end,
    ...askOf(call, eventIds[index] ?? `${client} ${start}`),
    ...told,
  })
  const told = toldBy(call)
  const isUnknown = told?.answer === "unknown"
  const known = told === undefined || isUnknown ? [] : [operation(0, told)]
  const isDone = status === 200
  // The network doubles requests, and a refused one keeps no key.
  const isMore = isUnknown || (isDoubling && !(isDone && hasKey))
  if (action === "find" || !isMore) return known
  // No event tells which call has ended a membership.
  if (action === "end") return [...known, operation(0, unknown)]
  const indices = [...eventIds.keys()].slice(isDone ? 1 : 0)
  return [...known, ...indices.map((index) => operation(index, unknown))]
}

const readInTheEnd = ({ calls, remains: { members } }: Run): MemberOperation => {
  const at =
    1 + Math.max(...calls.flatMap(({ end, start }) => [start, ...(end === Infinity ? [] : [end])]))
  return { client: "store", call: at, return: at, do: "read", ...found(members[0]?.endDate) }
}

export const memberHistoriesOf = (
  { run, seed, weather }: Outcome,
  sabotage: string | undefined,
): ReadonlyArray<MemberHistory> =>
  membersOf(run).map((member) => {
    const own = runOf(run, member)
    const made = Map.groupBy(changesOf(own), markOf)
    return {
      run: `simulation ${seed}${sabotage === undefined ? "" : `, ${sabotage}`}`,
      project: member.projectId,
      user: member.userId,
      sound: ofEndDates.every(({ find }) => find(own, weather).length === 0),
      operations: [
        ...own.calls.flatMap((call) => {
          const eventIds = (made.get(markOfCall(call)) ?? []).map(({ id }) => id)
          return operationsOf(call, eventIds, weather.http.doubled > 0)
        }),
        readInTheEnd(own),
      ],
    }
  })
