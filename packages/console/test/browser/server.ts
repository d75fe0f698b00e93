/** The bundled server with data that operators meet, and a receiver that is not always well. */

import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { createInterface } from "node:readline"
import type { Readable } from "node:stream"
import { createClient } from "@tenure/client"
import { type CreateTenureOptions, type Identity, createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { serve, toNodeHandler } from "@tenure/node-http"
import { freePort, startReceiver } from "@tenure/testing/conformance"
import { inject, onTestFinished } from "vitest"
import { tenureConsole } from "../../src/index.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly commandFile: string
    readonly serverFile: string
  }
}

/** The tokens for the keys that the server starts with. */
export const tokens = { admin: "the-admin", operator: "the-operator", client: "the-client" }

const day = 86_400_000

const seed = {
  projects: [
    {
      id: "shop",
      memberships: Array.from({ length: 130 }, (_, index) => ({
        user_id: String(1001 + index),
        end_date: new Date(Date.now() + (3 * index - 40) * day).toISOString(),
      })),
      api_keys: [tokens.client, { token: tokens.operator, role: "operator" }],
    },
    { id: "gym" },
    { id: "empty" },
    {
      id: "pool",
      grace: "P3D",
      memberships: Array.from({ length: 40 }, (_, index) => ({
        user_id: `swimmer-${index + 1}`,
        end_date: new Date(Date.now() + (index - 8) * day + 3_600_000).toISOString(),
      })),
    },
  ],
  api_keys: [{ token: tokens.admin, role: "admin" }],
}

/** Starts a program, and waits until it prints a text. Returns what it has printed. */
const start = async (words: ReadonlyArray<string>, environment: object, last: string) => {
  const { NODE_COMPILE_CACHE, PATH } = process.env
  const child = spawn(process.execPath, words, {
    env: { PATH, NODE_COMPILE_CACHE, ...environment },
    stdio: ["ignore", "pipe", "inherit"],
  })
  const stdout: Readable = child.stdout
  let printed = ""
  for await (const line of createInterface(stdout)) {
    printed += `${line}\n`
    if (line.includes(last)) break
  }
  stdout.resume()
  const kill = async () => {
    const closed = once(child, "exit")
    child.kill("SIGKILL")
    await closed
  }
  return { printed, kill }
}

/** Writes a file, which is removed after all tests. */
const write = async (text: string): Promise<string> => {
  const file = join(await mkdtemp(join(tmpdir(), "tenure-console-")), "file")
  await writeFile(file, text)
  return file
}

/** Starts the server. */
export const startServer = async () => {
  const port = await freePort()
  const receiver = await startReceiver((response) => {
    const path = response.req.url ?? ""
    const status = path.includes("broken") ? 500 : path.includes("gone") ? 410 : 204
    response.writeHead(status).end(status === 500 ? "The queue is full." : "")
  })
  const environment = {
    PORT: String(port),
    DATABASE_URL: "memory:",
    SEED_FILE: await write(JSON.stringify(seed)),
    RATE_LIMIT_PER_KEY: "1000000",
    RATE_LIMIT_BURST: "1000000",
    RATE_LIMIT_PER_IP: "false",
    SUSPENSION: "false",
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
    WEBHOOK_RETRY_SCHEDULE: "0.01",
  }
  const rise = () => start([inject("serverFile")], environment, "Tenure listens")
  let running = await rise()
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    receiver: receiver.url,
    client: createClient({ baseUrl: url, token: tokens.admin }),
    die: () => running.kill(),
    rise: async () => {
      running = await rise()
    },
    close: async () => {
      await running.kill()
      receiver.close()
    },
  }
}

/** A running server. */
export type Server = Awaited<ReturnType<typeof startServer>>

