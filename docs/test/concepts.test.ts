/** The code in `docs/concepts.md` does what the page says. */

import { testTenure } from "@tenure/testing"
import { expect, it, onTestFinished, vi } from "vitest"
import { examplesIn, writeExamples } from "./examples.ts"

const folder = await writeExamples("concepts", examplesIn("docs/concepts.md"))
const start = Date.UTC(2030, 0, 1)
const day = 86_400_000
const member = { projectId: "p1", userId: "1001" }

const example = (number: number) => import(`${folder}/docs-concepts.md-${number}.ts`)

const setUp = async () => {
  const { clock, close, tenure } = await testTenure({ start })
  onTestFinished(close)
  // The page's code reads the time from the process.
  vi.useFakeTimers({ now: start, toFake: ["Date"] })
  onTestFinished(() => void vi.useRealTimers())
  await tenure.memberships.createProject("p1")
  const pass = async (days: number) => {
    await clock.advance(`${days} days`)
    vi.setSystemTime(Date.now() + days * day)
  }
  const find = () => tenure.memberships.find(member)
  return { find, pass, tenure }
}

it("has a trial that a payment turns into a membership, once for each invoice", async () => {
  const { find, pass, tenure } = await setUp()
  const { isMember, startTrial } = await example(1)
  const { renew } = await example(2)
  const trial = { endDate: start + 14 * day, created: false }
  const started = await Promise.all([1, 2].map(() => startTrial(tenure, "1001")))
  expect(started).toMatchObject([{ ...trial, created: true }, trial])
  expect(await isMember(tenure, "1001")).toBe(true)
  await pass(2)
  expect(await startTrial(tenure, "1001")).toMatchObject(trial)
  await pass(13)
  expect(await isMember(tenure, "1001")).toBe(false)
  await renew(tenure, "1001", "invoice-1")
  await renew(tenure, "1001", "invoice-1")
  const paid = { endDate: Date.UTC(2030, 1, 16) }
  expect(await find()).toMatchObject(paid)
  await pass(2)
  expect(await startTrial(tenure, "1001")).toMatchObject({ ...paid, created: false })
  expect(await find()).toMatchObject(paid)
  const bought = await renew(tenure, "1002", "invoice-2")
  expect(bought).toMatchObject({ endDate: Date.UTC(2030, 1, 18), created: true })
})

it("has a grace period, in which a payment counts from the end", async () => {
  const { find, pass, tenure } = await setUp()
  const { renew } = await example(2)
  const { allowLatePayments } = await example(3)
  await allowLatePayments(tenure)
  await tenure.memberships.grant({ ...member, endDate: start + day })
  await pass(3)
  expect(await find()).toMatchObject({ state: "active", graceUntil: start + 4 * day })
  await renew(tenure, "1001", "invoice-1")
  expect(await find()).toMatchObject({ endDate: Date.UTC(2030, 1, 2), graceUntil: undefined })
  await pass(33)
  expect(await find()).toMatchObject({ state: "expired" })
})

it("pauses a membership, and resumes it with the days that were left", async () => {
  const { find, pass, tenure } = await setUp()
  const { pause, resume } = await example(4)
  const endDate = start + 11 * day
  await tenure.memberships.grant({ ...member, endDate, metadata: { plan: "gold" } })
  await pass(1)
  await expect(resume(tenure, "1001")).rejects.toMatchObject({ currentState: "active" })
  await pause(tenure, "1001")
  await expect(pause(tenure, "1001")).rejects.toMatchObject({ currentState: "paused" })
  expect(await find()).toMatchObject({ state: "paused", endDate, metadata: { plan: "gold" } })
  await pass(30)
  const history = await tenure.memberships.history({ ...member, limit: 2 })
  expect(history.map(({ action }) => action)).toEqual(["paused", "granted"])
  await resume(tenure, "1001")
  expect(await find()).toMatchObject({ endDate: start + 41 * day, metadata: { plan: "gold" } })
  await pause(tenure, "1001")
  await tenure.memberships.extend({ ...member, by: "P1M", idempotencyKey: "invoice-1" })
  await pass(30)
  await resume(tenure, "1001")
  const paid = start + 41 * day
  const month = Date.UTC(2030, 2, 1) - Date.UTC(2030, 1, 1)
  expect((await find()).endDate).toBe(paid + month + 30 * day)
})
