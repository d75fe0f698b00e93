/** With an idempotency key, one request is carried out, once, however often it and others are sent with this key. */

import { groupBy } from "effect/Array"
import type { Check, Operation, Run } from "../history.ts"
import { join, requestsOf } from "./histories.ts"

type Finding = ReturnType<Check["find"]>[number]

const keyOf = ({ idempotencyKey, key }: Operation): string => `${idempotencyKey} of ${key}`

/** Finds keys with which several requests were carried out. */
const findSeveral = (run: Run): ReadonlyArray<Finding> => {
  const requests = requestsOf(run).filter(({ idempotencyKey }) => idempotencyKey !== undefined)
  const done = new Set(join(run.state.audit, requests).map(({ operation }) => operation))
  return Object.entries(groupBy(requests, keyOf)).flatMap(([key, all]) => {
    const made = all.filter((request) => done.has(request))
    const [first, second] = made
    if (first === undefined || second === undefined) return []
    const projects = made.map(({ projectId }) => projectId).join(" and ")
    return [{ text: `with the key ${key}, changes were made in ${projects}`, at: first.end }]
  })
}

/** Finds that several answers say that they are the first to their key. */
const findFirst = ({ operations }: Run): ReadonlyArray<Finding> => {
  const first = operations.filter(
    ({ idempotencyKey, isReplayed, status }) =>
      idempotencyKey !== undefined && status === 200 && isReplayed !== true,
  )
  return Object.entries(groupBy(first, keyOf)).flatMap(([key, all]) =>
    all.length < 2
      ? []
      : [{ text: `${all.length} answers with the key ${key} are no repetition`, at: all[0].end }],
  )
}

/** Checks idempotency keys. */
export const repetitions: Check = {
  name: "one change for one idempotency key",
  find: (run) => [...findSeveral(run), ...findFirst(run)],
}
