/** Two servers on one database are replaced in turn, while clients send requests without a pause. */

import * as Http from "node:http"
import { text } from "node:stream/consumers"
import { setTimeout as sleep } from "node:timers/promises"
import { startReceiver } from "@tenure/testing/conformance"
import { afterEach, expect, it, onTestFinished } from "vitest"
import { makePool, startProxy, startSwitch } from "./balancers.ts"
import { type Server, endAll, startServer } from "./programs.ts"
import { project, startDatabase } from "./world.ts"

const clientsOfEach = 4
const rounds = 2
const pauseMillis = 10

const { environment, query } = await startDatabase(2 * clientsOfEach, {
  RATE_LIMIT_PER_KEY: "1000000",
  RATE_LIMIT_PER_IP: "1000000",
  RATE_LIMIT_BURST: "1000000",
  // Ten times as long as a balancer takes to notice.
  DRAIN_DELAY: "1",
})

afterEach(endAll)

/** Makes a client that keeps its connection, and never repeats a request. */
const makeClient = (url: string) => {
  const agent = new Http.Agent({ keepAlive: true, maxSockets: 1 })
  const headers = { authorization: "Bearer a-token", "content-type": "application/json" }
  const call = (method: string, path: string, body: object): Promise<string> =>
    new Promise((resolve, reject) => {
      const options = { agent, method, headers }
      const request = Http.request(new URL(`${project}${path}`, url), options, (response) => {
        text(response).then((answer) => resolve(`${response.statusCode} ${answer}`), reject)
      })
      request.on("error", (fault) => resolve(String(fault)))
      request.end(JSON.stringify(body))
    })
  return { call, close: () => agent.destroy() }
}

/** Reads the changes in the audit trail. */
const recorded = async (): Promise<ReadonlyArray<string>> => {
  const rows = await query("SELECT user_id, to_date FROM tenure.audit WHERE action = 'extended'")
  return rows.map((row) => `${row["user_id"]} ${Object(row["to_date"]).toISOString()}`).toSorted()
}

/** Migrates as a later version with compatible tables would. */
const migrateFurther = () =>
  query(
    "INSERT INTO tenure.migrations (version, is_breaking, digest) SELECT max(version) + 1, false, '' FROM tenure.migrations",
  )

/** Returns the change in a notification. */
const changeOf = (body: string): string => {
  const { new_end_date, user_id } = JSON.parse(body).data
  return `${user_id} ${new_end_date}`
}

type Client = ReturnType<typeof makeClient>

/** Lets each client extend memberships until the signal. */
const extendUntil = async (signal: AbortSignal, clients: ReadonlyArray<Client>) => {
  const acknowledged: Array<string> = []
  const failures: Array<string> = []
  let time = Date.parse("2099-01-01T00:00:00.000Z")
  const extendOn = async ({ call }: Client, index: number) => {
    const userId = String(1001 + index)
    while (!signal.aborted) {
      const extend = new Date(time++).toISOString()
      const answer = await call("PATCH", `/memberships/${userId}/extend`, { extend })
      if (answer.startsWith("200 ")) acknowledged.push(`${userId} ${extend}`)
      else failures.push(answer)
      await sleep(pauseMillis)
    }
  }
  await Promise.all(clients.map(extendOn))
  return { acknowledged: acknowledged.toSorted(), failures }
}

it("servers that are replaced in turn fail no request, and lose no extension and no event", async () => {
  const pool = makePool()
  const balancers = [await startProxy(pool), await startSwitch(pool)]
  const receiver = await startReceiver()
  const start = async () => {
    const server = await startServer(environment)
    pool.add(server.url)
    await expect.poll(pool.ready).toContain(server.url)
    return server
  }
  const replace = async (old: Server) => {
    const replacement = await start()
    old.kill("SIGTERM")
    expect(await old.ended).toMatchObject({ code: 0, stderr: "" })
    return replacement
  }

  let [one, other] = [await start(), await start()]
  const clients = balancers.flatMap(({ url }) =>
    Array.from({ length: clientsOfEach }, () => makeClient(url)),
  )
  onTestFinished(() => {
    for (const { close } of [...clients, ...balancers, pool, receiver]) close()
  })
  const created = await clients[0]?.call("POST", "/integrations/webhooks", { url: receiver.url })
  expect(created).toMatch(/^200/)
  const over = new AbortController()
  const load = extendUntil(over.signal, clients)
  for (let round = 0; round < rounds; round++) {
    await migrateFurther()
    one = await replace(one)
    other = await replace(other)
  }
  over.abort()

  const { acknowledged, failures } = await load
  expect(failures).toEqual([])
  expect(await recorded()).toEqual(acknowledged)
  const delivered = () => new Set(receiver.received.map(({ body }) => changeOf(body)))
  await expect.poll(() => [...delivered()].toSorted()).toEqual(acknowledged)
})
