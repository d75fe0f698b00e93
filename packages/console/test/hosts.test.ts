/** Every adapter mounts the console as it mounts the API. */

import { type RequestListener, createServer } from "node:http"
import { NodeHttpServer } from "@effect/platform-node"
import { type Tenure, createTenure } from "@tenure/core"
import type { Mountable } from "@tenure/core/adapter"
import { mountTenure } from "@tenure/core/http-router"
import { membershipMiddleware } from "@tenure/express"
import { membershipPlugin } from "@tenure/fastify"
import { fetchHandler } from "@tenure/fetch"
import { memory } from "@tenure/memory"
import { toNodeHandler } from "@tenure/node-http"
import { listening, send } from "@tenure/testing/conformance"
import { HttpRouter, HttpServer } from "effect/http"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import express from "express"
import fastify from "fastify"
import { expect, it, onTestFinished } from "vitest"
import { tenureConsole } from "../src/index.ts"

/** Mounts the console, beside the API, under `/members`. Returns the URL. */
type Start = (all: ReadonlyArray<Mountable>, tenure: Tenure) => Promise<string>

const listen = async (listener: RequestListener, tenure: Tenure) => {
  const { close, url } = await listening(createServer(listener), tenure)
  onTestFinished(close)
  return url
}

const underPath: Readonly<Record<string, Start>> = {
  express: (all, tenure) => {
    const app = express()
    for (const one of all) app.use("/members", membershipMiddleware(one))
    return listen(app, tenure)
  },
  fastify: async (all) => {
    const app = fastify()
    onTestFinished(() => app.close())
    for (const tenure of all) await app.register(membershipPlugin, { prefix: "/members", tenure })
    return app.listen({ port: 0, host: "127.0.0.1" })
  },
}

const underBasePath: Readonly<Record<string, Start>> = {
  "node:http": (all, tenure) => {
    const handlers = all.map((one) => toNodeHandler(one))
    return listen((request, response) => {
      const missing = () => void response.writeHead(404).end()
      const ask = handlers.reduceRight<() => void>(
        (next, handler) => () => handler(request, response, next),
        missing,
      )
      ask()
    }, tenure)
  },
  Effect: async (all) => {
    const routes = all.map((one) => mountTenure(one))
    const app = HttpRouter.serve(Layer.mergeAll(Layer.empty, ...routes), {
      disableLogger: true,
      disableListenLog: true,
    })
    const server = NodeHttpServer.layer(() => createServer(), { port: 0, host: "127.0.0.1" })
    const runtime = ManagedRuntime.make(Layer.provideMerge(app, server))
    onTestFinished(() => runtime.dispose())
    const { address } = await runtime.runPromise(HttpServer.HttpServer)
    if (address._tag === "UnixPathAddress") throw new TypeError("not an address of TCP")
    return `http://127.0.0.1:${address.port}`
  },
}

/** A page's links to its files. */
const linksOf = (page: string): ReadonlyArray<string> =>
  [...page.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, link = ""]) => link)

const fromPage = { "sec-fetch-site": "same-origin", "content-type": "application/json" }

it.each([
  ...Object.entries(underPath).map(([host, start]) => ({ host, start, basePath: "" })),
  ...Object.entries(underBasePath).map(([host, start]) => ({ host, start, basePath: "/members" })),
])("$host", async ({ basePath, start }) => {
  const tenure = await createTenure({ stores: memory(), basePath })
  onTestFinished(tenure.close)
  await tenure.memberships.createProject("p1")
  const { token } = await tenure.apiKeys.issue({ projects: ["p1"], role: "operator" })
  const url = await start([tenureConsole(tenure, { authorize: "api-key" }), tenure], tenure)
  const ask = (method: string, path: string, headers: object = {}, body = "") =>
    send(url, { method, path, headers: { ...fromPage, ...headers }, body })

  // A host or a proxy may redirect from either to the other.
  for (const path of ["/members/console", "/members/console/"]) {
    const page = await ask("GET", path)
    expect([page.status, page.headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"])
    expect(linksOf(page.text)).toHaveLength(3)
    for (const link of linksOf(page.text)) {
      const { pathname, search } = new URL(link, url + path)
      expect(await ask("GET", pathname + search), link).toMatchObject({
        status: 200,
        headers: { "cache-control": "private, max-age=31536000, immutable" },
      })
    }
  }
  const authorization = `Bearer ${token}`
  const signedIn = await ask("POST", "/members/console/session", { authorization })
  const cookie = String(signedIn.headers["set-cookie"]).split(";")[0] ?? ""
  const path = "/members/console/api/v2/projects/p1/memberships/1001"
  const granted = await ask("PUT", path, { cookie }, '{"end_date":"2099-01-01T00:00:00.000Z"}')
  expect(granted.status).toBe(200)
  expect((await ask("GET", `${path}/history`, { cookie })).status).toBe(200)
  expect((await ask("GET", "/members/console/other")).status).toBe(404)
  expect((await ask("GET", "/members/v2/status")).status).toBe(401)
})

it("fetch", async () => {
  const tenure = await createTenure({ stores: memory() })
  onTestFinished(tenure.close)
  const handler = fetchHandler(tenureConsole(tenure, { authorize: "api-key" }))
  for (const url of ["http://localhost/console", "http://localhost/console/"]) {
    const page = await handler(new Request(url))
    expect(page?.headers.get("content-type")).toBe("text/html; charset=utf-8")
    for (const link of linksOf((await page?.text()) ?? ""))
      expect((await handler(new Request(new URL(link, url))))?.status).toBe(200)
  }
  expect(handler(new Request("http://localhost/v2/projects"))).toBeUndefined()
})
