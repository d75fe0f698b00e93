/** Certifies adapters. */

import { describe, expect } from "vitest"
import { accessSuite, bucketsSuite, limitsSuite, rolesSuite } from "./adapters/access-suite.ts"
import { eventsSuite, feedSuite } from "./adapters/feed-suite.ts"
import { type AdapterHarness, type ServerTest, serverTest } from "./adapters/harness.ts"
import { docsSuite, hostSuite } from "./adapters/host-suite.ts"
import { connectionsSuite, malformedSuite, parsedSuite } from "./adapters/http-suite.ts"
import { operationsSuite } from "./adapters/operations/index.ts"
import { expectFailure, send } from "./support/http.ts"

const paths = ["/", "/v2", "/v2/projects/p1/x", "/favicon.ico", "/v2/%zz", "//", "/v2/x?y=1"]

/** Declares the tests for a server without a host: every other path is not found. */
const standaloneSuite = (test: ServerTest): void => {
  describe("a path outside the API", () => {
    test("is answered with 404, with or without a token", async ({ call, url }) => {
      for (const path of paths) {
        expectFailure(await call("GET", path), 404, "ROUTE_NOT_FOUND")
        expectFailure(await send(url, { path }), 404, "ROUTE_NOT_FOUND")
      }
    })

    test("is answered with 404 for every method", async ({ call }) => {
      for (const method of ["OPTIONS", "PUT", "PURGE"]) {
        expectFailure(await call(method, "/nothing"), 404, "ROUTE_NOT_FOUND")
      }
      expect((await call("HEAD", "/nothing")).status).toBe(404)
    })
  })
}

/**
 * Declares the tests to certify an adapter: mounted in a host, or serving the API alone. They cover the
 * whole API over real connections.
 */
export const adapterSuite = (name: string, harness: AdapterHarness): void => {
  const test = serverTest(harness)
  describe(name, () => {
    if (harness.testsOperations !== false) {
      operationsSuite(test)
      rolesSuite(test)
      bucketsSuite(test)
      eventsSuite(test)
    }
    accessSuite(test)
    limitsSuite(test)
    malformedSuite(test)
    feedSuite(test)
    connectionsSuite(test)
    docsSuite(test)
    if (harness.isSameBehindParser === true) parsedSuite(serverTest(harness, true))
    if (harness.isStandalone === true) standaloneSuite(test)
    else hostSuite(test)
  })
}
