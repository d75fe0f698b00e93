/** What a server has to do besides that answers with Tenure alone. */

import { describe, expect, it } from "vitest"
import { type AdapterHarness, servingOn } from "./AdapterHarness.ts"
import { expectFailure } from "./envelope.ts"
import { send } from "./httpClient.ts"

/** Declares the suite. */
export const standaloneSuite = (name: string, harness: AdapterHarness): void => {
  const serving = servingOn(harness)
  describe(name, () => {
    it.each(["/", "/v2", "/v2/projects/p1", "/favicon.ico", "/v2/%zz", "//", "/v2/x?y=1"])(
      "answers 404 where there is nothing, with or without a key: %s",
      (path) =>
        serving(async ({ call, url }) => {
          const [pathOnly = ""] = path.split("?")
          expectFailure(await call("GET", path), "GET", pathOnly, 404, "ROUTE_NOT_FOUND")
          expectFailure(await send(url, { path }), "GET", pathOnly, 404, "ROUTE_NOT_FOUND")
        })(),
    )

    it(
      "does so for every method",
      serving(async ({ call }) => {
        for (const method of ["OPTIONS", "PUT", "PURGE"]) {
          expectFailure(await call(method, "/nothing"), method, "/nothing", 404, "ROUTE_NOT_FOUND")
        }
        expect((await call("HEAD", "/nothing")).status).toBe(404)
      }),
    )
  })
}
