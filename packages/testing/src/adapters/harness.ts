/** The adapter suite's harness and fixtures. */

import type { Server } from "node:http"
import type { Promises, Tenure, TenureOptions } from "@tenure/core"
import { it } from "vitest"
import { type Answer, type Receiver, startReceiver } from "../support/fixtures.ts"
import { type Incoming, send } from "../support/http.ts"

/** A running server. */
export interface RunningServer {
  /** For example `http://127.0.0.1:3000`. */
  readonly url: string
  /** With `close`, unless the host closes it itself. */
  readonly tenure: Promises & Partial<Pick<Tenure, "close">>
  /** Closes the server, and then Tenure, if it is open. */
  readonly close: () => Promise<void>
}

/** How a host mounts the API. */
export interface Mount {
  /** The API's mount path, for example `/members`. Empty for none. */
  readonly path: string
  /** Whether the host's JSON parser runs before the API, for hosts with parsers. */
  readonly isBehindParser: boolean
}

/** An adapter to certify. */
export interface AdapterHarness {
  /**
   * Starts a server on new, empty stores. Its webhook transport can reach 127.0.0.1 if the options
   * allow it.
   *
   * After the API, the host has its own routes: `POST /own` responds with the received JSON, and `GET
   * /broken` throws; the host's error handler answers it 418. All other paths are not found, as usual
   * for the host.
   */
  readonly start: (options: TenureOptions, mount: Mount) => Promise<RunningServer>
  /** Whether the server serves the API alone, without a host around it. `false` by default. */
  readonly isStandalone?: boolean | undefined
  /**
   * Whether to test every operation and role, rate limits and webhooks. `false` suits a host that shares
   * its adapter with a certified one, because operations do not depend on the host. Default: `true`.
   */
  readonly testsOperations?: boolean | undefined
  /**
   * Whether requests with malformed bodies are answered behind the host's parser as they are before it.
   * `false` by default.
   */
  readonly isSameBehindParser?: boolean | undefined
}

/** A request's options. The headers are added to the required ones. */
interface Call {
  readonly token?: string | undefined
  readonly headers?: Readonly<Record<string, string | ReadonlyArray<string>>>
  /** Sent as JSON, unless it is text or bytes. */
  readonly body?: unknown
}

/** Sends a request with a certain key. */
type Send = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Call["headers"],
) => Promise<Incoming>

/** A server with two projects, and API keys. */
export interface Fixture extends RunningServer {
  /** Opens `p1` with the members 1001, 1002 and 1003. */
  readonly token: string
  /** Opens `p2` without members. */
  readonly otherToken: string
  /** Sends a request with the token for `p1`, as JSON if it has a body. */
  readonly call: (method: string, path: string, call?: Call) => Promise<Incoming>
  readonly operate: Send
  /** Sends a request as an admin for all projects. */
  readonly administer: Send
  /** Starts a webhook receiver, and closes it after the test. */
  readonly receiver: (answer?: Answer) => Promise<Receiver>
}

const bytesOf = (body: unknown): string | Uint8Array =>
  typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body)

/** Paths in the project with members. */
export const project = "/v2/projects/p1"
export const members = `${project}/memberships`
export const extendOne = `${members}/1001/extend`
export const extendAll = `${members}/extend`
export const imports = `${members}/import`
export const webhooks = `${project}/integrations/webhooks`
export const events = `${project}/events`

/** The initial end date for the members in `p1`, in the future and before `extend`. */
export const initialEndDate = "2097-01-01T00:00:00.000Z"

/** An end date in the far future. */
export const extend = "2099-01-01T00:00:00.000Z"

/** An unknown id. */
export const unknownId = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"

/** The type for JSON in lines. */
export const asLines = { "content-type": "application/x-ndjson" }

/** Returns the header with an idempotency key. */
export const keyed = (key: string | ReadonlyArray<string> = crypto.randomUUID()) => ({
  "idempotency-key": key,
})

/** Returns the end dates in `p1`, as the API writes them. */
export const endDatesOf = async ({ tenure }: Fixture): Promise<ReadonlyArray<string>> =>
  (await tenure.memberships.list({ projectId: "p1" })).map(({ endDate }) =>
    new Date(endDate).toISOString(),
  )

const prepare = async (server: RunningServer, closing: Array<() => void>): Promise<Fixture> => {
  const { apiKeys, memberships } = server.tenure
  await memberships.createProject("p1")
  await memberships.createProject("p2")
  for (const userId of ["1001", "1002", "1003"]) {
    await memberships.grant({ projectId: "p1", userId, endDate: initialEndDate })
  }
  const { token } = await apiKeys.issue({ projects: ["p1"] })
  const { token: otherToken } = await apiKeys.issue({ projects: ["p2"] })
  const operator = await apiKeys.issue({ projects: ["p1"], role: "operator", name: "billing" })
  const admin = await apiKeys.issue({ projects: "all", role: "admin", name: "Ada" })
  const call: Fixture["call"] = (method, path, sent = {}) => {
    const hasBody = sent.body !== undefined
    return send(server.url, {
      method,
      path,
      headers: {
        authorization: `Bearer ${sent.token ?? token}`,
        ...(hasBody && { "content-type": "application/json" }),
        ...sent.headers,
      },
      ...(hasBody && { body: bytesOf(sent.body) }),
    })
  }
  const by =
    (key: { readonly token: string }): Send =>
    (method, path, body, headers = {}) =>
      call(method, path, { token: key.token, body, headers })
  return {
    ...server,
    token,
    otherToken,
    call,
    operate: by(operator),
    administer: by(admin),
    receiver: async (answer) => {
      const receiver = await startReceiver(answer)
      closing.push(receiver.close)
      return receiver
    },
  }
}

type Run = (fixture: Fixture) => Promise<void>

/** Declares a test against a new server. */
export interface ServerTest {
  (name: string, run: Run): void
  /** Returns a function to declare tests against servers with options, or mounted elsewhere. */
  readonly with: (
    options: TenureOptions,
    mount?: Partial<Mount>,
  ) => (name: string, run: Run) => void
}

// Limits beyond any test's reach.
const generous: TenureOptions["rateLimits"] = {
  perKey: { limit: 1_000_000, window: "1 minute" },
  perAddress: { limit: 1_000_000, window: "1 minute" },
  burst: { limit: 1_000_000, window: "1 second" },
}

/** Returns a function to declare tests against new servers, by default before the host's parser. */
export const serverTest = ({ start }: AdapterHarness, isBehindParser = false): ServerTest => {
  const declaring: ServerTest["with"] = (options, mount) => (name, run) =>
    it(name, async () => {
      const server = await start(
        { rateLimits: generous, ...options },
        { path: "", isBehindParser, ...mount },
      )
      const closing: Array<() => void> = []
      try {
        await run(await prepare(server, closing))
      } finally {
        for (const close of closing) close()
        await server.close()
      }
    })
  return Object.assign(declaring({}), { with: declaring })
}

/** Starts a host's server on a free port. Its `close` also closes all connections, and Tenure. */
export const listening = async (server: Server, tenure: Tenure): Promise<RunningServer> => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" ? address?.port : undefined
  const close = async () => {
    server.close()
    server.closeAllConnections()
    await tenure.close()
  }
  return { url: `http://127.0.0.1:${port}`, tenure, close }
}
