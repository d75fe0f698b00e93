/** The bundled server with data that operators meet, and a receiver that is not always well. */

import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { createClient } from "@tenure/client"
import { freePort, startReceiver } from "@tenure/testing/conformance"
import { inject } from "vitest"

declare module "vitest" {
  interface ProvidedContext {
    readonly commandFile: string
    readonly serverFile: string
  }
}

/** The tokens of the keys that the server starts with. */
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
      memberships: Array.from({ length: 40 }, (_, index) => ({
        user_id: `swimmer-${index + 1}`,
        end_date: new Date(Date.now() + (index - 8) * day + 3_600_000).toISOString(),
      })),
    },
  ],
  api_keys: [{ token: tokens.admin, role: "admin" }],
}

const start = async (port: number, seedFile: string): Promise<ChildProcess> => {
  const child = spawn(process.execPath, [inject("serverFile")], {
    env: {
      PATH: process.env["PATH"],
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
      PORT: String(port),
      DATABASE_URL: "memory:",
      SEED_FILE: seedFile,
      RATE_LIMIT_PER_KEY: "1000000",
      RATE_LIMIT_BURST: "1000000",
      RATE_LIMIT_PER_IP: "false",
      SUSPENSION: "false",
      WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
      WEBHOOK_RETRY_SCHEDULE: "0.01",
    },
    stdio: ["ignore", "pipe", "inherit"],
  })
  const { stdout } = child
  if (stdout === null) throw new Error("the server has no output")
  for await (const line of createInterface(stdout)) {
    if (line.includes("Tenure listens")) break
  }
  stdout.resume()
  return child
}

const kill = async (child: ChildProcess): Promise<void> => {
  const closed = once(child, "exit")
  child.kill("SIGKILL")
  await closed
}

/** Starts the server. */
export const startServer = async () => {
  const folder = await mkdtemp(join(tmpdir(), "tenure-console-"))
  const seedFile = join(folder, "seed.json")
  await writeFile(seedFile, JSON.stringify(seed))
  const port = await freePort()
  const receiver = await startReceiver((response) => {
    const path = response.req.url ?? ""
    const status = path.includes("broken") ? 500 : path.includes("gone") ? 410 : 204
    response.writeHead(status).end(status === 500 ? "The queue is full." : "")
  })
  let child = await start(port, seedFile)
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    receiver: receiver.url,
    client: createClient({ baseUrl: url, token: tokens.admin }),
    die: () => kill(child),
    rise: async () => {
      child = await start(port, seedFile)
    },
    close: async () => {
      await kill(child)
      receiver.close()
      await rm(folder, { recursive: true })
    },
  }
}

/** A running server. */
export type Server = Awaited<ReturnType<typeof startServer>>

/** Adds to a project what happens in a day: changes, webhooks of which one fails, and events. */
export const addHistory = async ({ client, receiver }: Server): Promise<{ broken: string }> => {
  const shop = { project_id: "shop" }
  const member = { ...shop, user_id: "1055" }
  // More than a page of events, before anybody is told of them.
  for (let count = 0; count < 100; count++) {
    await client.events.publish({ ...shop, type: "door.opened", data: { count } })
  }
  const { data } = await client.webhooks.create({
    ...shop,
    url: `${receiver}/broken`,
    event_types: ["membership.granted", "payment.completed"],
  })
  await client.webhooks.create({ ...shop, url: `${receiver}/billing` })
  await client.memberships.extend({
    ...member,
    extend: "2027-09-01T00:00:00.000Z",
    reason: "Invoice 2026-1107 paid",
  })
  await client.memberships.extendAll({
    ...shop,
    extend: "2027-06-30T00:00:00.000Z",
    reason: "Compensation for the outage of 3 May",
  })
  await client.memberships.grant({ ...member, end_date: "2028-01-31T00:00:00.000Z" })
  for (const amount of [1200, 4900, 300]) {
    await client.events.publish({ ...shop, type: "payment.completed", data: { amount } })
  }
  await client.apiKeys.issue({ projects: ["shop"], role: "client", name: "checkout" })
  const { data: old } = await client.apiKeys.issue({
    projects: "all",
    role: "client",
    name: "old reporting",
    expires_at: "2099-01-01T00:00:00.000Z",
  })
  await client.apiKeys.revoke({ key_id: old.id })
  return { broken: data.id }
}

/** Adds to a project five webhooks of which three fail: with 500, with 410, and without an answer. */
export const addTroubles = async ({ client, receiver }: Server) => {
  const pool = { project_id: "pool" }
  const nobody = `http://127.0.0.1:${await freePort()}/door`
  const urls = [
    `${receiver}/billing`,
    `${receiver}/broken/crm`,
    `${receiver}/mail`,
    `${receiver}/gone/legacy`,
    nobody,
  ]
  const ids: Array<string> = []
  for (const url of urls) ids.push((await client.webhooks.create({ ...pool, url })).data.id)
  for (let index = 1; index <= 6; index++) {
    await client.memberships.extend(
      { ...pool, user_id: `swimmer-${index + 20}`, extend_by: "P30D" },
      { idempotencyKey: `troubles-${index}` },
    )
  }
  return ids
}

/** Starts a time machine with members that end so many days later. */
export const startMachine = async (days: ReadonlyArray<number>) => {
  const folder = await mkdtemp(join(tmpdir(), "tenure-machine-"))
  const file = join(folder, "members.ndjson")
  const began = Date.now()
  const members = days.map((after, index) =>
    JSON.stringify({
      user_id: `m${index}`,
      end_date: new Date(began + after * day).toISOString(),
    }),
  )
  await writeFile(file, members.join("\n"))
  const child = spawn(
    process.execPath,
    [inject("commandFile"), "dev", "--from", file, "--port", "0"],
    {
      env: { PATH: process.env["PATH"], HOME: folder, XDG_CONFIG_HOME: folder },
      stdio: ["ignore", "pipe", "inherit"],
    },
  )
  let printed = ""
  for await (const line of createInterface(child.stdout)) {
    printed += `${line}\n`
    if (line.includes("What happens, and the requests")) break
  }
  child.stdout.resume()
  return {
    start: began,
    project: "demo",
    url: /The API +(\S+)/.exec(printed)?.[1] ?? "",
    token: /The token +(\S+)/.exec(printed)?.[1] ?? "",
    close: async () => {
      await kill(child)
      await rm(folder, { recursive: true })
    },
  }
}
