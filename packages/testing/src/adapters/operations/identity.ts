/** Who sends a request. */

import { describe, it } from "vitest"
import { expectFailure, expectSuccess } from "../../support/envelope.ts"
import type { Serving } from "../AdapterHarness.ts"

const path = "/v2/identity"

/** Declares the tests. */
export const identityTests = (serving: Serving): void => {
  describe("the identity", () => {
    it(
      "says who sends a request, and what they may do",
      serving(async ({ call, tenure }) => {
        const { id, token } = await tenure.apiKeys.issue({ projects: ["p1"], role: "operator" })
        expectSuccess(await call("GET", path, { token }), "GET", path, {
          data: { key_id: id, role: "operator", projects: ["p1"], read_only: false },
        })
        const unknown = await call("GET", `${path}?verbose=true`, { token })
        expectFailure(unknown, "GET", path, 422, "VALIDATION_ERROR")
      }),
    )
  })
}
