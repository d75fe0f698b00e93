/** The hosts for which there are adapters, in front of one Tenure. */

import { Server, createServer } from "node:http"
import { type HttpBindings, type ServerType, createAdaptorServer } from "@hono/node-server"
import type { Tenure } from "@tenure/core"
import { membershipMiddleware } from "@tenure/express"
import { membershipPlugin } from "@tenure/fastify"
import { fetchHandler } from "@tenure/fetch"
import { attachRealtime, toNodeHandler } from "@tenure/node-http"
import express from "express"
import fastify from "fastify"
import { Hono } from "hono"
import { closeServer, listen } from "./ports.ts"

// Longer than a run, so that clients never use a connection that is just being closed.
const keepAliveMillis = 3_600_000

const onNode = (tenure: Tenure) => {
  const api = toNodeHandler(tenure)
  return createServer((request, response) => api(request, response))
}

const onExpress = (tenure: Tenure) => {
  const app = express()
  app.set("env", "test")
  app.use(membershipMiddleware(tenure))
  return createServer(app)
}

const onFastify = async (tenure: Tenure) => {
  const app = fastify()
  await app.register(membershipPlugin, { tenure })
  await app.ready()
  return app.server
}

const onFetch = (tenure: Tenure) => {
  const api = fetchHandler(tenure)
  const app = new Hono<{ Bindings: HttpBindings }>()
  app.use(async (context, next) => {
    const { remoteAddress } = context.env.incoming.socket
    return (await api(context.req.raw, { remoteAddress })) ?? next()
  })
  return createAdaptorServer({ fetch: app.fetch })
}

const open = async (tenure: Tenure, server: ServerType) => {
  if (!(server instanceof Server)) throw new TypeError("not a server of node:http")
  server.keepAliveTimeout = keepAliveMillis
  const realtime = attachRealtime(server, tenure)
  const url = `http://127.0.0.1:${await listen(server)}`
  const close = async (): Promise<void> => {
    realtime.close()
    await closeServer(server)
  }
  return { url, close }
}

/** Opens each kind of host. */
export const openDoors = async (tenure: Tenure) => {
  const [first, ...others] = [
    await open(tenure, onNode(tenure)),
    await open(tenure, onExpress(tenure)),
    await open(tenure, await onFastify(tenure)),
    await open(tenure, onFetch(tenure)),
  ] as const
  return {
    urls: [first.url, ...others.map(({ url }) => url)] as const,
    close: async (): Promise<void> => {
      await Promise.all([first, ...others].map((one) => one.close()))
    },
  }
}
