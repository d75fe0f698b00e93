/** Returns the history of each membership in a run, for a linearizability checker. */

import {
  type Ask,
  type MemberHistory,
  type MemberOperation,
  type Told,
  found,
} from "../member-history.ts"
import { endDates } from "./checks/end-dates.ts"
import { isAnnouncement, isOfAll, join, memberOf, requestsOf } from "./checks/histories.ts"
import { type AuditRow, type Operation, type Run, beginOf } from "./history.ts"

interface Member {
  readonly projectId: string
  readonly userId: string
}

/** Returns the part of an operation that concerns a member. */
const operationOf = (operation: Operation, { userId }: Member): ReadonlyArray<Operation> => {
  const { action } = operation
  if (operation.userId === userId || action === "extendAll" || action === "undo") return [operation]
  const members = operation.members?.filter((one) => one.userId === userId) ?? []
  return members.length > 0 ? [{ ...operation, members }] : []
}

/** Returns a run for each member: what concerns it, in operations and in the database. */
const runsOf = (run: Run): ReadonlyArray<readonly [Member, Run]> => {
  const { audit, memberships } = run.state
  const operations = Map.groupBy(run.operations, ({ projectId }) => projectId)
  const events = Map.groupBy(run.state.events, ({ projectId }) => projectId)
  const users = join(audit, requestsOf(run)).map(({ row }) => row)
  const members = [...memberships, ...users].flatMap(({ projectId, userId }) =>
    userId === undefined ? [] : [[memberOf({ projectId, userId }), { projectId, userId }] as const],
  )
  return [...new Map(members)].map(([name, member]) => {
    const { projectId } = member
    const isOwn = (row: AuditRow, place: number): boolean =>
      row.projectId === projectId && (isOfAll(row) || users[place]?.userId === member.userId)
    const state = {
      ...run.state,
      memberships: memberships.filter((one) => memberOf(one) === name),
      events: events.get(projectId) ?? [],
      audit: audit.filter(isOwn),
    }
    const own = (operations.get(projectId) ?? []).flatMap((one) => operationOf(one, member))
    return [member, { ...run, operations: own, state }]
  })
}

/** Returns what an operation asks for; `undefined` if it changes no end date. */
const askOf = (operation: Operation): Ask | undefined => {
  const { action, endDate = 0, expectedEndDate, extendBy, isNeverShortening } = operation
  const { members = [], requestId, start, subject = "" } = operation
  switch (action) {
    case "grant":
      return { do: "set", date: endDate }
    case "import":
      return { do: "set", date: members[0]?.endDate ?? 0 }
    case "extend":
      return { do: "extend", date: endDate, expects: expectedEndDate }
    case "end":
    case "erase":
      return { do: action }
    case "extendAll": {
      const how = extendBy === undefined ? { date: endDate } : { by: extendBy }
      return {
        do: "extendAll",
        id: requestId ?? `${start}`,
        ...how,
        neverShorten: isNeverShortening,
      }
    }
    case "undo":
      return { do: "undo", id: subject }
    default:
      return undefined
  }
}

/** Returns what a client learns from a change. Without an answer, the audit trail tells whether it was made. */
const toldBy = (operation: Operation, isMade: boolean): Told | undefined => {
  const { action, conflictingDate, status } = operation
  if (status === 200) return { answer: "done" }
  if (conflictingDate !== undefined) return found(conflictingDate)
  if (status === 404 && (action === "extend" || action === "end")) return { answer: "none" }
  return isMade ? { answer: "unknown" } : undefined
}

const clientOf = ({ key, process }: Operation): string => key ?? process

const readsOf = (operation: Operation): ReadonlyArray<MemberOperation> => {
  const { action, end, endDate, members = [], start, status } = operation
  const read = (told: Told): MemberOperation => ({
    client: clientOf(operation),
    call: start,
    return: end,
    do: "read",
    ...told,
  })
  if (action === "find" && status === 200) return [read(found(endDate))]
  if (action === "find" && status === 404) return [read(found(undefined))]
  return action === "list" && status === 200 ? members.map((one) => read(found(one.endDate))) : []
}

/** Returns the changes that were made before the run. */
const madeBefore = (row: AuditRow, call: number): ReadonlyArray<MemberOperation> =>
  row.to === undefined || isAnnouncement(row) || isOfAll(row)
    ? []
    : [{ client: "before", call, return: call, do: "set", date: row.to, answer: "done" }]

const changesOf = (run: Run): ReadonlyArray<MemberOperation> => {
  const requests = requestsOf(run)
  const joined = join(run.state.audit, requests)
  const made = new Set(joined.map(({ operation }) => operation))
  const before = beginOf(run) - 1
  return [
    ...joined.flatMap(({ operation, row }) =>
      operation === undefined ? madeBefore(row, before) : [],
    ),
    ...requests.flatMap((operation): ReadonlyArray<MemberOperation> => {
      const ask = askOf(operation)
      const told = toldBy(operation, made.has(operation))
      if (ask === undefined || told === undefined) return []
      const { end, start: call } = operation
      const at = { call, return: told.answer === "unknown" ? null : end }
      return [{ client: clientOf(operation), ...at, ...ask, ...told }]
    }),
  ]
}

/** Returns each membership's history. */
export const memberHistoriesOf = (run: Run, kind: string): ReadonlyArray<MemberHistory> =>
  runsOf(run).map(([member, own]) => {
    const at = run.endedAt + 1
    const last = found(own.state.memberships[0]?.endDate)
    return {
      run: kind,
      project: member.projectId,
      user: member.userId,
      sound: endDates.find(own).length === 0,
      operations: [
        ...changesOf(own),
        ...own.operations.flatMap(readsOf),
        { client: "store", call: at, return: at, do: "read", ...last },
      ],
    }
  })
