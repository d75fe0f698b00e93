/** The code for whole days, months and memberships for life in `docs/memberships.md` does what the page says. */

import { testTenure } from "@tenure/testing"
import { expect, it, onTestFinished } from "vitest"
import { examplesIn, writeExamples } from "./examples.ts"

const folder = await writeExamples("memberships", examplesIn("docs/memberships.md"))
const example = (number: number) => import(`${folder}/docs-memberships.md-${number}.ts`)
const { paidThrough } = await example(3)
const { joinAndPay } = await example(4)
const { thankFounder } = await example(5)
const member = { projectId: "p1", userId: "1001" }

const setUp = async () => {
  const { close, tenure } = await testTenure({ start: Date.UTC(2027, 0, 1) })
  onTestFinished(close)
  await tenure.memberships.createProject("p1")
  await tenure.memberships.updateProject({ projectId: "p1", timeZone: "Europe/Berlin" })
  return tenure
}

it("gives whole days in the project's time zone", async () => {
  const tenure = await setUp()
  const { memberships } = tenure
  await memberships.grant({ ...member, through: "2027-01-10" })
  expect(await paidThrough(tenure, "1001", "2027-01-31")).toBe("2027-01-31")
  expect(await paidThrough(tenure, "1001", "2027-01-20")).toBe("2027-01-31")
  const membership = await memberships.find(member)
  expect(membership.endDate).toBe(Date.UTC(2027, 0, 31, 23))
  await memberships.extend({ ...member, through: "2027-01-01" })
  await expect(memberships.extend({ ...member, through: "2026-12-31" })).rejects.toMatchObject({
    _tag: "EndDateNotInFuture",
  })
  const whole: object = membership
  const grant = (given: object): unknown => Reflect.apply(memberships.grant, memberships, [given])
  await expect(grant(whole)).rejects.toMatchObject({ _tag: "InvalidInput" })
  await memberships.grant({ ...membership, through: undefined })
  expect(await memberships.find(member)).toMatchObject({
    endDate: membership.endDate,
    through: undefined,
  })
  const { projectId, through = "", userId } = membership
  expect(await memberships.grant({ projectId, userId, through })).toMatchObject(membership)
  await memberships.updateProject({ projectId: "p1", timeZone: "UTC" })
  expect(await memberships.find(member)).toMatchObject({
    endDate: membership.endDate,
    through: undefined,
  })
})

// The page's table.
const instant = (day: string): string => `${day}T08:00:00.000Z`

it.each([
  [{ through: "2027-01-31" }, "2027-02-28 2027-03-31 2027-04-30"],
  [{ through: "2027-01-30" }, "2027-02-28 2027-03-30 2027-04-30"],
  [{ through: "2027-02-28" }, "2027-03-31 2027-04-30"],
  [{ endDate: instant("2027-01-31") }, "2027-02-28 2027-03-31 2027-04-30"],
  [{ endDate: instant("2027-02-28") }, "2027-03-28 2027-04-28"],
])("counts months from %j", async (date, expected) => {
  const { memberships } = await setUp()
  await memberships.grant({ ...member, ...date })
  const days: Array<string> = []
  for (const day of expected.split(" ")) {
    await memberships.extend({ ...member, by: "P1M", idempotencyKey: day })
    const { endDate, through } = await memberships.find(member)
    days.push(through ?? new Date(endDate).toISOString().slice(0, 10))
  }
  expect(days.join(" ")).toBe(expected)
})

it("keeps the day of somebody who pays by the month, and has days of 24 hours for all", async () => {
  const tenure = await setUp()
  const { memberships } = tenure
  expect(await joinAndPay(tenure, "1001", "2027-01-30")).toBe("2027-03-30")
  await memberships.grant({ ...member, through: "2027-01-30" })
  await memberships.extend({ ...member, by: "P1M", idempotencyKey: "1" })
  expect(await memberships.find(member)).toMatchObject({ through: "2027-02-28", keptDay: 30 })
  await memberships.extendAll({ projectId: "p1", by: "P30D", idempotencyKey: "2" })
  expect(await memberships.find(member)).toMatchObject({ through: undefined, keptDay: undefined })
  const [{ id } = { id: "" }] = await memberships.bulkExtensions({ projectId: "p1" })
  await memberships.undoBulkExtension({ projectId: "p1", id })
  expect(await memberships.find(member)).toMatchObject({ through: "2027-02-28", keptDay: 30 })
})

it("grants a membership for life, which only a date ends", async () => {
  const { clock, close, tenure, webhooks } = await testTenure({ start: Date.UTC(2030, 0, 1) })
  onTestFinished(close)
  const { memberships } = tenure
  await memberships.createProject("p1")
  expect(await thankFounder(tenure, "1001")).toBe(true)
  await webhooks.register("p1")
  await memberships.extend({ ...member, by: "P1M", idempotencyKey: "1" })
  await memberships.extendAll({ projectId: "p1", by: "P3D", idempotencyKey: "2" })
  await memberships.extend({ ...member, endDate: "2031-01-01T00:00:00.000Z", mode: "neverShorten" })
  await clock.advance("400 days")
  expect(await memberships.isActive(member)).toBe(true)
  const { endDate } = await memberships.find(member)
  expect(new Date(endDate).toISOString()).toBe("9999-12-31T23:59:59.999Z")
  expect(webhooks.all().map(({ type }) => type)).toEqual(["memberships.extended"])

  const all = { projectId: "p1", endDate: "2032-01-01T00:00:00.000Z" }
  const { preview } = await memberships.extendAll({ ...all, dryRun: true })
  expect(preview).toMatchObject({ lifetimesEnded: 1 })
  await memberships.extendAll(all)
  const [{ id } = { id: "" }] = await memberships.bulkExtensions({ projectId: "p1" })
  await memberships.undoBulkExtension({ projectId: "p1", id })
  expect(await memberships.find(member)).toMatchObject({ endDate })
})
