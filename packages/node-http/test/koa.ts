/** A Koa app with the API as middleware. */

import { createServer } from "node:http"
import { bodyParser } from "@koa/bodyparser"
import { createTenure } from "@tenure/core"
import { type Body, pathOf } from "@tenure/core/adapter"
import { memory } from "@tenure/memory"
import { type AdapterHarness, listening } from "@tenure/testing/conformance"
import Koa from "koa"
import { handle } from "../src/exchange.ts"
import { toReadable } from "../src/streams.ts"
import { nodeTransport } from "../src/transport.ts"

const utf8 = new TextEncoder()

const bytes = (text: string): Body => ({ _tag: "Bytes", bytes: utf8.encode(text) })

export const koa: AdapterHarness = {
  start: async (options, { isBehindParser, path }) => {
    const tenure = await createTenure({
      ...options,
      basePath: options.basePath ?? path,
      stores: memory(),
      transport: nodeTransport,
    })
    const app = new Koa()
    app.silent = true
    app.use(async (context, next) => {
      await next().catch(() => (context.status = 418))
    })
    if (isBehindParser) app.use(bodyParser())
    app.use((context, next) => {
      if (!tenure.owns(pathOf(context.req.url ?? ""))) return next()
      const { rawBody } = context.request
      const known = rawBody === undefined ? {} : { body: bytes(rawBody) }
      return new Promise<void>((resolve) => {
        handle(tenure, context.req, context.res, known, ({ body, headers, status }) => {
          context.status = status
          context.set(headers)
          context.body = typeof body === "string" ? body : toReadable(body)
          resolve()
        })
      })
    })
    app.use(bodyParser())
    app.use((context) => {
      if (context.path === "/broken") throw new Error("the host's own")
      if (context.path === "/own") context.body = context.request.body
    })
    return listening(createServer(app.callback()), tenure)
  },
}
