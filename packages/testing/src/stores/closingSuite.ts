/** What becomes of Tenure on a store after it was closed. */

import * as Tenure from "@tenure/core/Tenure"
import * as Effect from "effect/Effect"
import { expect } from "vitest"
import type { StoreHarness } from "./StoreHarness.ts"
import type { Registry } from "./storeTests.ts"

/** Declares the tests of a store that was closed. */
export const closingSuite = <Host>(
  { layer }: StoreHarness<Host>,
  { describe, it }: Registry,
): void => {
  describe("after closing", () => {
    it(
      "requests are answered 503 in the envelope, Tenure is not ready, and calls fail",
      Effect.promise(async () => {
        const tenure = await Tenure.make({ stores: layer })
        await tenure.memberships.createProject("p1")
        const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
        await tenure.close()
        const response = await tenure.handle({
          method: "GET",
          path: "/v2/projects/p1/integrations/webhooks",
          headers: { authorization: `Bearer ${token}` },
          body: { _tag: "Bytes", bytes: new Uint8Array() },
          remoteAddress: undefined,
        })
        expect(response).toMatchObject({ status: 503, headers: { "Retry-After": "5" } })
        expect(JSON.parse(String(response.body))).toMatchObject({
          ok: false,
          error: { error_code: "SERVICE_UNAVAILABLE" },
        })
        expect(await tenure.isReady()).toBe(false)
        await expect(tenure.memberships.createProject("p2")).rejects.toMatchObject({
          _tag: "StoreUnavailable",
        })
      }),
    )
  })
}
