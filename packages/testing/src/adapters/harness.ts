/** What the suite of adapters needs, and what its tests run with. */

import type { Server } from "node:http"
import type { Promises, Tenure, TenureOptions } from "@tenure/core"
import { type Incoming, send } from "../support/http.ts"

/** A running server. */
export interface RunningServer {
  /** For example `http://127.0.0.1:3000`. */
  readonly url: string
  readonly tenure: Promises
  readonly close: () => Promise<void>
}

/** How a host mounts the API. */
export interface Mount {
  /** The path that the API is mounted under, for example `/members`. Empty for none. */
  readonly path: string
  /** Whether the host's JSON parser runs before the API, if hosts of this kind have parsers. */
  readonly isBehindParser: boolean
}

/** An adapter to certify. */
export interface AdapterHarness {
  /**
   * Starts a server on stores that are empty and that no other server uses. Its transport for
   * webhooks can reach 127.0.0.1 if the options allow it.
   *
   * Besides the API, the host has routes of its own, after the API: `POST /own` responds with the
   * JSON that it receives, and `GET /broken` throws, which the host's error handler answers with
   * 418. Every other path is not found, as is usual for the host.
   */
  readonly start: (options: TenureOptions, mount: Mount) => Promise<RunningServer>
  /** Whether the server serves the API alone, without a host around it. `false` by default. */
  readonly isStandalone?: boolean | undefined
  /**
   * Whether requests with malformed bodies are answered behind the host's parser as they are before it.
   * `false` by default.
   */
  readonly isSameBehindParser?: boolean | undefined
}

/** Options of a request. The headers are added to those that the API requires. */
interface Call {
  readonly token?: string | undefined
  readonly headers?: Readonly<Record<string, string | ReadonlyArray<string>>>
  /** Sent as JSON, unless it is text or bytes. */
  readonly body?: unknown
}

/** A server with two projects, and an API key for each. */
export interface Fixture extends RunningServer {
  /** Opens `p1`, whose members are 1001, 1002 and 1003. */
  readonly token: string
  /** Opens `p2`, which has no members. */
  readonly otherToken: string
  /** Opens `p1` for an operator. */
  readonly operatorToken: string
  /** Sends a request with the token of `p1`, as JSON if it has a body. */
  readonly call: (method: string, path: string, call?: Call) => Promise<Incoming>
}

const bytesOf = (body: unknown): string | Uint8Array =>
  typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body)

/** The initial end date of the members of `p1`. */
export const initialEndDate = "2027-01-01T00:00:00.000Z"

const prepare = async (server: RunningServer): Promise<Fixture> => {
  const { apiKeys, memberships } = server.tenure
  await memberships.createProject("p1")
  await memberships.createProject("p2")
  for (const userId of ["1001", "1002", "1003"]) {
    await memberships.grant({ projectId: "p1", userId, endDate: initialEndDate })
  }
  const { token } = await apiKeys.issue({ projects: ["p1"] })
  const { token: otherToken } = await apiKeys.issue({ projects: ["p2"] })
  const { token: operatorToken } = await apiKeys.issue({ projects: ["p1"], role: "operator" })
  return {
    ...server,
    token,
    otherToken,
    operatorToken,
    call: (method, path, call = {}) => {
      const hasBody = call.body !== undefined
      return send(server.url, {
        method,
        path,
        headers: {
          authorization: `Bearer ${call.token ?? token}`,
          ...(hasBody && { "content-type": "application/json" }),
          ...call.headers,
        },
        ...(hasBody && { body: bytesOf(call.body) }),
      })
    },
  }
}

/** Returns a function that runs a test against a new server. */
export type Serving = (
  test: (fixture: Fixture) => Promise<void>,
  options?: TenureOptions,
  mount?: Partial<Mount>,
) => () => Promise<void>

// Limits that no test reaches by accident.
const generous: TenureOptions["rateLimits"] = {
  perKey: { limit: 1_000_000, window: "1 minute" },
  perAddress: { limit: 1_000_000, window: "1 minute" },
  burst: { limit: 1_000_000, window: "1 second" },
}

/** Returns the function that declares tests against new servers, by default before the host's parser. */
export const servingOn =
  ({ start }: AdapterHarness, isBehindParser = false): Serving =>
  (test, options, mount) =>
  async () => {
    const server = await start(
      { rateLimits: generous, ...options },
      { path: "", isBehindParser, ...mount },
    )
    try {
      await test(await prepare(server))
    } finally {
      await server.close()
    }
  }

/** Servers of hosts under test. */

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
