/**
 * Prints the modules in which a function runs for one warm request, as JSON: for an extension, a feed page, and a
 * delivery. `WALK_STORE` is an empty database's URL, or `memory:`.
 */

import { once } from "node:events"
import { type Server, createServer } from "node:http"
import { Session } from "node:inspector/promises"
import { createTenure } from "@tenure/core"
import { membershipMiddleware } from "@tenure/express"
import { memory } from "@tenure/memory"
import { nodeTransport } from "@tenure/node-http"
import { postgres } from "@tenure/postgres"
import express from "express"
import { root } from "./examples.ts"

const url = process.env["WALK_STORE"] ?? "memory:"
const projectId = "p1"

const inspector = new Session()
inspector.connect()
await inspector.post("Profiler.enable")
await inspector.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false })

const sources = `file://${root}packages/`

/** Returns the packages' modules in which a function was called since the last time. */
const entered = async (): Promise<ReadonlyArray<string>> => {
  const { result } = await inspector.post("Profiler.takePreciseCoverage")
  return result
    .filter(({ functions }) => functions.some(({ ranges: [whole] }) => (whole?.count ?? 0) > 0))
    .flatMap(({ url: file }) => (file.startsWith(sources) ? [file.slice(sources.length)] : []))
    .filter((path) => path.includes("/src/"))
    .toSorted()
}

const listen = async (server: Server): Promise<string> => {
  await once(server.listen(0, "127.0.0.1"), "listening")
  const address = server.address()
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`
}

const receiver = createServer((request, response) =>
  request.resume().on("end", () => response.end()),
)
const tenure = await createTenure({
  stores: url === "memory:" ? memory() : postgres({ url }),
  transport: nodeTransport,
  // Nothing runs but what a walk starts.
  webhooks: { dispatch: false, allowedNetworks: ["127.0.0.0/8"] },
  expiry: false,
  // A fast machine makes all these requests in a moment.
  rateLimits: { burst: { limit: 1000, window: "1 second" } },
})
const api = createServer(express().use(membershipMiddleware(tenure)))
const project = `${await listen(api)}/v2/projects/${projectId}`
await tenure.memberships.createProject(projectId)
await tenure.memberships.grant({ projectId, userId: "1001", endDate: new Date("2099-01-01") })
const { token } = await tenure.apiKeys.issue({ projects: [projectId] })
const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" }

let days = 0
const extend = async (): Promise<void> => {
  const body = JSON.stringify({ extend: Date.UTC(2100, 0, ++days) })
  const response = await fetch(`${project}/memberships/1001/extend`, {
    method: "PATCH",
    headers,
    body,
  })
  if (!response.ok) throw new Error(await response.text())
  await response.text()
}

const poll = async (): Promise<void> => {
  const response = await fetch(`${project}/events`, { headers })
  if (!response.ok) throw new Error(await response.text())
  await response.text()
}

const deliver = async (): Promise<void> => {
  if ((await tenure.flush()) !== 0) throw new Error("A delivery waits")
}

/** Walks until all is warm, then several times; returns each walk's modules. Others may run beside one. */
const walk = async (
  step: () => Promise<void>,
  prepare: () => Promise<void> = async () => {},
): Promise<ReadonlyArray<string>> => {
  const passed: Array<ReadonlyArray<string>> = []
  for (let count = 0; count < 8; count++) {
    await prepare()
    await entered()
    await step()
    passed.push(await entered())
  }
  const [first, ...others] = passed.slice(3)
  return (first ?? []).filter((path) => others.every((paths) => paths.includes(path)))
}

const walks = { extension: await walk(extend), poll: await walk(poll) }
await tenure.webhooks.create({ projectId, url: await listen(receiver) })
const delivery = await walk(deliver, extend)
process.stdout.write(JSON.stringify({ ...walks, delivery }))
await tenure.close()
process.exit(0)
