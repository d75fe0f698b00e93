/** The API's documentation: a document for programs and a page for people. */

import { describe, expect } from "vitest"
import { send } from "../support/http.ts"
import type { ServerTest } from "./harness.ts"

const document = "/v2/openapi.json"
const asyncDocument = "/v2/asyncapi.json"
const page = "/v2/docs"

/** Declares the tests. */
export const docsSuite = (test: ServerTest): void => {
  describe("the documentation", () => {
    test("is a document that needs no key", async ({ url }) => {
      const { body, headers, status } = await send(url, { path: document })
      expect(status).toBe(200)
      expect(headers["content-type"]).toBe("application/json")
      expect(headers["x-ratelimit-limit"]).toMatch(/^\d+$/)
      expect(body).toMatchObject({ openapi: "3.1.0", servers: [{ url: "/" }] })
    })

    test.with({ basePath: "/members" })(
      "is a document of events, under the path of the API",
      async ({ url }) => {
        const { body, headers, status } = await send(url, { path: `/members${asyncDocument}` })
        expect(status).toBe(200)
        expect(headers["content-type"]).toBe("application/json")
        expect(body).toMatchObject({
          asyncapi: "3.0.0",
          servers: { api: { pathname: "/members" } },
        })
      },
    )

    test("is a page that needs no key and runs no scripts", async ({ url }) => {
      const { headers, status, text } = await send(url, { path: page })
      expect(status).toBe(200)
      expect(headers["content-type"]).toBe("text/html; charset=utf-8")
      expect(headers["content-security-policy"]).toMatch(/^default-src 'none'; style-src 'sha256-/)
      expect(text).not.toContain("<script")
    })

    test.with({ basePath: "/members" })(
      "names the path under which the API is mounted",
      async ({ url }) => {
        const { body } = await send(url, { path: `/members${document}` })
        expect(body).toMatchObject({ servers: [{ url: "/members" }] })
      },
    )

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
