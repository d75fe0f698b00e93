/**
 * What a team would write by itself, in memory. It does as much as Tenure as far as that goes without writing Tenure
 * again: one limit for each key, not three in one step, tokens in the clear, no deliveries.
 */

import { randomUUID } from "node:crypto"
import type { OwnExtension, OwnKey } from "../alternatives/own-table.ts"
import { endDate, memberCount, projectId, tokens } from "./workload.ts"

const kept = 10_000

/** Keeps the last few thousand items. */
const makeRing = () => {
  const items: Array<object> = []
  let next = 0
  return (item: object): void => {
    items[next] = item
    next = (next + 1) % kept
  }
}

const keys = new Map<string, OwnKey>(
  tokens.map((token) => [token, { id: randomUUID(), projects: [projectId] }]),
)
const members = new Map(
  Array.from({ length: memberCount }, (_, index) => [
    `${projectId}/${index + 1}`,
    Date.parse(endDate),
  ]),
)
const audit = makeRing()
const publish = makeRing()

/** Finds a key by its token. */
export const authenticate = (token: string): OwnKey | undefined => keys.get(token)

/** Extends a membership. Returns whether it exists. */
export const extend = ({ endDate: to, keyId, project, requestId, user }: OwnExtension): boolean => {
  const id = `${project}/${user}`
  const from = members.get(id)
  if (from === undefined) return false
  members.set(id, to.getTime())
  audit({ requestId, keyId, at: Date.now(), project, user, from, to: to.getTime() })
  const data = {
    project_id: project,
    user_id: user,
    new_end_date: to.toISOString(),
    request_id: requestId,
  }
  // Printed, since the bytes that are signed never change.
  const event = { type: "membership.extended", timestamp: new Date().toISOString(), data }
  publish({ id: randomUUID(), body: JSON.stringify(event) })
  return true
}
