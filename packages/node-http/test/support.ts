/** Helpers for the server's tests, and servers for the transport's. */

import { once } from "node:events"
import * as Http from "node:http"
import type { Http2Server } from "node:http2"
import * as Net from "node:net"
import { type Tenure, createTenure } from "@tenure/core"
import type { ApiRequest, Mountable } from "@tenure/core/adapter"
import { memory } from "@tenure/memory"
import {
  type Answer,
  type Receiver,
  parseResponses,
  startReceiver,
} from "@tenure/testing/conformance"
import { expect, onTestFinished } from "vitest"
import { type ServerOptions, serve } from "../src/server.ts"
import { nodeTransport } from "../src/transport.ts"

export const webhooks = "/v2/projects/p1/integrations/webhooks"
export const extendOne = "/v2/projects/p1/memberships/1001/extend"
export const body = JSON.stringify({ extend: "2099-01-01T00:00:00.000Z" })

export interface Running {
  readonly url: string
  readonly token: string
  readonly tenure: Tenure
}

/** Makes a Tenure with a project, a member and a key, until the test has finished. */
export const prepared = async () => {
  const tenure = await createTenure({ stores: memory(), transport: nodeTransport })
  onTestFinished(() => tenure.close())
  await tenure.memberships.createProject("p1")
  await tenure.memberships.grant({
    projectId: "p1",
    userId: "1001",
    endDate: 1_000_000_000_000,
  })
  const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
  return { tenure, token }
}

/** Serves a Tenure until the test has finished. Returns the URL. */
export const serveDuringTest = async (
  tenure: Mountable,
  options: ServerOptions = {},
): Promise<string> => {
  const server = await serve(tenure, { shutdownTimeout: 500, ...options })
  onTestFinished(server.close)
  return server.url
}

/** Runs a test on a server with a project, a member and a key. */
export const serving = async (
  test: (running: Running) => Promise<void>,
  options: ServerOptions = {},
): Promise<void> => {
  const { tenure, token } = await prepared()
  await test({ url: await serveDuringTest(tenure, options), token, tenure })
}

/** Has a server listen on a free port until the test has finished. Returns its URL. */
export const listenDuringTest = async (server: Net.Server | Http2Server): Promise<string> => {
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  onTestFinished(() => {
    server.close()
    if (server instanceof Http.Server) server.closeAllConnections()
  })
  const address = server.address()
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`
}

/** Starts a server that passes each connection to `handle`, until the test has finished. */
export const rawServer = async (handle: (socket: Net.Socket) => unknown) => {
  const sockets = new Set<Net.Socket>()
  const server = Net.createServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => {})
    handle(socket)
  })
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  return { url: `${await listenDuringTest(server)}/`, sockets }
}

/** Starts a server that answers the first bytes on each connection with a text, and ends or stays. */
export const rawAnswer = (text: string, isEnd = true) =>
  rawServer((socket) => socket.once("data", () => (isEnd ? socket.end(text) : socket.write(text))))

/** Starts a receiver until the test has finished. */
export const receiverDuringTest = async (answer?: Answer): Promise<Receiver> => {
  const receiver = await startReceiver(answer)
  onTestFinished(receiver.close)
  return receiver
}

/** A Tenure whose requests go to `handle`. */
export const answering = (handle: Mountable["handle"]): Mountable => ({
  basePath: "",
  patterns: [],
  bodyLimit: () => ({ bytes: 1000, isDeferred: false }),
  maxRefusals: 100,
  owns: () => true,
  handle,
  answer: (request, deliver) => void handle(request).then(deliver),
})

export const ok = { status: 200, headers: {}, body: "{}" }

/** A Tenure whose responses wait until `open` is called. */
export const gated = () => {
  const waiting: Array<() => void> = []
  const seen: Array<ApiRequest> = []
  const tenure = answering(async (request) => {
    if (request.body._tag === "Deferred") await request.body.read()
    seen.push(request)
    await new Promise<void>((resolve) => waiting.push(resolve))
    return ok
  })
  const until = async (count: number): Promise<void> => {
    while (seen.length < count) await new Promise((resolve) => setImmediate(resolve))
  }
  return { tenure, seen, until, open: () => waiting.splice(0).forEach((release) => release()) }
}

/** Joins header lines, and adds the empty line at the end. */
export const lines = (...all: ReadonlyArray<string>): string => [...all, "", ""].join("\r\n")

/** A request's head with a key. */
export const authorized = (line: string, token: string, ...more: ReadonlyArray<string>): string =>
  lines(`${line} HTTP/1.1`, "Host: a", `Authorization: Bearer ${token}`, ...more)

/** The header fields for `body`. */
export const json = ["Content-Type: application/json", `Content-Length: ${body.length}`]

/** Opens a connection that stays half-open when the other side closes it, until the test has finished. */
export const connect = async (url: string): Promise<Net.Socket> => {
  const { hostname, port } = new URL(url)
  const socket = Net.connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  onTestFinished(() => void socket.destroy())
  await once(socket, "connect")
  return socket.on("error", () => {})
}

/** Expects one response in an envelope, with the headers that every response has. */
export const expectEnvelope = (raw: string, status: number, code: string): void => {
  const responses = parseResponses(raw)
  expect(responses.map((one) => one.status)).toEqual([status])
  expect(responses[0]?.body).toMatchObject({ ok: false, code: status, error: { error_code: code } })
  expect(responses[0]?.headers).toMatchObject({
    "content-type": "application/json",
    "cache-control": "no-store",
    "x-ratelimit-limit": "300",
    "x-ratelimit-remaining": expect.stringMatching(/^2[0-9][0-9]$/),
    "x-ratelimit-reset": expect.stringMatching(/^[0-9]{10}$/),
    connection: "close",
  })
}
