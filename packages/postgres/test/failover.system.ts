/** A primary dies, and its standby takes its place. */

import { readFile } from "node:fs/promises"
import { type Socket, connect, createServer } from "node:net"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { createTenure } from "@tenure/core"
import { startReceiver } from "@tenure/testing/conformance"
import { startPostgres } from "@tenure/testing/postgres-server"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { expect, it, onTestFinished } from "vitest"
import { postgres } from "../src/index.ts"
import { follow } from "./standby.ts"

const projectId = "p1"
const userId = "1001"

/** Runs a statement on a server. */
const query = (url: string, statement: string): Promise<ReadonlyArray<object>> =>
  PgClient.PgClient.use((sql) => sql.unsafe<object>(statement)).pipe(
    Effect.provide(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 })),
    Effect.runPromise,
  )

/** Starts what leads clients to the primary, such as HAProxy: for each connection, the current one. */
const startSwitch = async (first: string) => {
  let target = new URL(first)
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket
        .on("error", () => {})
        .on("close", () => {
          near.destroy()
          far.destroy()
        })
    }
    near.pipe(far).pipe(near)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const url = new URL(first)
  url.port = String(typeof address === "object" ? address?.port : "")
  return {
    url: url.href,
    turnTo: (other: string) => {
      target = new URL(other)
    },
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Starts a server and its synchronous standby, and what leads clients to the first of them. */
const startPair = async () => {
  const primary = await startPostgres({ settings: { fsync: "off" } })
  onTestFinished(primary.stop)
  const standby = await follow(primary)
  onTestFinished(standby.stop)
  // From now on, what the primary acknowledges, the standby has.
  await query(primary.url, "ALTER SYSTEM SET synchronous_standby_names = '*'")
  await query(primary.url, "SELECT pg_reload_conf()")
  const followers = "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'"
  await expect.poll(() => query(primary.url, followers)).toHaveLength(1)
  const { close, turnTo, url } = await startSwitch(primary.url)
  onTestFinished(close)
  return { primary, standby, turnTo, url }
}

/** The end dates that a server has recorded. */
const recordedOn = async (url: string): Promise<ReadonlySet<string>> => {
  const rows = await query(url, "SELECT to_date FROM tenure.audit WHERE action = 'extended'")
  return new Set(rows.map((row) => Object(row).to_date.toISOString()))
}

it("a standby takes over: no acknowledged change is lost, and each event is delivered", async () => {
  const { primary, standby, turnTo, url } = await startPair()
  const receiver = await startReceiver()
  const tenure = await createTenure({
    stores: postgres({ url }),
    webhooks: { allowedNetworks: ["127.0.0.0/8"] },
  })
  onTestFinished(async () => {
    await tenure.close()
    receiver.close()
  })
  await tenure.memberships.createProject(projectId)
  await tenure.memberships.grant({ projectId, userId, endDate: "2098-01-01T00:00:00.000Z" })
  await tenure.webhooks.create({ projectId, url: receiver.url })

  const acknowledged: Array<string> = []
  let time = Date.parse("2099-01-01T00:00:00.000Z")
  const extend = async () => {
    const endDate = new Date(time++).toISOString()
    await tenure.memberships.extend({ projectId, userId, endDate })
    acknowledged.push(endDate)
  }
  const isServed = () =>
    extend().then(
      () => true,
      () => false,
    )
  for (let count = 0; count < 50; count++) await extend()
  const first = await tenure.events.read({ projectId, after: "start", limit: 20 })

  const [pid] = (await readFile(join(primary.dataDirectory, "postmaster.pid"), "utf8")).split("\n")
  process.kill(Number(pid), "SIGQUIT")
  await expect.poll(isServed).toBe(false)
  expect(await tenure.isReady()).toBe(false)
  turnTo(standby.url)
  await standby.promote()
  await expect.poll(isServed).toBe(true)
  await expect.poll(() => tenure.isReady()).toBe(true)
  for (let count = 0; count < 50; count++) await extend()

  // The first of them were stored before anybody has read the feed.
  const read = [...first.events]
  for (let page = first; page.events.length > 0; read.push(...page.events))
    page = await tenure.events.read({ projectId, after: page.cursor, limit: 20 })
  const extended = read.flatMap(({ body, type }) =>
    type === "membership.extended" ? [String(Object(JSON.parse(body)).data.new_end_date)] : [],
  )
  expect(new Set(extended).size).toBe(extended.length)
  expect(acknowledged.filter((endDate) => !extended.includes(endDate))).toEqual([])
  expect(await query(standby.url, "SELECT DISTINCT epoch FROM tenure.events ORDER BY 1")).toEqual([
    { epoch: 1 },
    { epoch: 2 },
  ])

  const recorded = await recordedOn(standby.url)
  expect(acknowledged.filter((endDate) => !recorded.has(endDate))).toEqual([])
  const delivered = () =>
    new Set(receiver.received.map(({ body }) => Object(JSON.parse(body)).data.new_end_date))
  await expect.poll(() => acknowledged.filter((endDate) => !delivered().has(endDate))).toEqual([])
})

it("leaves a server that turned read-only, and makes the refused changes at the one in its place", async () => {
  const { primary, standby, turnTo, url } = await startPair()
  const tenure = await createTenure({ stores: postgres({ url }) })
  onTestFinished(tenure.close)
  const reader = await createTenure({ stores: postgres({ url }) })
  onTestFinished(reader.close)
  await tenure.memberships.createProject(projectId)
  const dates = Array.from({ length: 20 }, (_, index) => `2099-01-${index + 10}T00:00:00.000Z`)
  const extendAll = () =>
    Promise.all(
      dates.map((endDate, index) =>
        tenure.memberships.extend({ projectId, userId: `${index}`, endDate }),
      ),
    )
  for (const [index] of dates.entries()) {
    await tenure.memberships.grant({
      projectId,
      userId: `${index}`,
      endDate: "2098-01-01T00:00:00.000Z",
    })
  }
  await expect.poll(reader.isReady).toBe(true)

  await standby.promote()
  turnTo(standby.url)
  // Its connections stay, as those to a server that somebody has demoted without a restart.
  await query(primary.url, "ALTER SYSTEM SET default_transaction_read_only = on")
  await query(primary.url, "SELECT pg_reload_conf()")
  await expect
    .poll(() => query(primary.url, "SHOW transaction_read_only"))
    .toEqual([{ transaction_read_only: "on" }])

  await extendAll()
  expect(await recordedOn(standby.url)).toEqual(new Set(dates))
  // A process without changes notices, too: otherwise no balancer would ever send it one again.
  await expect.poll(reader.isReady).toBe(true)
})
