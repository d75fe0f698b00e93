/** The API beside its host's routes, and its documentation. */

import { describe, expect } from "vitest"
import {
  exchange,
  expectElsewhere,
  expectFailure,
  expectNoDate,
  expectSuccess,
  parseResponses,
  send,
} from "../support/http.ts"
import { type Fixture, type ServerTest, extend, extendOne, webhooks } from "./harness.ts"

const extended = { total: 1, data: { new_end_date: extend } }

/** Paths outside the API, some similar to its paths. */
const strangers = [
  "/",
  "//",
  "/v2",
  "/v2/projects/p1/x",
  "/v2/projects/p1/memberships/1001/x",
  `${extendOne}/`,
  `/x${extendOne}`,
  extendOne.toUpperCase(),
  "/v2/projects/p1/integrations/webhooks/a/b",
  "/v2/%zz",
  "/favicon.ico?x=/v2/projects/p1/memberships/extend",
]

const own = ({ url }: Fixture, value: unknown) =>
  send(url, {
    method: "POST",
    path: "/own",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(value),
  })

export const hostSuite = (test: ServerTest): void => {
  describe("a host", () => {
    test("reads the bodies of its own routes", async (fixture) => {
      expect((await own(fixture, { a: ["b"] })).body).toEqual({ a: ["b"] })
      expect((await fixture.call("PATCH", extendOne, { body: { extend } })).status).toBe(200)
      expect((await own(fixture, { c: 1 })).body).toEqual({ c: 1 })
    })

    test("handles every request outside the API", async ({ call }) => {
      for (const path of strangers) {
        for (const method of ["GET", "PATCH", "OPTIONS"]) {
          const response = await call(method, path)
          expect([200, 204, 400, 404, 405]).toContain(response.status)
          expect(response.text).not.toContain("request_id")
          expect(response.headers["x-ratelimit-limit"]).toBeUndefined()
        }
      }
    })

    test("sees its own errors in its error handler, and none of the API", async (fixture) => {
      const { call, url } = fixture
      for (let count = 0; count < 2; count++) {
        expect((await send(url, { path: "/broken" })).status).toBe(418)
        expectFailure(await call("PATCH", extendOne, { body: "{" }), 400, "MALFORMED_REQUEST")
      }
    })

    test("accepts header names in upper and lower case", async ({ token, url }) => {
      const body = JSON.stringify({ extend })
      const raw = await exchange(
        url,
        [
          `PATCH ${extendOne} HTTP/1.1`,
          "HOST: localhost",
          `AUTHORIZATION: Bearer ${token}`,
          "cOnTeNt-TyPe: application/json",
          `CONTENT-LENGTH: ${body.length}`,
          "CONNECTION: close",
          "",
          body,
        ].join("\r\n"),
      )
      expect(parseResponses(raw)[0]?.status).toBe(200)
    })

    test.with({}, { isBehindParser: true })("can parse bodies before the API", async (fixture) => {
      expectSuccess(await fixture.call("PATCH", extendOne, { body: { extend } }), extended)
      expectNoDate(await fixture.call("PATCH", extendOne, { body: { extend: 1 } }))
      expect((await fixture.call("GET", webhooks)).status).toBe(200)
      expect((await own(fixture, { a: 1 })).body).toEqual({ a: 1 })
    })

    test.with({}, { path: "/members" })(
      "can mount the API under a path, and only there",
      async (fixture) => {
        const { call } = fixture
        const body = { extend }
        expectSuccess(await call("PATCH", `/members${extendOne}`, { body }), extended)
        expectFailure(await call("PUT", `/members${webhooks}`), 405, "METHOD_NOT_ALLOWED")
        for (const id of ["%zz", "%c3"]) {
          const malformed = `/members/v2/projects/p1/memberships/${id}/extend`
          expectFailure(await call("PATCH", malformed, { body }), 400, "MALFORMED_REQUEST")
        }
        for (const path of [extendOne, `/members/x${extendOne}`, "/members"]) {
          expectElsewhere(await call("PATCH", path, { body }))
        }
        expect((await own(fixture, { a: 1 })).body).toEqual({ a: 1 })
      },
    )
  })
}

const document = "/v2/openapi.json"
const asyncDocument = "/v2/asyncapi.json"
const page = "/v2/docs"

export const docsSuite = (test: ServerTest): void => {
  describe("the documentation", () => {
    for (const basePath of ["", "/members"]) {
      test.with({ basePath })(
        `is two documents and a page that need no key, below the path ${JSON.stringify(basePath)}`,
        async ({ url }) => {
          const get = (path: string) => send(url, { path: `${basePath}${path}` })
          const [api, events, html] = await Promise.all([document, asyncDocument, page].map(get))
          const servedAt = basePath === "" ? {} : { pathname: basePath }
          const headers = {
            "content-type": "application/json",
            "x-ratelimit-limit": expect.stringMatching(/^\d+$/),
          }
          expect([api, events, html]).toMatchObject([
            {
              status: 200,
              headers,
              body: { openapi: "3.1.0", servers: [{ url: basePath || "/" }] },
            },
            {
              status: 200,
              headers,
              body: { asyncapi: "3.0.0", servers: { api: servedAt } },
            },
            {
              status: 200,
              headers: {
                "content-type": "text/html; charset=utf-8",
                "content-security-policy": expect.stringMatching(
                  /^default-src 'none'; style-src 'sha256-/,
                ),
              },
              // It runs no scripts.
              text: expect.not.stringContaining("<script"),
            },
          ])
        },
      )
    }

    test.with({ rateLimits: { perAddress: { limit: 1, window: "1 minute" } } })(
      "counts towards the limit of an address",
      async ({ url }) => {
        expect((await send(url, { path: document })).status).toBe(200)
        expect((await send(url, { path: page })).status).toBe(429)
      },
    )

    test.with({ docs: false })("can be left out", async ({ call }) => {
      for (const path of [document, asyncDocument, page]) {
        expect((await call("GET", path)).status).toBe(404)
      }
    })
  })
}
