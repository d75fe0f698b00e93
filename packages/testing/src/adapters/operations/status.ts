/** The status of the server. */

import { describe, expect, it } from "vitest"
import { expectFailure, expectSuccess } from "../../support/envelope.ts"
import type { Serving } from "../AdapterHarness.ts"

const path = "/v2/status"

/** Declares the tests. */
export const statusTests = (serving: Serving): void => {
  describe("the status", () => {
    it(
      "says to an admin of all projects how the server is doing",
      serving(async ({ call, tenure }) => {
        const { token } = await tenure.apiKeys.issue({ projects: "all", role: "admin" })
        expectSuccess(await call("GET", path, { token }), "GET", path, {
          data: {
            versions: { tenure: expect.stringMatching(/^\d+\.\d+\.\d+/), api: "v2" },
            stores: {
              memberships: true,
              webhooks: true,
              api_keys: true,
              deliveries: true,
              rate_limits: true,
            },
            backlog: { waiting: 0, due_for_ms: null },
            disabled_webhooks: 0,
            suspended_keys: [],
          },
        })
        const unknown = await call("GET", `${path}?verbose=true`, { token })
        expectFailure(unknown, "GET", path, 422, "VALIDATION_ERROR")
      }),
    )
  })
}
