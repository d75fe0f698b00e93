/** Servers for the tests, on real sockets, and their clients. */

import { randomUUID } from "node:crypto"
import * as Http from "node:http"
import { type CreateTenureOptions, type Tenure, createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { nodeTransport, serve } from "@tenure/node-http"
import { type Client, type ClientOptions, createClient } from "../src/create-client.ts"

type MakeClient = (options?: Partial<ClientOptions>) => Client

/** Runs a test on a Tenure server with project `p1` and members 1001, 1002 and 1003. */
export const serving = async (
  test: (running: { readonly tenure: Tenure; readonly client: MakeClient }) => Promise<unknown>,
  options: Partial<CreateTenureOptions> = {},
): Promise<void> => {
  const webhooks = { allowedNetworks: ["127.0.0.0/8"] }
  const tenure = await createTenure({
    stores: memory(),
    transport: nodeTransport,
    webhooks,
    ...options,
  })
  const server = await serve(tenure)
  try {
    await tenure.memberships.createProject("p1")
    const memberships = ["1001", "1002", "1003"].map((userId) => ({ userId, endDate: 1e12 }))
    await tenure.memberships.import({ projectId: "p1", memberships })
    const { token } = await tenure.apiKeys.issue({ projects: "all", role: "admin" })
    const client: MakeClient = (given) => createClient({ baseUrl: server.url, token, ...given })
    await test({ tenure, client })
  } finally {
    await server.close()
    await tenure.close()
  }
}

/** A scripted server, and its received requests. */
interface Scripted {
  readonly url: string
  readonly received: ReadonlyArray<Http.IncomingMessage>
  readonly client: MakeClient
}

/** Runs a test on a server that answers each request with `answer`. */
export const answering = async (
  answer: (response: Http.ServerResponse, request: Http.IncomingMessage, count: number) => void,
  test: (server: Scripted) => Promise<unknown>,
): Promise<void> => {
  const received: Array<Http.IncomingMessage> = []
  const server = Http.createServer((request, response) => {
    received.push(request)
    answer(response, request, received.length)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`
  const client: MakeClient = (given) => createClient({ baseUrl: url, token: "t", ...given })
  try {
    await test({ url, received, client })
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

const envelope = { request_id: randomUUID(), method: "GET", path: "/" }

/** Returns a success body. */
export const success = (data: unknown, more: object = {}): string =>
  JSON.stringify({ ok: true, ...envelope, code: 200, message: "Done.", ...more, data })

/** Returns a failure body. */
export const failure = (status: number, error: object): string =>
  JSON.stringify({ ok: false, ...envelope, code: status, error })

/** Returns a call's rejection. */
export const errorOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  )

/** Makes a `sleep` that returns at once and records the wait. */
export const recordedSleep = () => {
  const waits: Array<number> = []
  const sleep = async (millis: number): Promise<void> => void waits.push(millis)
  return { waits, sleep }
}

/** Makes a `fetch` that loses the first `count` responses, and records every idempotency key. */
export const losing = (count: number) => {
  const keys: Array<string | null> = []
  const fetchAndLose: typeof fetch = async (input, init) => {
    const response = await fetch(input, init)
    if (keys.push(new Headers(init?.headers).get("idempotency-key")) > count) return response
    await response.text()
    throw new TypeError("fetch failed")
  }
  return { keys, fetch: fetchAndLose }
}
