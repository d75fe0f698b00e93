/** Every adapter mounts the console as it mounts the API. */

import { type RequestListener, createServer } from "node:http"
import { NodeHttpServer } from "@effect/platform-node"
import { type TenureOptions, createTenure } from "@tenure/core"
import type { Mountable } from "@tenure/core/adapter"
import { mountTenure } from "@tenure/core/http-router"
import { membershipMiddleware } from "@tenure/express"
import { membershipPlugin } from "@tenure/fastify"
import { fetchHandler } from "@tenure/fetch"
import { memory } from "@tenure/memory"
import { toNodeHandler } from "@tenure/node-http"
import { send } from "@tenure/testing/conformance"
import { HttpRouter, HttpServer } from "effect/http"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import express from "express"
import fastify from "fastify"
import { expect, it } from "vitest"
import { tenureConsole } from "../src/index.ts"

const listen = async (listener: RequestListener) => {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`,
    close: async () => void server.close(),
  }
}

/** Mounts the console under `/members`, beside the API. */
const hosts: Readonly<
  Record<
    string,
    (all: ReadonlyArray<Mountable>) => Promise<{ readonly url: string; close(): Promise<void> }>
  >
> = {
  express: (all) => {
    const app = express()
    for (const one of all) app.use("/members", membershipMiddleware(one))
    return listen(app)
  },
  fastify: async (all) => {
    const app = fastify()
    for (const tenure of all) await app.register(membershipPlugin, { prefix: "/members", tenure })
    return { url: await app.listen({ port: 0, host: "127.0.0.1" }), close: () => app.close() }
  },
}

const wholePaths: typeof hosts = {
  "node:http": (all) =>
    listen((request, response) =>
      all
        .map((one) => toNodeHandler(one))
        .reduceRight<() => void>(
          (next, handler) => () => handler(request, response, next),
          () => void response.writeHead(404).end(),
        )(),
    ),
  Effect: async (all) => {
    const routes = all.map((one) => mountTenure(one))
    const app = HttpRouter.serve(Layer.mergeAll(Layer.empty, ...routes), {
      disableLogger: true,
      disableListenLog: true,
    })
    const server = NodeHttpServer.layer(() => createServer(), { port: 0, host: "127.0.0.1" })
    const runtime = ManagedRuntime.make(Layer.provideMerge(app, server))
    const { address } = await runtime.runPromise(HttpServer.HttpServer)
    if (address._tag === "UnixPathAddress") throw new TypeError("not an address of TCP")
    return { url: `http://127.0.0.1:${address.port}`, close: () => runtime.dispose() }
  },
}

/** The links of a page to its files. */
const linksOf = (page: string): ReadonlyArray<string> =>
  [...page.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, link = ""]) => link)

const fromPage = { "sec-fetch-site": "same-origin", "content-type": "application/json" }

const check = async (url: string, token: string) => {
  const ask = async (method: string, path: string, headers: object = {}, body = "") => {
    const answer = await send(url, { method, path, headers: { ...fromPage, ...headers }, body })
    return { status: answer.status, headers: answer.headers, body: answer.text }
  }
  // A host or a proxy may redirect from either to the other.
  for (const path of ["/members/console", "/members/console/"]) {
    const page = await ask("GET", path)
    expect([page.status, page.headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"])
    expect(linksOf(page.body)).toHaveLength(3)
    for (const link of linksOf(page.body)) {
      const { pathname, search } = new URL(link, url + path)
      const file = await ask("GET", pathname + search)
      expect([link, file.status, file.headers["cache-control"]]).toEqual([
        link,
        200,
        "private, max-age=31536000, immutable",
      ])
    }
  }
  const signedIn = await ask("POST", "/members/console/session", {
    authorization: `Bearer ${token}`,
  })
  const cookie = String(signedIn.headers["set-cookie"]).split(";")[0] ?? ""
  const path = "/members/console/api/v2/projects/p1/memberships/1001"
  const granted = await ask("PUT", path, { cookie }, '{"end_date":"2099-01-01T00:00:00.000Z"}')
  expect(granted.status).toBe(200)
  expect((await ask("GET", `${path}/history`, { cookie })).status).toBe(200)
  expect((await ask("GET", "/members/console/other")).status).toBe(404)
  expect((await ask("GET", "/members/v2/status")).status).toBe(401)
}

const run = async (start: (typeof hosts)[string], options: TenureOptions) => {
  const tenure = await createTenure({ stores: memory(), ...options })
  await tenure.memberships.createProject("p1")
  const { token } = await tenure.apiKeys.issue({ projects: ["p1"], role: "operator" })
  const host = await start([tenureConsole(tenure, { authorize: "api-key" }), tenure])
  try {
    await check(host.url, token)
  } finally {
    await host.close()
    await tenure.close()
  }
}

it.each(Object.entries(hosts))("%s, under a path of its own", (_name, start) => run(start, {}))

it.each(Object.entries(wholePaths))("%s, under a base path", (_name, start) =>
  run(start, { basePath: "/members" }),
)

it("fetch", async () => {
  const tenure = await createTenure({ stores: memory() })
  const handler = fetchHandler(tenureConsole(tenure, { authorize: "api-key" }))
  for (const url of ["http://localhost/console", "http://localhost/console/"]) {
    const page = await handler(new Request(url))
    expect(page?.headers.get("content-type")).toBe("text/html; charset=utf-8")
    for (const link of linksOf((await page?.text()) ?? "")) {
      expect((await handler(new Request(new URL(link, url))))?.status).toBe(200)
    }
  }
  expect(handler(new Request("http://localhost/v2/projects"))).toBeUndefined()
  await tenure.close()
})
