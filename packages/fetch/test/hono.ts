/** A Hono app with the API by fetch. */

import { Server } from "node:http"
import { type HttpBindings, createAdaptorServer } from "@hono/node-server"
import { createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { nodeTransport, orderRequests } from "@tenure/node-http"
import { type AdapterHarness, listening } from "@tenure/testing/conformance"
import { Hono } from "hono"
import { fetchHandler } from "../src/index.ts"

/** The body, if it has been parsed. */
interface Variables {
  readonly parsedBody: unknown
}

export const hono: AdapterHarness = {
  start: async (options, { isBehindParser, path }) => {
    const tenure = await createTenure({
      ...options,
      basePath: options.basePath ?? path,
      stores: memory(),
      transport: nodeTransport,
    })
    const api = fetchHandler(tenure)
    const app = new Hono<{ Bindings: HttpBindings; Variables: Variables }>()
    app.use(async (context, next) => {
      const isJson = context.req.header("content-type") === "application/json"
      if (isBehindParser && isJson) context.set("parsedBody", await context.req.json())
      await next()
    })
    app.use(async (context, next) => {
      const { remoteAddress } = context.env.incoming.socket
      const info = { remoteAddress, parsedBody: context.get("parsedBody") }
      return (await api(context.req.raw, info)) ?? next()
    })
    app.post("/own", async (context) => context.json(await context.req.json()))
    app.get("/broken", () => {
      throw new Error("the host's own")
    })
    app.onError((_error, context) => context.body(null, 418))
    const server = orderRequests(createAdaptorServer({ fetch: app.fetch }))
    if (!(server instanceof Server)) throw new TypeError("not a server of node:http")
    return listening(server, tenure)
  },
}
