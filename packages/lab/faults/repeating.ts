/**
 * Kills servers while they answer requests with an idempotency key, repeats the requests at two other
 * servers at the same time, and counts what was changed: `npm run repeating -- --seeds 1-200`.
 */

import { dirname } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { parseArgs } from "node:util"
import { startPostgres } from "@tenure/testing/postgres-server"
import pg from "pg"
import { parseSeeds } from "../arguments.ts"
import { random } from "./random.ts"
import { freePort } from "./world/ports.ts"
import { bundled, writeSeed } from "./world/program.ts"
import { type Server, makeServer, unlimited } from "./world/server.ts"

const { values } = parseArgs({ options: { seeds: { type: "string", default: "1-5" } } })
const seeds = parseSeeds(values.seeds)

// The longest time between a request and the end of its server, in milliseconds.
const mostMillis = 40

const token = "repeating"
const webhooks = "/v2/projects/p1/integrations/webhooks"
const projectId = "p1"

const postgres = await startPostgres()
const program = await bundled()
const memberships = [{ user_id: "1001", end_date: "2030-01-01T00:00:00.000Z" }]
const seedFile = await writeSeed(program, {
  projects: [{ id: projectId, memberships, api_keys: [token] }],
})
const database = new pg.Pool({ connectionString: postgres.url, max: 2 })

const started = async (): Promise<Server> => {
  const server = makeServer("server", program, await freePort(), {
    DATABASE_URL: postgres.url,
    SEED_FILE: seedFile,
    SUSPENSION: "false",
    NODE_COMPILE_CACHE: dirname(program),
    ...unlimited,
  })
  await server.start()
  return server
}

const send = (server: Server, { body, key, method, path }: Request): Promise<Response> =>
  fetch(server.url + path, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "idempotency-key": key,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })

interface Request {
  readonly method: string
  readonly path: string
  readonly key: string
  readonly body?: object
}

/** What the tables have: changes, events, deliveries, webhooks. That a secret was shown again is no change. */
const counted = async (): Promise<ReadonlyArray<number>> => {
  const { rows } = await database.query<Record<string, string>>(`
    SELECT (SELECT count(*) FROM tenure.audit WHERE action <> 'secret_shown') AS changes,
           (SELECT count(*) FROM tenure.events) AS events,
           (SELECT count(*) FROM tenure.deliveries)
             + (SELECT count(*) FROM tenure.finished_deliveries)
             + (SELECT count(event_id) FROM tenure.delivered_runs, unnest(event_ids) event_id) AS deliveries,
           (SELECT count(*) FROM tenure.webhooks) AS webhooks
  `)
  return Object.values(rows[0] ?? {}).map(Number)
}

/** Creates a webhook that nobody answers, and returns its path. */
const newWebhook = async (server: Server): Promise<string> => {
  const body = { url: "https://receiver.example/" }
  const response = await send(server, {
    method: "POST",
    path: webhooks,
    key: crypto.randomUUID(),
    body,
  })
  return `${webhooks}/${/"id":"([^"]+)"/.exec(await response.text())?.[1] ?? ""}`
}

const others = [await started(), await started()] as const
await newWebhook(others[0])
// Servers are started before they are needed.
const ready = [started(), started()]
const figures = { requests: 0, answered: 0, madeBefore: 0, failures: 0 }

for (const seed of seeds) {
  const choose = random(seed)
  ready.push(started())
  const victim = await ready.shift()
  if (victim === undefined) break
  const kind = choose.pick(["extend", "extendAll", "create", "delete"] as const)
  const extend = Date.UTC(2040, 0, 1) + seed
  const removed = kind === "delete" ? await newWebhook(others[0]) : ""
  const key = `seed-${seed}`
  const request: Request = {
    extend: {
      method: "PATCH",
      path: "/v2/projects/p1/memberships/1001/extend",
      body: { extend },
      key,
    },
    extendAll: {
      method: "PATCH",
      path: "/v2/projects/p1/memberships/extend",
      body: { extend },
      key,
    },
    create: {
      method: "POST",
      path: webhooks,
      body: { url: `https://receiver.example/${seed}` },
      key,
    },
    delete: { method: "DELETE", path: removed, key },
  }[kind]
  // The first request of a process is slow, and most kills would come before its statement.
  await Promise.all(
    Array.from({ length: 3 }, () => send(victim, { ...request, path: "/v2/warm-up" })),
  )
  const before = await counted()
  const live = Number((await database.query("SELECT count(*) FROM tenure.webhooks")).rows[0].count)
  const answer = send(victim, request).then(
    ({ status }) => status,
    () => undefined,
  )
  await sleep(choose.below(mostMillis + 1))
  await victim.kill()
  const answered = await answer
  const made = (await counted())[0] !== before[0]
  const responses = await Promise.all(others.map((server) => send(server, request)))
  const bodies = await Promise.all(responses.map((response) => response.json()))
  const after = await counted()
  const changed = after.map((count, index) => count - (before[index] ?? 0))
  const isEvent = kind === "extend" || kind === "extendAll"
  const expected = [
    1,
    isEvent ? 1 : 0,
    isEvent ? live : 0,
    kind === "create" ? 1 : kind === "delete" ? -1 : 0,
  ]
  const data = bodies.map((body) => JSON.stringify(Object(body).data))
  // A project may have 50 webhooks.
  if (kind === "create") {
    const id = /"id":"([^"]+)"/.exec(data[0] ?? "")?.[1] ?? ""
    await send(others[0], { method: "DELETE", path: `${webhooks}/${id}`, key: `${key}-end` })
  }
  const isRight =
    responses.every(({ status }) => status === 200) &&
    data[0] === data[1] &&
    JSON.stringify(changed) === JSON.stringify(expected)
  figures.requests++
  if (figures.requests % 20 === 0) console.log(figures)
  if (answered !== undefined) figures.answered++
  if (answered === undefined && made) figures.madeBefore++
  if (!isRight) {
    figures.failures++
    const statuses = responses.map(({ status }) => status)
    console.log(`seed ${seed}, ${kind}:`, { answered, made, statuses, changed, expected, data })
  }
}

console.log(figures)
for (const server of await Promise.all(ready)) await server.kill()
await Promise.all(others.map((server) => server.kill()))
await database.end()
await postgres.stop()
process.exitCode = figures.failures === 0 ? 0 : 1
