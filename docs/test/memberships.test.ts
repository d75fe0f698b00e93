/** The code for memberships for life in `docs/memberships.md` does what the page says. */

import { testTenure } from "@tenure/testing"
import { expect, it, onTestFinished } from "vitest"
import { examplesIn, writeExamples } from "./examples.ts"

const folder = await writeExamples("memberships", examplesIn("docs/memberships.md"))
const { thankFounder } = await import(`${folder}/docs-memberships.md-3.ts`)
const member = { projectId: "p1", userId: "1001" }

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
