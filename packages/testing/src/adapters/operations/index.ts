/** Identity, status and all other operations. */

import { describe, expect } from "vitest"
import { startReceiver } from "../../support/fixtures.ts"
import { expectFailure, expectSuccess, fieldsOf, instant, dataOf } from "../../support/http.ts"
import type { ServerTest } from "../harness.ts"
import { dryRunEventTests } from "./dry-run-events.ts"
import { durationTests } from "./durations.ts"
import { endsTests } from "./ends.ts"
import { eventTests } from "./events.ts"
import { conditionTests, extendAllTests, extendOneTests } from "./extending.ts"
import { grantingTests } from "./granting.ts"
import { idempotencyTests } from "./idempotency.ts"
import { importingTests } from "./importing.ts"
import { apiKeyTests, ticketTests } from "./keys.ts"
import { auditTests, projectTestsOn } from "./projects.ts"
import { webhookRepairTests } from "./webhook-repairs.ts"
import { webhookTests } from "./webhooks.ts"

const identityPath = "/v2/identity"

/** Declares the tests. */
const identityTests = (test: ServerTest): void => {
  describe("the identity", () => {
    test("says who sends a request, and what they may do", async ({ call, tenure }) => {
      const { id, token } = await tenure.apiKeys.issue({ projects: ["p1"], role: "operator" })
      expectSuccess(await call("GET", identityPath, { token }), {
        data: { key_id: id, role: "operator", projects: ["p1"], read_only: false },
      })
      const unknown = await call("GET", `${identityPath}?verbose=true`, { token })
      expectFailure(unknown, 422, "VALIDATION_ERROR")
    })
  })
}

/** The server's status. */

const path = "/v2/status"
const activity = "/v2/status/activity"

/** Declares the tests. */
const statusTests = (test: ServerTest): void => {
  describe("the status", () => {
    test("says to an admin of all projects how the server is doing", async ({ call, tenure }) => {
      const { token } = await tenure.apiKeys.issue({ projects: "all", role: "admin" })
      expectSuccess(await call("GET", path, { token }), {
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
      expectFailure(await call("GET", `${path}?verbose=true`, { token }), 422, "VALIDATION_ERROR")
    })

    test.with({ rateLimits: { perKey: { limit: 5, window: "1 hour" } } })(
      "says to an admin of all projects what was done in the last hour",
      async ({ call, tenure }) => {
        const { token } = await tenure.apiKeys.issue({ projects: "all", role: "admin" })
        const refused = await tenure.apiKeys.issue({ projects: ["p1"], name: "busy" })
        for (let count = 0; count < 8; count++) {
          await call("GET", "/v2/identity", { token: refused.token })
        }
        const response = await call("GET", activity, { token })
        const { minutes, refusals } = fieldsOf(
          fieldsOf(expectSuccess(response, { data: expect.any(Object) }))["data"],
        )
        expect(minutes).toHaveLength(60)
        expect(refusals).toEqual([{ key_id: refused.id, refused: 3 }])
        expect(minutes).toContainEqual({ at: instant, delivered: 0, failed: 0, refused: 3 })
      },
    )

    test.with({ webhooks: { allowedNetworks: ["127.0.0.0/8"], retrySchedule: [3_600_000] } })(
      "names webhooks that need attention, without the path of their URL",
      async ({ call, operatorToken, tenure }) => {
        const { token } = await tenure.apiKeys.issue({ projects: "all", role: "admin" })
        const receiver = await startReceiver((response) => void response.writeHead(500).end())
        const url = `${receiver.url}secret-path`
        const description = "a receiver"
        const { id } = await tenure.webhooks.create({ projectId: "p1", url, description })
        const event_id = await tenure.webhooks.ping({ projectId: "p1", webhookId: id })
        const needing = async () =>
          dataOf(await call("GET", path, { token }))["webhooks_needing_attention"]
        await expect.poll(needing, { timeout: 60_000 }).toEqual([
          {
            project_id: "p1",
            id,
            url_host: new URL(url).host,
            description,
            reason: "failing",
            since: instant,
            last_attempt: {
              at: instant,
              event_id,
              status: 500,
              error: null,
              duration_ms: expect.any(Number),
            },
            waiting: 1,
          },
        ])
        receiver.close()
        const ofProject = "/v2/projects/p1/activity"
        const minutes = await call("GET", ofProject, { token: operatorToken })
        const { data } = expectSuccess(minutes, { data: expect.any(Object) })
        expect(fieldsOf(data)["minutes"]).toHaveLength(60)
        expect(fieldsOf(data)["minutes"]).toContainEqual({ at: instant, delivered: 0, failed: 1 })
        const unknown = await call("GET", `${ofProject}?verbose=true`, { token: operatorToken })
        expectFailure(unknown, 422, "VALIDATION_ERROR")
      },
    )
  })
}

/** Declares the tests. */
export const operationsSuite = (test: ServerTest): void => {
  extendOneTests(test)
  extendAllTests(test)
  conditionTests(test)
  durationTests(test)
  dryRunEventTests(test)
  endsTests(test)
  grantingTests(test)
  importingTests(test)
  projectTestsOn(test)
  auditTests(test)
  webhookTests(test)
  webhookRepairTests(test)
  eventTests(test)
  idempotencyTests(test)
  apiKeyTests(test)
  identityTests(test)
  ticketTests(test)
  statusTests(test)
}
