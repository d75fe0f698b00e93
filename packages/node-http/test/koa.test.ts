import { createServer } from "node:http"
import { bodyParser } from "@koa/bodyparser"
import { type Body, pathOf } from "@tenure/core/ApiRequest"
import * as Tenure from "@tenure/core/Tenure"
import { memory } from "@tenure/memory"
import { handle, nodeTransport, toReadable } from "@tenure/node-http"
import { adapterSuite, listening } from "@tenure/testing"
import Koa from "koa"

const utf8 = new TextEncoder()

const bytes = (text: string): Body => ({ _tag: "Bytes", bytes: utf8.encode(text) })

adapterSuite("Koa", {
  start: async (options, { isBehindParser, path }) => {
    const tenure = await Tenure.make({
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
})
