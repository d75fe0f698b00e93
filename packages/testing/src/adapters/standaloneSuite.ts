/** A server without a host: every other path is not found. */

import { describe, expect, it } from "vitest"
import { expectFailure } from "../support/envelope.ts"
import { send } from "../support/httpClient.ts"
import type { Serving } from "./AdapterHarness.ts"

const paths = ["/", "/v2", "/v2/projects/p1/x", "/favicon.ico", "/v2/%zz", "//", "/v2/x?y=1"]

/** Declares the tests. */
export const standaloneSuite = (serving: Serving): void => {
  describe("a path outside the API", () => {
    it(
      "is answered with 404, with or without a token",
      serving(async ({ call, url }) => {
        for (const path of paths) {
          const [pathOnly = ""] = path.split("?")
          expectFailure(await call("GET", path), "GET", pathOnly, 404, "ROUTE_NOT_FOUND")
          expectFailure(await send(url, { path }), "GET", pathOnly, 404, "ROUTE_NOT_FOUND")
        }
      }),
    )

    it(
      "is answered with 404 for every method",
      serving(async ({ call }) => {
        for (const method of ["OPTIONS", "PUT", "PURGE"]) {
          expectFailure(await call(method, "/nothing"), method, "/nothing", 404, "ROUTE_NOT_FOUND")
        }
        expect((await call("HEAD", "/nothing")).status).toBe(404)
      }),
    )
  })
}
