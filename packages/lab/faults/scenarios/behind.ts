/**
 * A reader that is far behind: it goes on from the oldest event, by polls and by a stream, while
 * another one reads nothing: `npm run behind -- --events 1000000`. Fails if an event is missing, comes
 * twice, or if the server takes more memory than it may.
 */

import { randomBytes } from "node:crypto"
import { readFile } from "node:fs/promises"
import { connect } from "node:net"
import { parseArgs } from "node:util"
import { parseInteger } from "../../arguments.ts"
import { now } from "../clock.ts"
import { type Follow, listen, polling, readOn } from "../workload/following.ts"
import { makeSend } from "../workload/http.ts"
import { connectTo } from "../world/database.ts"
import type { Scenario } from "../world/stage.ts"

// The most that the server may take beyond what it takes at the beginning.
const maxGrownBytes = 200 * 2 ** 20

// Events in one transaction.
const batch = 5000

const projectId = "p1"

/** Reads so many events from the oldest one on. Returns how many came, and how many came again. */
const readAll = async (url: string, token: string, events: number, follow: Follow) => {
  const seen = new Set<string>()
  let repeated = 0
  let cursor = "start"
  const ending = new AbortController()
  while (seen.size < events) {
    const subscription = { url, projectId, token, cursor, signal: ending.signal }
    const { reached, status } = await readOn(follow, subscription, ({ eventId }) => {
      if (seen.has(eventId)) repeated++
      seen.add(eventId)
      if (seen.size === events) ending.abort()
    }).ended
    if (status !== 200) throw new Error(`a reader was answered ${status}`)
    if (reached === cursor) break
    cursor = reached
  }
  return { count: seen.size, repeated }
}

export const run: Scenario = async (stage, args) => {
  const { values } = parseArgs({
    args,
    options: { events: { type: "string", default: "1000000" } },
  })
  const events = parseInteger("events", values.events, 1)
  const token = randomBytes(18).toString("base64url")
  const postgres = await stage.postgres({ fsync: "off" })
  const seed = { projects: [{ id: projectId, api_keys: [token] }] }
  const server = await stage.server("server", postgres.url, seed)

  const session = stage.own(await connectTo(postgres.url), ({ close }) => close())
  for (let stored = 0; stored < events; stored += batch) {
    await session.query(
      `INSERT INTO tenure.events (id, project_number, type, at, body)
       SELECT (substr(tenure.first_id((now() AT TIME ZONE 'UTC') + n * interval '1 microsecond')::text, 1, 14)
               || '7' || substr(gen_random_uuid()::text, 16))::uuid,
              number, 'payment.completed', now(),
              '{"type":"payment.completed","timestamp":"2099-01-01T00:00:00.000Z","data":{"payment":' || n || '}}'
       FROM tenure.projects, generate_series($1::integer, $2::integer) n WHERE id = $3`,
      [stored + 1, Math.min(stored + batch, events), projectId],
    )
  }

  /** The most memory that the server has taken so far. */
  const peak = async (): Promise<number> => {
    const status = await readFile(`/proc/${server.processId()}/status`, "utf8")
    return 1024 * Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1] ?? 0)
  }

  const before = await peak()
  // What it is sent has to wait.
  const { hostname, port } = new URL(server.url)
  const idle = stage.own(connect({ host: hostname, port: Number(port) }), (one) => one.destroy())
  idle.pause()
  idle.write(
    `GET /v2/projects/${projectId}/events?after=start HTTP/1.1\r\nHost: ${hostname}\r\n` +
      `Accept: text/event-stream\r\nAuthorization: Bearer ${token}\r\n\r\n`,
  )
  const { send } = stage.own(makeSend(), ({ close }) => close())
  let isSound = true
  for (const [name, follow] of [
    ["polls", polling(send, 1000, 0)],
    ["a stream", listen],
  ] as const) {
    const begin = now()
    const { count, repeated } = await readAll(server.url, token, events, follow)
    const rate = (1000 * count) / (now() - begin)
    const grown = (await peak()) - before
    isSound &&= count === events && repeated === 0 && grown <= maxGrownBytes
    console.log(
      `by ${name}: ${count} of ${events} events, ${repeated} of them again, ${rate.toFixed(0)} a second; ` +
        `the server took ${(before / 2 ** 20).toFixed(0)} MiB, and up to ${(grown / 2 ** 20).toFixed(0)} MiB more`,
    )
  }
  return isSound
}
