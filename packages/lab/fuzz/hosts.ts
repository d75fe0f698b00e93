/** Every host that Tenure documents, each with the API under `/members`. */

import { Server, createServer } from "node:http"
import { NodeHttpServer } from "@effect/platform-node"
import { type HttpBindings, createAdaptorServer } from "@hono/node-server"
import { type Promises, type Tenure, type TenureOptions, createTenure } from "@tenure/core"
import { promisesFromEffect, tenureLayer } from "@tenure/core/effect"
import { tenureRouterLayer } from "@tenure/core/http-router"
import { WebhookTransport } from "@tenure/core/transport"
import { membershipMiddleware } from "@tenure/express"
import { membershipPlugin } from "@tenure/fastify"
import { fetchHandler } from "@tenure/fetch"
import { memory } from "@tenure/memory"
import { orderRequests, serve, toNodeHandler } from "@tenure/node-http"
import * as Effect from "effect/Effect"
import { HttpRouter, HttpServer } from "effect/http"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import express5 from "express"
import express4 from "express4"
import fastify from "fastify"
import { Hono } from "hono"
import { listen, portOf } from "../listening.ts"
import { adminToken, basePath, projectId, token, userIds } from "./vocabulary.ts"

/** A host that listens. */
export interface Host {
  readonly name: string
  readonly port: number
  /** Registers a webhook and returns its id. */
  readonly createWebhook: () => Promise<string>
  /** Deletes the webhooks that requests have registered. */
  readonly deleteWebhooks: () => Promise<void>
  readonly close: () => Promise<void>
}

/** Where a host listens, the Tenure in it, and how to stop it. */
interface Started {
  readonly port: number
  readonly tenure: Promises
  readonly close: () => Promise<void>
}

type Start = (options: TenureOptions) => Promise<Started>

// Notifications go nowhere.
const transport = Layer.succeed(WebhookTransport, {
  sendsHttpToNames: true,
  send: () => Effect.succeed({ status: 204, retryAfter: undefined, body: "" }),
})

const make = (options: TenureOptions): Promise<Tenure> =>
  createTenure({ ...options, stores: memory({ history: 100 }), transport })

const listening = async (server: Server, tenure: Tenure): Promise<Started> => {
  const port = await listen(server)
  const close = async () => {
    server.close()
    server.closeAllConnections()
    await tenure.close()
  }
  return { port, tenure, close }
}

const alone: Start = async (options) => {
  const tenure = await make({ ...options, basePath })
  const server = await serve(tenure, { shutdownTimeout: 0 })
  const close = async () => {
    await server.close()
    await tenure.close()
  }
  return { port: Number(new URL(server.url).port), tenure, close }
}

const middleware: Start = async (options) => {
  const tenure = await make({ ...options, basePath })
  const api = toNodeHandler(tenure)
  const server = createServer((request, response) =>
    api(request, response, () => response.writeHead(404).end()),
  )
  return listening(server, tenure)
}

const onExpress =
  (express: typeof express5): Start =>
  async (options) => {
    const tenure = await make(options)
    const app = express()
    app.set("env", "test")
    app.use(basePath, membershipMiddleware(tenure))
    return listening(createServer(app), tenure)
  }

const onFastify: Start = async (options) => {
  const tenure = await make(options)
  const app = fastify({ forceCloseConnections: true })
  await app.register(membershipPlugin, { prefix: basePath, tenure })
  await app.listen({ port: 0, host: "127.0.0.1" })
  const close = async () => {
    await app.close()
    await tenure.close()
  }
  return { port: portOf(app.server), tenure, close }
}

const onHono: Start = async (options) => {
  const tenure = await make({ ...options, basePath })
  const api = fetchHandler(tenure)
  const app = new Hono<{ Bindings: HttpBindings }>()
  app.use(async (context, next) => {
    const { remoteAddress } = context.env.incoming.socket
    return (await api(context.req.raw, { remoteAddress })) ?? next()
  })
  const server = orderRequests(createAdaptorServer({ fetch: app.fetch }))
  if (!(server instanceof Server)) throw new TypeError("not a server of node:http")
  return listening(server, tenure)
}

const onEffect: Start = async (options) => {
  const services = Layer.provide(tenureLayer({ ...options, basePath, transport }), memory())
  const server = NodeHttpServer.layer(() => orderRequests(createServer()), {
    port: 0,
    host: "127.0.0.1",
  })
  const app = HttpRouter.serve(tenureRouterLayer(), {
    disableLogger: true,
    disableListenLog: true,
  }).pipe(Layer.provideMerge(server), Layer.provideMerge(services))
  const runtime = ManagedRuntime.make(app)
  const tenure = await runtime.runPromise(promisesFromEffect)
  const { address } = await runtime.runPromise(HttpServer.HttpServer)
  if (address._tag === "UnixPathAddress") throw new TypeError("not an address of TCP")
  return { port: address.port, tenure, close: () => runtime.dispose() }
}

/** The hosts by name. Answers are compared with the first one's. */
const starts: ReadonlyArray<readonly [name: string, start: Start]> = [
  ["serve", alone],
  ["node:http", middleware],
  ["Express 4", onExpress(express4)],
  ["Express 5", onExpress(express5)],
  ["Fastify", onFastify],
  ["Hono", onHono],
  ["Effect", onEffect],
]

const fill = async ({ apiKeys, memberships }: Promises): Promise<void> => {
  await memberships.createProject(projectId)
  for (const userId of userIds) {
    await memberships.grant({ projectId, userId, endDate: "2099-01-01T00:00:00.000Z" })
  }
  await memberships.extendAll({ projectId, endDate: "2099-01-01T00:00:00.000Z" })
  await apiKeys.issue({ projects: [projectId], token })
  await apiKeys.issue({ projects: [projectId], token: adminToken, role: "admin" })
}

const url = "https://receiver.example/"

const startOne = async (name: string, start: Start, options: TenureOptions): Promise<Host> => {
  const { close, port, tenure } = await start(options)
  await fill(tenure)
  const { webhooks } = tenure
  const createWebhook = async () => (await webhooks.create({ projectId, url })).id
  // One stays, so that the list always has an item.
  const kept = await createWebhook()
  const deleteWebhooks = async () => {
    for (const { id: webhookId } of await webhooks.list({ projectId })) {
      if (webhookId !== kept) await webhooks.delete({ projectId, webhookId })
    }
  }
  return { name, port, createWebhook, deleteWebhooks, close }
}

/** Starts every host, each on its own stores. */
export const startHosts = (options: TenureOptions): Promise<ReadonlyArray<Host>> =>
  Promise.all(starts.map(([name, start]) => startOne(name, start, options)))