/** Adds a day's changes, events and webhooks to a project. Returns the failing webhook's id. */
export const addHistory = async ({ client, receiver }: Server): Promise<string> => {
  const { apiKeys, events, memberships, projects, webhooks } = client
  const shop = { project_id: "shop" }
  const member = { ...shop, user_id: "1055" }
  await projects.update({ ...shop, time_zone: "Europe/Berlin" })
  // More than a page with events, before anybody is told about them.
  for (let count = 0; count < 100; count++)
    await events.publish({ ...shop, type: "door.opened", data: { count } })
  const event_types = ["membership.granted", "payment.completed"]
  const { data } = await webhooks.create({ ...shop, url: `${receiver}/broken`, event_types })
  await webhooks.create({ ...shop, url: `${receiver}/billing` })
  const paid = { extend: "2027-09-01T00:00:00.000Z", reason: "Invoice 2026-1107 paid" }
  await memberships.extend({ ...member, ...paid })
  const reason = "Compensation for the outage of 3 May"
  await memberships.extendAll({ ...shop, extend: "2027-06-30T00:00:00.000Z", reason })
  await memberships.grant({ ...member, through: "2028-01-31" })
  for (const amount of [1200, 4900, 300])
    await events.publish({ ...shop, type: "payment.completed", data: { amount } })
  await apiKeys.issue({ projects: ["shop"], role: "client", name: "checkout" })
  const old = { name: "old reporting", expires_at: "2099-01-01T00:00:00.000Z" }
  const { data: key } = await apiKeys.issue({ projects: "all", role: "client", ...old })
  await apiKeys.revoke({ key_id: key.id })
  return data.id
}

/** Adds five webhooks and two pauses to a project. Three webhooks fail: with 500, with 410, and without an answer. */
export const addTroubles = async ({ client, receiver }: Server): Promise<ReadonlyArray<string>> => {
  const pool = { project_id: "pool" }
  const paths = ["billing", "broken/crm", "mail", "gone/legacy"]
  const nobody = `http://127.0.0.1:${await freePort()}/door`
  const ids: Array<string> = []
  for (const url of [...paths.map((path) => `${receiver}/${path}`), nobody])
    ids.push((await client.webhooks.create({ ...pool, url })).data.id)
  for (let index = 21; index <= 26; index++)
    await client.memberships.extend({ ...pool, user_id: `swimmer-${index}`, extend_by: "P30D" })
  const until = new Date(Date.now() + 60 * day).toISOString()
  const reason = "An operation"
  await client.memberships.pause({ ...pool, user_id: "swimmer-30", until, reason })
  await client.memberships.pause({ ...pool, user_id: "swimmer-31", reason })
  return ids
}

/** Starts a time machine until the test ends, with members that end so many days later. */
export const startMachine = async (days: ReadonlyArray<number>) => {
  const began = Date.now()
  const members = days.map((after, index) =>
    JSON.stringify({ user_id: `m${index}`, end_date: new Date(began + after * day).toISOString() }),
  )
  const file = await write(members.join("\n"))
  const { kill, printed } = await start(
    [inject("commandFile"), "dev", "--from", file, "--port", "0"],
    { XDG_CONFIG_HOME: dirname(file) },
    "What happens, and the requests",
  )
  onTestFinished(kill)
  const url = /The API +(\S+)/.exec(printed)?.[1] ?? ""
  const token = /The token +(\S+)/.exec(printed)?.[1] ?? ""
  return {
    /** How the console is opened there. */
    opening: { url, token, expected: /\/dev\/clock$/ },
    place: "#/projects/demo",
    client: createClient({ baseUrl: url, token }),
    after: (count: number) => began + count * day,
  }
}

/** Serves a host's console until the test ends. Everybody is an admin, named in a header field. */
export const serveConsole = async (
  { rateLimits, ...options }: Partial<CreateTenureOptions> = {},
  who: Partial<Identity> = {},
) => {
  const tenure = await createTenure({
    stores: memory(),
    // The page in a test asks faster than people click.
    rateLimits: { burst: { limit: 1000, window: "1 second" }, ...rateLimits },
    ...options,
  })
  onTestFinished(tenure.close)
  const console = tenureConsole(tenure, {
    authorize: ({ headers }) => ({
      keyId: String(headers["x-who"] ?? "Ada"),
      projects: "all",
      role: "admin",
      ...who,
    }),
  })
  const { close, url } = await serve(tenure, { listener: toNodeHandler(console) })
  onTestFinished(close)
  /** Sends requests by somebody who is busy. */
  const ask = async (count: number) => {
    const headers = { "x-who": "busy", "sec-fetch-site": "same-origin" }
    for (let number = 0; number < count; number++)
      await (await fetch(`${url}/console/api/v2/identity`, { headers })).text()
  }
  return { tenure, opening: { url, token: "" }, ask }
}
