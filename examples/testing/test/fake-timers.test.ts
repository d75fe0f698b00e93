/**
 * Time with promises: Tenure follows the fake timers of vitest. They must include `setImmediate`, as
 * they do by default, because Effect uses it between timers.
 */

import { type Tenure, createTenure } from "@tenure/core"
import { verifySignature } from "@tenure/core/signature"
import { fetchHandler } from "@tenure/fetch"
import { memory } from "@tenure/memory"
import * as Result from "effect/Result"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { isMember } from "../src/promises.ts"
import { recording } from "./recording.ts"

const projectId = "club"
const member = { projectId, userId: "1" }

let tenure: Tenure
let sent: ReturnType<typeof recording>["sent"]

beforeEach(async () => {
  vi.useFakeTimers({ now: Date.parse("2030-01-01T00:00:00.000Z") })
  const receiver = recording(500)
  sent = receiver.sent
  tenure = await createTenure({
    stores: memory(),
    transport: receiver.transport,
    rateLimits: { perKey: { limit: 1, window: "1 minute" } },
  })
  await tenure.memberships.createProject(projectId)
})

afterEach(async () => {
  await tenure.close()
  vi.useRealTimers()
})

it("a membership expires", async () => {
  await tenure.memberships.grant({ ...member, endDate: "2030-01-31T00:00:00.000Z" })
  await vi.advanceTimersByTimeAsync(29 * 86_400_000)
  expect(await isMember(tenure, member)).toBe(true)
  await vi.advanceTimersByTimeAsync(86_400_000)
  expect(await isMember(tenure, member)).toBe(false)
})

it("a limit comes back after its window", async () => {
  const { token } = await tenure.apiKeys.issue({ projects: [projectId] })
  const api = fetchHandler(tenure)
  const statusOfNext = async () => {
    const url = `http://host.example/v2/projects/${projectId}/integrations/webhooks`
    const response = await api(new Request(url, { headers: { authorization: `Bearer ${token}` } }))
    return response?.status
  }
  expect([await statusOfNext(), await statusOfNext()]).toEqual([200, 429])
  await vi.advanceTimersByTimeAsync(60_000)
  expect(await statusOfNext()).toBe(200)
})

it("a webhook that fails is tried again after four to six seconds", async () => {
  const url = "https://receiver.example/"
  const { secret } = await tenure.webhooks.create({ projectId, url })
  await tenure.events.publish({ projectId, type: "payment.completed", data: { amount: 5 } })
  await vi.advanceTimersByTimeAsync(3900)
  expect(sent).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(2200)
  expect(sent).toHaveLength(2)

  // Both attempts deliver the same event, with a valid signature.
  const [first, second] = sent
  expect(second?.headers["webhook-id"]).toBe(first?.headers["webhook-id"])
  const notification = { headers: {}, body: "", ...second, now: Date.now() }
  expect(Result.isSuccess(verifySignature(notification, [secret]))).toBe(true)
})
