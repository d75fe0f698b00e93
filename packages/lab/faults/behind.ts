/**
 * A reader that is far behind: it goes on from the oldest of many events, by polls and by a stream, while
 * another one reads nothing: `npm run behind -- --events 1000000`. Fails if an event is missing, comes
 * twice, or if the server takes more memory than it may.
 */

import { randomBytes } from "node:crypto"
import { readFile } from "node:fs/promises"
import { connect } from "node:net"
import { parseArgs } from "node:util"
import { startPostgres } from "@tenure/testing/postgres-server"
import pg from "pg"
import { parseInteger } from "../arguments.ts"
import { now } from "./clock.ts"
import { listen } from "./workload/event-stream.ts"
import { idOf } from "./workload/following.ts"
import { makeSend } from "./workload/http.ts"
import { freePort } from "./world/ports.ts"
import { bundled, writeSeed } from "./world/program.ts"
import { makeServer, unlimited } from "./world/server.ts"

const { values } = parseArgs({ options: { events: { type: "string", default: "1000000" } } })
const events = parseInteger("events", values.events, 1)

// The most that the server may take beyond what it takes at the beginning.
const mostGrownBytes = 200 * 2 ** 20

// Events of one transaction.
const batch = 5000

const token = randomBytes(18).toString("base64url")
const path = "/v2/projects/p1/events"

const postgres = await startPostgres({ settings: { fsync: "off" } })
const program = await bundled()
const seedFile = await writeSeed(program, { projects: [{ id: "p1", api_keys: [token] }] })
const server = makeServer("server", program, await freePort(), {
  DATABASE_URL: postgres.url,
  SEED_FILE: seedFile,
  ...unlimited,
})
await server.start()

const database = new pg.Client({ connectionString: postgres.url })
await database.connect()
for (let stored = 0; stored < events; stored += batch) {
  await database.query(
    `INSERT INTO tenure.events (id, project_number, type, at, body)
     SELECT (substr(tenure.first_id((now() AT TIME ZONE 'UTC') + n * interval '1 microsecond')::text, 1, 14)
             || '7' || substr(gen_random_uuid()::text, 16))::uuid,
            number, 'payment.completed', now(),
            '{"type":"payment.completed","timestamp":"2099-01-01T00:00:00.000Z","data":{"payment":' || n || '}}'
     FROM tenure.projects, generate_series($1::integer, $2::integer) n WHERE id = 'p1'`,
    [stored + 1, Math.min(stored + batch, events)],
  )
}

/** The most memory that the server has taken so far. */
const peak = async (): Promise<number> => {
  const status = await readFile(`/proc/${server.processId()}/status`, "utf8")
  return 1024 * Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1] ?? 0)
}

/** Follows and reads nothing, so that what it is sent has to wait. */
const readNothing = () => {
  const { hostname, port } = new URL(server.url)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.pause()
  socket.write(
    `GET ${path}?after=start HTTP/1.1\r\nHost: ${hostname}\r\nAccept: text/event-stream\r\n` +
      `Authorization: Bearer ${token}\r\n\r\n`,
  )
  return socket
}

/** What a reader has got: each event once. */
const counter = () => {
  const seen = new Set<string>()
  let repeated = 0
  return {
    count: () => seen.size,
    repeated: () => repeated,
    take: (id: string): void => {
      if (seen.has(id)) repeated++
      seen.add(id)
    },
  }
}

type Counter = ReturnType<typeof counter>

const poll = async ({ count, take }: Counter): Promise<void> => {
  const { close, send } = makeSend()
  let cursor = "start"
  while (count() < events) {
    const request = { method: "GET", path: `${path}?limit=1000&after=${cursor}`, token }
    const { data, next, status } = await send(server.url, request)
    if (status !== 200 || next === undefined || !Array.isArray(data)) {
      throw new Error(`a poll was answered ${status}`)
    }
    if (data.length === 0) break
    for (const { id } of data) take(String(id))
    cursor = next
  }
  close()
}

const stream = async ({ count, take }: Counter): Promise<void> => {
  const ending = new AbortController()
  const { ended } = listen({
    url: server.url,
    projectId: "p1",
    token,
    cursor: "start",
    signal: ending.signal,
    onMessage: ({ event }) => {
      if (event === undefined) return
      take(idOf(event))
      if (count() === events) ending.abort()
    },
  })
  await ended
}

const before = await peak()
const idle = readNothing()
let failures = 0
for (const [name, read] of [
  ["polls", poll],
  ["a stream", stream],
] as const) {
  const got = counter()
  const begin = now()
  await read(got)
  const rate = (1000 * got.count()) / (now() - begin)
  const grown = (await peak()) - before
  const isRight = got.count() === events && got.repeated() === 0 && grown <= mostGrownBytes
  if (!isRight) failures++
  console.log(
    `by ${name}: ${got.count()} of ${events} events, ${got.repeated()} of them again, ${rate.toFixed(0)} a second; ` +
      `the server took ${(before / 2 ** 20).toFixed(0)} MiB, and up to ${(grown / 2 ** 20).toFixed(0)} MiB more`,
  )
}
idle.destroy()
await database.end()
await server.kill()
await postgres.stop()
process.exitCode = failures === 0 ? 0 : 1
