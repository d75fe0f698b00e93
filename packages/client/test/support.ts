/** Servers for the tests, on real sockets. */

import { randomUUID } from "node:crypto"
import * as Http from "node:http"
import { type CreateTenureOptions, type Tenure, createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { nodeTransport, serve } from "@tenure/node-http"
import { postgres } from "@tenure/postgres"
import { inject } from "vitest"
import { type Client, type ClientOptions, createClient } from "../src/create-client.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

/** Where the server keeps its data: in memory, or in a schema of its own. */
export const stores = {
  memory: () => memory(),
  PostgreSQL: () =>
    postgres({ url: inject("databaseUrl"), schema: `client_${randomUUID().replaceAll("-", "")}` }),
}

/** A server of Tenure, and how to reach it. */
export interface Running {
  readonly tenure: Tenure
  readonly url: string
  readonly token: string
  /** Makes a client with a key for the project `p1`, whose members are 1001, 1002 and 1003. */
  readonly client: (options?: Partial<ClientOptions>) => Client
}

/** Runs a test on a server of Tenure. */
export const serving = async (
  options: CreateTenureOptions,
  test: (running: Running) => Promise<unknown>,
): Promise<void> => {
  const webhooks = { allowedNetworks: ["127.0.0.0/8"] }
  const tenure = await createTenure({ transport: nodeTransport, webhooks, ...options })
  const server = await serve(tenure)
  try {
    await tenure.memberships.createProject("p1")
    const memberships = ["1001", "1002", "1003"].map((userId) => ({ userId, endDate: 1e12 }))
    await tenure.memberships.import({ projectId: "p1", memberships })
    const { token } = await tenure.apiKeys.issue({ projects: "all", role: "admin" })
    const { url } = server
    const client = (given?: Partial<ClientOptions>) =>
      createClient({ baseUrl: url, token, ...given })
    await test({ tenure, url, token, client })
  } finally {
    await server.close()
    await tenure.close()
  }
}

/** A server that answers as the test says, and what it received. */
export interface Scripted {
  readonly url: string
  readonly received: ReadonlyArray<Http.IncomingMessage>
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
  const port = typeof address === "object" ? address?.port : undefined
  try {
    await test({ url: `http://127.0.0.1:${port}`, received })
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

const envelope = { request_id: randomUUID(), method: "GET", path: "/" }

/** The text of a success. */
export const success = (data: unknown, more: object = {}): string =>
  JSON.stringify({ ok: true, ...envelope, code: 200, message: "Done.", ...more, data })

/** The text of a failure. */
export const failure = (status: number, error: object): string =>
  JSON.stringify({ ok: false, ...envelope, code: status, error })

/** A fake wait, which takes no time and is recorded. */
export const recordedSleep = () => {
  const waits: Array<number> = []
  const sleep = async (millis: number): Promise<void> => void waits.push(millis)
  return { waits, sleep }
}
