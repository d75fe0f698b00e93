/** A Node test process ends, a year passes, and what waits for real time. */

import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { postgres } from "@tenure/postgres"
import { type TestTenure, type TestTenureOptions, testTenure } from "@tenure/testing"
import { expect, inject, it, onTestFinished } from "vitest"

const projectId = "club"
const member = { projectId, userId: "1001" }
const february = "2030-02-01T00:00:00.000Z"
const dayMillis = 86_400_000

/** Starts Tenure, and closes it after the test. */
const start = async (options?: TestTenureOptions): Promise<TestTenure> => {
  const test = await testTenure(options)
  onTestFinished(test.close)
  return test
}

it("the clock advances a year with 365 ends also if somebody follows the feed", async () => {
  const test = await start({ metrics: true })
  const { clock, tenure, webhooks } = test
  await webhooks.register(projectId)
  const following = tenure.events.stream({ projectId, after: "now" })
  const reader = following[Symbol.asyncIterator]()
  const first = reader.next()
  for (let day = 1; day <= 365; day++) {
    const endDate = clock.now() + day * dayMillis
    await tenure.memberships.grant({ projectId, userId: String(day), endDate })
  }
  await clock.advance("366 days")
  const sent = webhooks.all()
  expect(sent.filter(({ type }) => type === "membership.expired")).toHaveLength(365)
  const times = sent.map(({ sentAt }) => sentAt)
  expect(times).toEqual(times.toSorted((one, other) => one - other))
  expect((await first).value).toMatchObject({ type: "membership.granted" })
  await reader.return?.()
})

it("a host whose work never ends is reported", async () => {
  const test = await start({ onEvent: () => new Promise<void>(() => {}) })
  await test.tenure.memberships.createProject(projectId)
  await test.tenure.memberships.grant({ ...member, endDate: february })
  await expect(test.clock.advance("1 day")).rejects.toThrow(
    "The promises of onEvent at 2030-01-01T00:00:00.000Z did not settle within 4 s",
  )
})

it("runs with node:test, and leaves nothing running", async () => {
  const file = fileURLToPath(new URL("programs/node-test.ts", import.meta.url))
  const run = promisify(execFile)
  const { stdout } = await run(process.execPath, ["-C", "@tenure/source", file], {
    env: { PATH: process.env["PATH"] },
    timeout: 60_000,
  })
  expect(stdout).toMatch(/^. pass 1$/m)
})

it("on PostgreSQL records webhooks, in real time", async () => {
  const stores = postgres({ url: inject("databaseUrl"), schema: "test_tenure_system" })
  const options = { stores, expiry: { reminders: [] }, webhooks: { retrySchedule: [100] } }
  const { clock, tenure, webhooks } = await start(options)
  await webhooks.register(projectId)
  webhooks.failNext()
  const endDate = clock.now() + 1000
  await tenure.memberships.grant({ ...member, endDate })
  const granted = await webhooks.next("membership.granted", { timeout: "30 seconds" })
  expect(granted.answer).toBe(500)
  const again = await webhooks.next("membership.granted", { timeout: "30 seconds" })
  expect(again).toMatchObject({ id: granted.id, answer: 204 })
  const expired = await webhooks.next("membership.expired", { timeout: "30 seconds" })
  expect(expired.sentAt).toBeGreaterThanOrEqual(endDate)
  expect(expired.sentAt).toBeLessThanOrEqual(Date.now())
})
