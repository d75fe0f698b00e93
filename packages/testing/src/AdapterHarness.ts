/** What a suite needs of the adapter it judges. */

import type { Options, Promises } from "@tenure/core/Tenure"
import { type Incoming, send } from "./httpClient.ts"

/** A server that answers with Tenure. */
export interface RunningServer {
  /** Where it listens, such as `http://127.0.0.1:3000`. */
  readonly url: string
  readonly tenure: Promises
  readonly close: () => Promise<void>
}

/** How the API stands in its host. */
export interface Mount {
  /** The path that it is mounted under, such as `/members`; empty for none. */
  readonly path: string
  /** Whether the host's own parser of JSON comes before it, if such a host has parsers at all. */
  readonly isBehindParser: boolean
}

/** An adapter to be judged. */
export interface AdapterHarness {
  /**
   * Starts a server of a host, with a transport for webhooks that can reach 127.0.0.1 if the options
   * allow it, on stores that are empty and shared with no other server.
   *
   * Besides the API the host has routes of its own, after it: `POST /own` answers with the JSON that
   * it was sent, `GET /broken` throws, and what it throws is answered 418 by the host's own handler
   * of errors. All else is not found, in the way of such hosts.
   */
  readonly start: (options: Options, mount: Mount) => Promise<RunningServer>
}

/** Options of a request; the headers come besides those that the API requires. */
interface Call {
  readonly token?: string | undefined
  readonly headers?: Readonly<Record<string, string | ReadonlyArray<string>>>
  /** Sent as JSON, unless it is text or bytes. */
  readonly body?: unknown
}

/** A server with two projects, and a key for each. */
export interface Fixture extends RunningServer {
  /** Opens `p1`, which has the members 1001, 1002 and 1003. */
  readonly token: string
  /** Opens `p2`, which has no members. */
  readonly otherToken: string
  /** Sends a request with the token of `p1`, and JSON where there is a body. */
  readonly call: (method: string, path: string, call?: Call) => Promise<Incoming>
}

const bytesOf = (body: unknown): string | Uint8Array =>
  typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body)

/** The end date that the members of `p1` start with. */
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
  return {
    ...server,
    token,
    otherToken,
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

/** Runs a test against a server of its own. */
export type Serving = (
  test: (fixture: Fixture) => Promise<void>,
  options?: Options,
  mount?: Partial<Mount>,
) => () => Promise<void>

// Limits that no test runs into by accident.
const generous: Options["rateLimits"] = {
  perKey: { limit: 1_000_000, window: "1 minute" },
  perAddress: { limit: 1_000_000, window: "1 minute" },
  burst: { limit: 1_000_000, window: "1 second" },
}

/** Makes the function that runs tests against servers of their own. */
export const servingOn =
  ({ start }: AdapterHarness): Serving =>
  (test, options, mount) =>
  async () => {
    const server = await start(
      { rateLimits: generous, ...options },
      { path: "", isBehindParser: false, ...mount },
    )
    try {
      await test(await prepare(server))
    } finally {
      await server.close()
    }
  }
