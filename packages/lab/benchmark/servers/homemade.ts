/**
 * What a team would write by itself on a framework. It does as much as Tenure as far as that goes
 * without writing Tenure again: one limit for each key instead of three in one step, tokens in the
 * clear, no deliveries.
 */

import { randomUUID } from "node:crypto"
import { endDate, memberCount, projectId, tokens } from "./workload.ts"

const kept = 10_000

/** The last few thousand of something. */
const makeRing = <A>() => {
  const items: Array<A> = []
  let next = 0
  return {
    push: (item: A): void => {
      items[next] = item
      next = (next + 1) % kept
    },
  }
}

/** Who a token is. */
interface Key {
  readonly id: string
  readonly projects: ReadonlySet<string>
}

/** A request that was authenticated, and whose body was validated. */
export interface Extension {
  readonly key: Key
  readonly method: string
  readonly path: string
  readonly project: string
  readonly user: string
  readonly extend: number | string
}

const keys = new Map<string, Key>(
  tokens.map((token) => [token, { id: randomUUID(), projects: new Set([projectId]) }]),
)
const members = new Map(
  Array.from({ length: memberCount }, (_, index) => [
    `${projectId}/${index + 1}`,
    Date.parse(endDate),
  ]),
)
const audit = makeRing<object>()
const events = makeRing<object>()

/** The key of an Authorization header. */
export const authenticate = (authorization = ""): Key | undefined =>
  authorization.startsWith("Bearer ") ? keys.get(authorization.slice("Bearer ".length)) : undefined

/** An event as an outbox keeps it: printed, since the bytes that are signed never change. */
const printEvent = (data: object) => ({
  id: randomUUID(),
  body: JSON.stringify({ type: "membership.extended", timestamp: new Date().toISOString(), data }),
})

/** Changes a membership. Returns the envelope, or `undefined` if the membership does not exist. */
export const extend = ({ extend: given, key, method, path, project, user }: Extension) => {
  const requestId = randomUUID()
  const id = `${project}/${user}`
  const from = members.get(id)
  const to = typeof given === "number" ? given : Date.parse(given)
  if (!key.projects.has(project) || from === undefined || to <= Date.now()) return undefined
  members.set(id, to)
  const newEndDate = new Date(to).toISOString()
  audit.push({ requestId, keyId: key.id, at: Date.now(), project, user, from, to })
  events.push(
    printEvent({
      project_id: project,
      user_id: user,
      new_end_date: newEndDate,
      request_id: requestId,
    }),
  )
  return {
    ok: true,
    request_id: requestId,
    method,
    path,
    code: 200,
    total: 1,
    message: "The membership was extended.",
    data: { new_end_date: newEndDate },
  }
}
