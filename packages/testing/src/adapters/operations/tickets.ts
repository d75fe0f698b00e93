/** Tickets, with which browsers follow the feed. */

import { describe, expect, it } from "vitest"
import { expectFailure, expectSuccess, fieldsOf, instant } from "../../support/envelope.ts"
import { send } from "../../support/httpClient.ts"
import type { Fixture, Serving } from "../AdapterHarness.ts"

const tickets = "/v2/realtime/tickets"
const feedOf = (project: string) => `/v2/projects/${project}/events`

/** Issues a ticket for the feed of `p1`. */
const issue = async ({ call }: Fixture, token?: string): Promise<string> => {
  const response = await call("POST", tickets, { token, body: { projects: ["p1"] } })
  const { data } = expectSuccess(response, "POST", tickets, {
    data: { ticket: expect.stringMatching(/^tkt_[\w-]{43}$/), expires_at: instant },
  })
  return String(fieldsOf(data)["ticket"])
}

/** Sends a request with a ticket in place of a key. */
const by = ({ url }: Fixture, ticket: string, path: string, method = "GET") =>
  send(url, { method, path: `${path}?ticket=${ticket}` })

const usingTests = (serving: Serving): void => {
  it(
    "opens the feed of its project once",
    serving(async (fixture) => {
      const ticket = await issue(fixture)
      expect((await by(fixture, ticket, feedOf("p1"))).status).toBe(200)
      const again = await by(fixture, ticket, feedOf("p1"))
      expectFailure(again, "GET", feedOf("p1"), 401, "UNAUTHORIZED")
    }),
  )

  it(
    "opens nothing else",
    serving(async (fixture) => {
      const foreign = await by(fixture, await issue(fixture), feedOf("p2"))
      expectFailure(foreign, "GET", feedOf("p2"), 404, "PROJECT_NOT_FOUND")
      for (const [method, path] of [
        ["GET", "/v2/projects/p1/memberships"],
        ["PATCH", "/v2/projects/p1/memberships/extend"],
        ["POST", feedOf("p1")],
        ["POST", tickets],
      ] as const) {
        const response = await by(fixture, await issue(fixture), path, method)
        expectFailure(response, method, path, 401, "UNAUTHORIZED")
      }
    }),
  )

  it(
    "is not known if it was made up",
    serving(async (fixture) => {
      for (const ticket of ["", "x", fixture.token, `tkt_${"A".repeat(43)}`]) {
        const response = await by(fixture, ticket, feedOf("p1"))
        expectFailure(response, "GET", feedOf("p1"), 401, "UNAUTHORIZED")
      }
    }),
  )

  it(
    "ends with its key",
    serving(async (fixture) => {
      const { apiKeys } = fixture.tenure
      const { id, token } = await apiKeys.issue({ projects: ["p1"] })
      const ticket = await issue(fixture, token)
      await apiKeys.revoke(id)
      const response = await by(fixture, ticket, feedOf("p1"))
      expectFailure(response, "GET", feedOf("p1"), 401, "UNAUTHORIZED")
    }),
  )

  it(
    "is issued by the authentication of the host, too",
    serving(
      async (fixture) => {
        const ticket = await issue(fixture)
        expect((await by(fixture, ticket, feedOf("p1"))).status).toBe(200)
        const again = await by(fixture, ticket, feedOf("p1"))
        expectFailure(again, "GET", feedOf("p1"), 401, "UNAUTHORIZED")
      },
      {
        authenticate: ({ headers }) =>
          headers["authorization"] === undefined
            ? undefined
            : { keyId: "user-7", projects: ["p1"], role: "operator" },
      },
    ),
  )
}

const issuingTests = (serving: Serving): void => {
  it(
    "needs projects that the key opens",
    serving(async ({ call }) => {
      const foreign = await call("POST", tickets, { body: { projects: ["p1", "p2"] } })
      expectFailure(foreign, "POST", tickets, 404, "PROJECT_NOT_FOUND")
    }),
  )

  it(
    "may open all projects that its key opens",
    serving(async (fixture) => {
      for (const [projects, statuses] of [
        ["all", [200, 200]],
        [["p2"], [404, 200]],
      ] as const) {
        const { token } = await fixture.tenure.apiKeys.issue({ projects })
        const found: Array<number> = []
        for (const project of ["p1", "p2"]) {
          const issued = await fixture.call("POST", tickets, { token, body: { projects: "all" } })
          const ticket = String(fieldsOf(fieldsOf(issued.body)["data"])["ticket"])
          found.push((await by(fixture, ticket, feedOf(project))).status)
        }
        expect(found).toEqual(statuses)
      }
    }),
  )

  it.each([{}, { projects: [] }, { projects: [7] }, { projects: "p1" }, { project: "p1" }])(
    "is not issued for %j",
    (body) =>
      serving(async ({ call }) => {
        const response = await call("POST", tickets, { body })
        expectFailure(response, "POST", tickets, 422, "VALIDATION_ERROR")
      })(),
  )
}

/** Declares the tests. */
export const ticketTests = (serving: Serving): void => {
  describe("a ticket", () => {
    usingTests(serving)
    issuingTests(serving)
  })
}
