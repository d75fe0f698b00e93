/** A primary dies, and its standby takes its place. */

import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { createTenure } from "@tenure/core"
import { startReceiver } from "@tenure/testing/conformance"
import { startProxy } from "@tenure/testing/internal"
import { startPostgres } from "@tenure/testing/postgres-server"
import { expect, it, onTestFinished } from "vitest"
import { postgres } from "../src/index.ts"
import { follow, queryAt } from "./servers.ts"

const projectId = "p1"
const userId = "1001"

/** Starts a server, its synchronous standby, and a proxy that leads clients to the first, as HAProxy would. */
const startPair = async () => {
  const primary = await startPostgres({ settings: { fsync: "off" } })
  onTestFinished(primary.stop)
  const standby = await follow(primary)
  onTestFinished(standby.stop)
  // From now on, what the primary acknowledges, the standby has.
  await queryAt(
    primary.url,
    "ALTER SYSTEM SET synchronous_standby_names = '*'",
    "SELECT pg_reload_conf()",
  )
  const followers = "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'"
  await expect.poll(() => queryAt(primary.url, followers)).toHaveLength(1)
  const { stop, turnTo, url } = await startProxy(primary.url)
  onTestFinished(stop)
  return { primary, standby, turnTo, url }
}

const startTenure = async (url: string) => {
  const webhooks = { allowedNetworks: ["127.0.0.0/8"] }
  const tenure = await createTenure({ stores: postgres({ url }), webhooks })
  onTestFinished(tenure.close)
  return tenure
}

/** The end dates that a server has recorded. */
const recordedOn = async (url: string): Promise<ReadonlySet<string>> => {
  const extended = "SELECT to_date FROM tenure.audit WHERE action = 'extended'"
  const rows = await queryAt<{ readonly to_date: Date }>(url, extended)
  return new Set(rows.map(({ to_date }) => to_date.toISOString()))
}

it("a standby takes over: no acknowledged change is lost, and each event is delivered", async () => {
  const { primary, standby, turnTo, url } = await startPair()
  const receiver = await startReceiver()
  onTestFinished(receiver.close)
  const tenure = await startTenure(url)
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

  // The first page was stored before anybody has read the feed.
  const read = [...first.events]
  for (let page = first; page.events.length > 0; read.push(...page.events))
    page = await tenure.events.read({ projectId, after: page.cursor, limit: 20 })
  const extended = read.flatMap(({ body, type }) =>
    type === "membership.extended" ? [String(Object(JSON.parse(body)).data.new_end_date)] : [],
  )
  expect(new Set(extended).size).toBe(extended.length)
  expect(acknowledged.filter((endDate) => !extended.includes(endDate))).toEqual([])
  expect(await queryAt(standby.url, "SELECT DISTINCT epoch FROM tenure.events ORDER BY 1")).toEqual(
    [{ epoch: 1 }, { epoch: 2 }],
  )

  const recorded = await recordedOn(standby.url)
  expect(acknowledged.filter((endDate) => !recorded.has(endDate))).toEqual([])
  const delivered = () =>
    new Set(receiver.received.map(({ body }) => Object(JSON.parse(body)).data.new_end_date))
  await expect.poll(() => acknowledged.filter((endDate) => !delivered().has(endDate))).toEqual([])
})

it("leaves a server that turned read-only, and makes the refused changes at the one in its place", async () => {
  const { primary, standby, turnTo, url } = await startPair()
  const [tenure, reader] = [await startTenure(url), await startTenure(url)]
  await tenure.memberships.createProject(projectId)
  const dates = Array.from({ length: 20 }, (_, index) => `2099-01-${index + 10}T00:00:00.000Z`)
  const members = dates.map((endDate, index) => ({ projectId, userId: `${index}`, endDate }))
  for (const member of members)
    await tenure.memberships.grant({ ...member, endDate: "2098-01-01T00:00:00.000Z" })
  await expect.poll(reader.isReady).toBe(true)

  await standby.promote()
  turnTo(standby.url)
  // Its connections stay, as those to a server that somebody has demoted without a restart.
  await queryAt(
    primary.url,
    "ALTER SYSTEM SET default_transaction_read_only = on",
    "SELECT pg_reload_conf()",
  )
  await expect
    .poll(() => queryAt(primary.url, "SHOW transaction_read_only"))
    .toEqual([{ transaction_read_only: "on" }])

  await Promise.all(members.map((member) => tenure.memberships.extend(member)))
  expect(await recordedOn(standby.url)).toEqual(new Set(dates))
  // A process without changes notices, too: otherwise no balancer would ever send it one again.
  await expect.poll(reader.isReady).toBe(true)
})
