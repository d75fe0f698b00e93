/** Who was erased is named neither by the audit trail nor by any event of a change that was made before. */

import { groupBy } from "effect/Array"
import type { Check, Operation, Run } from "../history.ts"
import { join, memberOf, requestsOf } from "./histories.ts"

type Finding = ReturnType<Check["find"]>[number]

const isBefore = (erasure: Operation, change: Operation | undefined): boolean =>
  change !== undefined && change.status === 200 && change.end < erasure.start

const find = (run: Run): ReadonlyArray<Finding> => {
  const requests = requestsOf(run)
  const rows = join(run.state.audit, requests)
  const byId = new Map(
    run.operations.flatMap((operation) =>
      operation.requestId === undefined ? [] : [[operation.requestId, operation] as const],
    ),
  )
  const named = run.state.events.flatMap(({ body, id, projectId }) => {
    const { data } = JSON.parse(body)
    const change = byId.get(data.request_id)
    return typeof data.user_id === "string" ? [{ id, projectId, userId: data.user_id, change }] : []
  })
  const eventsOf = groupBy(named, memberOf)
  const rowsOf = groupBy(
    run.state.audit.map((row, index) => ({ ...row, change: rows[index]?.operation })),
    memberOf,
  )
  return run.operations
    .filter(({ action, status }) => action === "erase" && status === 200)
    .flatMap((erasure) => {
      const who = `${erasure.userId} of ${erasure.projectId}, who was erased`
      return [
        ...(rowsOf[memberOf(erasure)] ?? [])
          .filter(({ change }) => isBefore(erasure, change))
          .map(({ action }) => ({ text: `a row "${action}" names ${who}`, at: erasure.end })),
        ...(eventsOf[memberOf(erasure)] ?? [])
          .filter(({ change }) => isBefore(erasure, change))
          .map(({ id }) => ({ text: `the event ${id} names ${who}`, at: erasure.end })),
      ]
    })
}

/** Checks erasures. */
export const erasures: Check = { name: "who is erased is named nowhere", find }
