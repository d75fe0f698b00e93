/** Cells on two servers, one down. */

import { type Tenure, createTenure } from "@tenure/core"
import { cellNumber } from "@tenure/core/internal"
import { ProjectId } from "@tenure/core/store"
import { serve } from "@tenure/node-http"
import pg from "pg"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { postgres } from "../src/index.ts"
import { ownServer } from "./servers.ts"

const endDate = "2099-01-01T00:00:00.000Z"
const userId = "1001"

const [here, there] = ["p1", "p2"] as const

const [home, other] = [ownServer(), ownServer()]

let tenure: Tenure
const open = async (): Promise<void> => {
  tenure = await createTenure({
    stores: postgres({
      servers: [
        { name: "home", url: home().url },
        { name: "other", url: other().url },
      ],
      cells: 2,
      maxConnections: 4,
    }),
    logger: { info: () => {}, warn: () => {}, error: () => {} },
    metrics: true,
    webhooks: { dispatch: false },
  })
}
afterEach(() => tenure.close())

const extend = (projectId: string) => tenure.memberships.extend({ projectId, userId, endDate })
const unavailable = { _tag: "StoreUnavailable" }

/** A metric's values by a label. */
const valuesOf = async (
  metric: string,
  label: string,
): Promise<Readonly<Record<string, string>>> => {
  const series = RegExp(`^${metric}.*${label}="(\\w+)".* (\\S+)$`, "gm")
  const found = [...(await tenure.metrics()).matchAll(series)]
  return Object.fromEntries(found.map(([, name, value]) => [name, value]))
}
const ofDatabases = (metric: string) => valuesOf(metric, "tenure_database_name")

it("a process starts while a server is down, and has its projects as soon as that answers", async () => {
  // Both must have tables.
  await open()
  for (const projectId of [here, there]) {
    await tenure.memberships.createProject(projectId)
    await tenure.memberships.grant({ projectId, userId, endDate })
  }
  await tenure.close()
  await other().halt()
  await open()
  await extend(here)
  await expect(extend(there)).rejects.toMatchObject(unavailable)
  expect(await ofDatabases('tenure_store_up.*"deliveries"')).toEqual({
    tenure_0: "1",
    tenure_1: "0",
  })
  await other().resume()
  await expect.poll(() => extend(there).catch(() => "refused")).not.toBe("refused")
})

describe("of two servers", () => {
  beforeEach(open)

  it("each has a project, and metrics of its own connections", async () => {
    expect([here, there].map((id) => cellNumber(ProjectId(id), 2))).toEqual([0, 1])
    for (const metric of ["count", "max", "pending_requests"]) {
      const values = await valuesOf(`db_client_connection_${metric}\\{`, "pool_name")
      expect(Object.keys(values)).toEqual(["home", "other"])
    }
  })

  it("the projects of the one that is down are answered 503, and all others go on", async () => {
    const { token } = await tenure.apiKeys.issue({ projects: [here, there] })
    const server = await serve(tenure)
    const patch = async (projectId: string): Promise<number> => {
      const url = `${server.url}/v2/projects/${projectId}/memberships/${userId}/extend`
      const { status } = await fetch(url, {
        method: "PATCH",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify({ extend: endDate }),
      })
      return status
    }
    const statuses = () => Promise.all([here, there].map(patch))
    expect(await statuses()).toEqual([200, 200])
    // From a place that is known: otherwise the event may be published before the stream begins.
    const { cursor: after } = await tenure.events.read({ projectId: here })
    const follower = tenure.events.stream({ projectId: here, after })[Symbol.asyncIterator]()
    await other().halt()
    expect(await statuses()).toEqual([200, 503])
    await expect.poll(tenure.isReady).toBe(true)
    await expect(tenure.events.read({ projectId: there })).rejects.toMatchObject(unavailable)
    const next = follower.next()
    const id = await tenure.events.publish({ projectId: here, type: "later", data: {} })
    // The events that the extensions publish may come first.
    let came = await next
    while (came.done !== true && came.value.id !== id) came = await follower.next()
    expect(came.value).toMatchObject({ id })
    await follower.return?.()
    await other().resume()
    await expect.poll(() => patch(there)).toBe(200)
    await server.close()
  })

  it("metrics tell which is down, and what waits in the others", async () => {
    for (const [projectId, count] of [
      [here, 1],
      [there, 2],
    ] as const) {
      await tenure.webhooks.create({ projectId, url: "https://example.com/" })
      for (let n = 0; n < count; n++)
        await tenure.events.publish({ projectId, type: "some.event", data: {} })
    }
    const waiting = () => ofDatabases("tenure_webhook_deliveries_waiting")
    expect(await waiting()).toEqual({ tenure_0: "1", tenure_1: "2" })
    await other().halt()
    expect(await waiting()).toEqual({ tenure_0: "1" })
    const oldest = await ofDatabases("tenure_webhook_deliveries_oldest_due_seconds")
    expect(Object.keys(oldest)).toEqual(["tenure_0"])
    for (const store of ["memberships", "webhooks", "deliveries"])
      expect(await ofDatabases(`tenure_store_up.*"${store}"`)).toEqual({
        tenure_0: "1",
        tenure_1: "0",
      })
    await other().resume()
    await expect.poll(waiting).toEqual({ tenure_0: "1", tenure_1: "2" })
  })

  it("the one of the cell has transactions of the host, and the other says which that is", async () => {
    const client = new pg.Client({ connectionString: other().url })
    await client.connect()
    try {
      const change = { projectId: there, userId, endDate: "2098-01-01T00:00:00.000Z" }
      const found = () => tenure.memberships.find({ projectId: there, userId })
      const before = await found()
      await client.query("BEGIN")
      const { memberships } = tenure.within(client)
      await memberships.extend(change)
      await expect(memberships.extend({ ...change, projectId: here })).rejects.toMatchObject({
        _tag: "WrongServer",
        server: "home",
        message: "The project is on the server home: open the transaction there.",
      })
      expect(await found()).toEqual(before)
      await client.query("COMMIT")
      expect(await found()).toMatchObject({ endDate: Date.parse(change.endDate) })
    } finally {
      await client.end()
    }
  })
})
