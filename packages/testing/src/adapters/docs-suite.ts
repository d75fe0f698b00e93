/** The API's documentation: a document for programs and a page for people. */

import { describe, expect } from "vitest"
import { send } from "../support/http.ts"
import type { ServerTest } from "./harness.ts"

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
