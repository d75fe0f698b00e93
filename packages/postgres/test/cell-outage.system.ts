/** Cells on two servers, of which one is down. */

import { type Tenure, createTenure } from "@tenure/core"
import { cellNumber } from "@tenure/core/internal"
import { ProjectId } from "@tenure/core/store"
import { serve } from "@tenure/node-http"
import { type PostgresServer, startPostgres } from "@tenure/testing/postgres-server"
import pg from "pg"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { postgres } from "../src/index.ts"

const endDate = "2099-01-01T00:00:00.000Z"

let servers: readonly [PostgresServer, PostgresServer]
beforeAll(async () => {
  servers = await Promise.all([startPostgres(), startPostgres()])
})
afterAll(() => Promise.all(servers.map(({ stop }) => stop())))

let tenure: Tenure
afterEach(() => tenure?.close())

/** A project of the first cell, and one of the second. */
const [here, there] = ["p1", "p2"] as const

it("has its projects in two cells", () => {
  expect([here, there].map((id) => cellNumber(ProjectId(id), 2))).toEqual([0, 1])
})

const open = async (): Promise<void> => {
  const [first, second] = servers
  tenure = await createTenure({
    stores: postgres({
      servers: [
        { name: "home", url: first.url },
        { name: "other", url: second.url },
      ],
      cells: 2,
      maxConnections: 4,
    }),
    logger: { info: () => {}, warn: () => {}, error: () => {} },
    metrics: true,
    webhooks: { dispatch: false },
  })
}

const fill = async (): Promise<void> => {
  for (const projectId of [here, there]) {
    await tenure.memberships.createProject(projectId)
    await tenure.memberships.grant({ projectId, userId: "1001", endDate })
  }
}

const extend = (projectId: string) =>
  tenure.memberships.extend({ projectId, userId: "1001", endDate })

const unavailable = { _tag: "StoreUnavailable" }

it("metrics tell the connections to one database from those to another", async () => {
  await open()
  const text = await tenure.metrics()
  const poolsOf = (metric: string) => [
    ...new Set(
      [...text.matchAll(RegExp(`^${metric}\\{.*pool_name="(\\w+)"`, "gm"))].map(([, name]) => name),
    ),
  ]
  for (const metric of ["count", "max", "pending_requests"]) {
    expect(poolsOf(`db_client_connection_${metric}`)).toEqual(["home", "other"])
  }
})

/** The values of a metric that has the names of databases, by these. */
const valuesOf = async (metric: string): Promise<Readonly<Record<string, string>>> => {
  const series = RegExp(`^${metric}.*tenure_database_name="(\\w+)"\\} (\\S+)$`, "gm")
  const found = [...(await tenure.metrics()).matchAll(series)]
  return Object.fromEntries(found.map(([, name, value]) => [name, value]))
}

describe("while a database other than the first is down", () => {
  it("its projects are answered 503, and all others go on", async () => {
    await open()
    await fill()
    const { token } = await tenure.apiKeys.issue({ projects: [here, there] })
    const server = await serve(tenure)
    const patch = async (projectId: string): Promise<number> => {
      const { status } = await fetch(
        `${server.url}/v2/projects/${projectId}/memberships/1001/extend`,
        {
          method: "PATCH",
          headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
          body: JSON.stringify({ extend: endDate }),
        },
      )
      return status
    }
    const statuses = () => Promise.all([here, there].map(patch))
    expect(await statuses()).toEqual([200, 200])
    // From a place that is known: otherwise the event may be published before the stream begins.
    const { cursor: after } = await tenure.events.read({ projectId: here })
    const follower = tenure.events.stream({ projectId: here, after })[Symbol.asyncIterator]()
    await servers[1].halt()
    expect(await statuses()).toEqual([200, 503])
    await expect.poll(tenure.isReady).toBe(true)
    await expect(tenure.events.read({ projectId: there })).rejects.toMatchObject(unavailable)
    const next = follower.next()
    const id = await tenure.events.publish({ projectId: here, type: "later", data: {} })
    // Those of the extensions may come first.
    let came = await next
    while (came.done !== true && came.value.id !== id) came = await follower.next()
    expect(came.value).toMatchObject({ id })
    await follower.return?.()
    await servers[1].resume()
    await expect.poll(() => patch(there)).toBe(200)
    await server.close()
  })

  it("metrics tell that it is down, and what waits in the others", async () => {
    await open()
    for (const [projectId, count] of [
      [here, 1],
      [there, 2],
    ] as const) {
      await tenure.webhooks.create({ projectId, url: "https://example.com/" })
      for (let n = 0; n < count; n++) {
        await tenure.events.publish({ projectId, type: "some.event", data: {} })
      }
    }
    const waiting = () => valuesOf("tenure_webhook_deliveries_waiting")
    const up = (store: string) => valuesOf(`tenure_store_up.*"${store}"`)
    expect(await waiting()).toEqual({ tenure_0: "1", tenure_1: "2" })
    await servers[1].halt()
    expect(await waiting()).toEqual({ tenure_0: "1" })
    expect(Object.keys(await valuesOf("tenure_webhook_deliveries_oldest_due_seconds"))).toEqual([
      "tenure_0",
    ])
    for (const store of ["memberships", "webhooks", "deliveries"]) {
      expect(await up(store)).toEqual({ tenure_0: "1", tenure_1: "0" })
    }
    await servers[1].resume()
    await expect.poll(waiting).toEqual({ tenure_0: "1", tenure_1: "2" })
  })

  it("works in transactions of the host on the server of the cell, and says which that is", async () => {
    await open()
    const client = new pg.Client({ connectionString: servers[1].url })
    await client.connect()
    try {
      const change = { projectId: there, userId: "1001", endDate: "2098-01-01T00:00:00.000Z" }
      const found = () => tenure.memberships.find({ projectId: there, userId: "1001" })
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

  it("a process starts, and has its projects as soon as it answers", async () => {
    await servers[1].halt()
    await open()
    await extend(here)
    await expect(extend(there)).rejects.toMatchObject(unavailable)
    expect(await valuesOf('tenure_store_up.*"deliveries"')).toEqual({
      tenure_0: "1",
      tenure_1: "0",
    })
    await servers[1].resume()
    await expect
      .poll(() =>
        extend(there).then(
          () => "done",
          () => "refused",
        ),
      )
      .toBe("done")
  })
})
