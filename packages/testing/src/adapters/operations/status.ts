/** The status of the server. */

import { describe, expect, it } from "vitest"
import { expectFailure, expectSuccess, fieldsOf, instant } from "../../support/envelope.ts"
import type { Serving } from "../AdapterHarness.ts"

const path = "/v2/status"
const activity = "/v2/status/activity"

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
            failed_deliveries: 0,
            disabled_webhooks: 0,
            suspended_keys: [],
          },
        })
        const unknown = await call("GET", `${path}?verbose=true`, { token })
        expectFailure(unknown, "GET", path, 422, "VALIDATION_ERROR")
      }),
    )

    it(
      "says to an admin of all projects what this server has done in the last hour",
      serving(
        async ({ call, tenure }) => {
          const { token } = await tenure.apiKeys.issue({ projects: "all", role: "admin" })
          const refused = await tenure.apiKeys.issue({ projects: ["p1"], name: "busy" })
          for (let count = 0; count < 8; count++) {
            await call("GET", "/v2/identity", { token: refused.token })
          }
          const response = await call("GET", activity, { token })
          const { minutes, refusals } = fieldsOf(
            fieldsOf(expectSuccess(response, "GET", activity, { data: expect.any(Object) }))[
              "data"
            ],
          )
          expect(minutes).toHaveLength(60)
          expect(refusals).toEqual([{ key_id: refused.id, refused: 3 }])
          expect(minutes).toContainEqual({ at: instant, delivered: 0, failed: 0, refused: 3 })
        },
        { rateLimits: { perKey: { limit: 5, window: "1 hour" } } },
      ),
    )
  })
}
