/** Helpers for the tests of the server. */

import { once } from "node:events"
import * as Net from "node:net"
import { type Tenure, createTenure } from "@tenure/core"
import type { ApiRequest, Mountable } from "@tenure/core/adapter"
import { memory } from "@tenure/memory"
import { parseResponses } from "@tenure/testing/conformance"
import { expect } from "vitest"
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

/** Runs a test on a server with a project, a member and a key. */
export const serving = async (
  test: (running: Running) => Promise<void>,
  options: ServerOptions = {},
): Promise<void> => {
  const tenure = await createTenure({ stores: memory(), transport: nodeTransport })
  const { memberships } = tenure
  await memberships.createProject("p1")
  await memberships.grant({ projectId: "p1", userId: "1001", endDate: 1_000_000_000_000 })
  const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
  const server = await serve(tenure, { shutdownTimeout: 500, ...options })
  try {
    await test({ url: server.url, token, tenure })
  } finally {
    await server.close()
    await tenure.close()
  }
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

/** Joins the lines of a header, and adds the empty line at its end. */
export const lines = (...all: ReadonlyArray<string>): string => [...all, "", ""].join("\r\n")

/** Opens a connection that stays half-open when the other side closes it. */
export const connect = async (url: string): Promise<Net.Socket> => {
  const { hostname, port } = new URL(url)
  const socket = Net.connect({ host: hostname, port: Number(port), allowHalfOpen: true })
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
