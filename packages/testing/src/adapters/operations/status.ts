/** The status and the activity of the server and of a project. */

import { describe, expect } from "vitest"
import { dataOf, expectSuccess, instant } from "../../support/http.ts"
import { type ServerTest, project } from "../harness.ts"

export const statusTests = (test: ServerTest): void => {
  describe("the status", () => {
    test("says to an admin of all projects how the server is doing", async ({ administer }) => {
      expectSuccess(await administer("GET", "/v2/status"), {
        data: {
          versions: { tenure: expect.stringMatching(/^\d+\.\d+\.\d+/), api: "v2" },
          stores: {
            memberships: true,
            webhooks: true,
            api_keys: true,
            deliveries: true,
            rate_limits: true,
          },
          backlog: { waiting: 0, due_for_ms: null, late_for_ms: null },
          failed_deliveries: 0,
          disabled_webhooks: 0,
          webhooks_needing_attention: [],
          rate_limiting: "store",
          suspended_keys: [],
          missing_encryption_keys: [],
        },
      })
    })

    test.with({ rateLimits: { perKey: { limit: 5, window: "1 hour" } } })(
      "says to an admin of all projects what was done in the last hour",
      async ({ administer, call, tenure }) => {
        const { id, token } = await tenure.apiKeys.issue({ projects: ["p1"], name: "busy" })
        for (let count = 0; count < 8; count++) await call("GET", "/v2/identity", { token })
        const response = await administer("GET", "/v2/status/activity")
        expectSuccess(response, { data: expect.any(Object) })
        const { minutes, refusals } = dataOf(response)
        expect(minutes).toHaveLength(60)
        expect(refusals).toEqual([{ key_id: id, refused: 3 }])
        expect(minutes).toContainEqual({ at: instant, delivered: 0, failed: 0, refused: 3 })
      },
    )

    test.with({ webhooks: { allowedNetworks: ["127.0.0.0/8"], retrySchedule: [3_600_000] } })(
      "names webhooks that need attention, without the path of their URL",
      async ({ administer, operate, receiver, tenure }) => {
        const failing = await receiver((response) => void response.writeHead(500).end())
        const url = `${failing.url}secret-path`
        const description = "a receiver"
        const { id } = await tenure.webhooks.create({ projectId: "p1", url, description })
        const event_id = await tenure.webhooks.ping({ projectId: "p1", webhookId: id })
        const last_attempt = {
          at: instant,
          event_id,
          status: 500,
          error: null,
          duration_ms: expect.any(Number),
        }
        const needing = async () =>
          dataOf(await administer("GET", "/v2/status"))["webhooks_needing_attention"]
        await expect.poll(needing, { timeout: 60_000 }).toEqual([
          {
            project_id: "p1",
            id,
            url_host: new URL(url).host,
            description,
            reason: "failing",
            since: instant,
            last_attempt,
            waiting: 1,
          },
        ])
        const { minutes } = dataOf(await operate("GET", `${project}/activity`))
        expect(minutes).toHaveLength(60)
        expect(minutes).toContainEqual({ at: instant, delivered: 0, failed: 1 })
      },
    )
  })
}
