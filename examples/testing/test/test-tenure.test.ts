/** Host code, tested in memory with `testTenure`: the test controls time and webhooks. */

import type { Event } from "@tenure/core"
import { fetchHandler } from "@tenure/fetch"
import { type TestTenure, type TestTenureOptions, testTenure } from "@tenure/testing"
import { expect, it, onTestFinished } from "vitest"
import { isMember, renewByReminder } from "../src/promises.ts"

const projectId = "club"
const member = { projectId, userId: "1" }

const start = async (options: TestTenureOptions = {}): Promise<TestTenure> => {
  const test = await testTenure(options)
  onTestFinished(test.close)
  await test.webhooks.register(projectId)
  return test
}

it("a user is a member until the membership expires", async () => {
  const { clock, tenure } = await start()
  expect(await isMember(tenure, member)).toBe(false)
  await tenure.memberships.grant({ ...member, endDate: "2030-01-31T00:00:00.000Z" })
  await clock.advance("29 days")
  expect(await isMember(tenure, member)).toBe(true)
  await clock.advance("1 day")
  expect(await isMember(tenure, member)).toBe(false)
})

it("a membership is renewed as long as the user can be charged", async () => {
  let charges = 0
  const renew = renewByReminder(async () => ++charges <= 2)
  const { clock, tenure, webhooks } = await start({
    expiry: { reminders: ["1 day"] },
    onEvent: (event: Event) => renew(tenure, event),
  })
  await tenure.memberships.grant({ ...member, endDate: "2030-01-31T00:00:00.000Z" })
  await clock.advance("100 days")
  const { data } = await webhooks.next("membership.expired")
  expect(data.end_date).toBe("2030-04-01T00:00:00.000Z")
  expect(charges).toBe(3)
})

it("a webhook that fails is tried again after four to six seconds", async () => {
  const { clock, tenure, webhooks } = await start()
  webhooks.failNext()
  await tenure.events.publish({ projectId, type: "payment.completed", data: { amount: 5 } })
  await clock.advance("3900 millis")
  expect(webhooks.all()).toHaveLength(1)
  await clock.advance("2200 millis")
  expect(webhooks.all()).toHaveLength(2)
})

it("a limit comes back after its window", async () => {
  const { clock, tenure } = await start({
    rateLimits: { perKey: { limit: 1, window: "1 minute" } },
  })
  const { token } = await tenure.apiKeys.issue({ projects: [projectId] })
  const api = fetchHandler(tenure)
  const statusOfNext = async () => {
    const url = `http://host.example/v2/projects/${projectId}/integrations/webhooks`
    const response = await api(new Request(url, { headers: { authorization: `Bearer ${token}` } }))
    return response?.status
  }
  expect([await statusOfNext(), await statusOfNext()]).toEqual([200, 429])
  await clock.advance("1 minute")
  expect(await statusOfNext()).toBe(200)
})
