/** Clients with connections that they keep: some send without a pause, others all at once from time to time. */

import * as Http from "node:http"
import { text } from "node:stream/consumers"
import { setTimeout as sleep } from "node:timers/promises"
import type { Random } from "../random.ts"

/** What the clients have seen. */
export interface Seen {
  /** How many requests were sent. */
  requests: number
  /** Each response that was not a 200, or the error in its place, with how often it was seen. */
  readonly failures: Map<string, number>
}

const steadyClients = 8
const burstClients = 40

// A connection that waits longer than this is one that a server may close.
const longestPauseMillis = 9000

/** Sends until the signal. The members 1 to 48 must exist. */
export const sendUntil = async (
  signal: AbortSignal,
  url: string,
  token: string,
  random: Random,
): Promise<Seen> => {
  const seen: Seen = { requests: 0, failures: new Map() }
  const agent = new Http.Agent({ keepAlive: true })
  let time = Date.parse("2099-01-01T00:00:00.000Z")

  const call = (member: number): Promise<string> =>
    new Promise((resolve) => {
      const isChange = random.chance(0.5)
      const path = `/v2/projects/p1/memberships/${member}${isChange ? "/extend" : ""}`
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
      const method = isChange ? "PATCH" : "GET"
      const request = Http.request(new URL(path, url), { agent, method, headers }, (response) => {
        text(response).then(
          (body) => resolve(response.statusCode === 200 ? "200" : `${response.statusCode} ${body}`),
          (fault) => resolve(String(fault)),
        )
      })
      request.on("error", (fault) => resolve(String(fault)))
      request.end(isChange ? JSON.stringify({ extend: new Date(time++).toISOString() }) : "")
    })

  const sendOne = async (member: number): Promise<void> => {
    seen.requests++
    const outcome = await call(member)
    if (outcome !== "200") seen.failures.set(outcome, (seen.failures.get(outcome) ?? 0) + 1)
  }

  const sendSteadily = async (member: number): Promise<void> => {
    while (!signal.aborted) {
      await sendOne(member)
      await sleep(random.between(0, 20))
    }
  }

  /** Uses many connections at the same time, which are idle until the next time. */
  const sendBursts = async (): Promise<void> => {
    while (!signal.aborted) {
      const members = Array.from({ length: burstClients }, (_, index) => steadyClients + 1 + index)
      await Promise.all(members.map(sendOne))
      await sleep(random.next() ** 2 * longestPauseMillis)
    }
  }

  const steady = Array.from({ length: steadyClients }, (_, index) => sendSteadily(1 + index))
  await Promise.all([...steady, sendBursts()])
  agent.destroy()
  return seen
}
