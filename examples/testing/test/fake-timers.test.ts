/**
 * Fake time for a whole host: Tenure follows vitest's fake timers. They must include `setImmediate`,
 * as they do by default, because Effect uses it between timers. Announcements are disabled, because
 * Tenure would look for ended memberships twice a second throughout a month.
 */

import { createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { expect, it, onTestFinished, vi } from "vitest"
import { isMember } from "../src/promises.ts"
import { recording } from "./recording.ts"

const projectId = "club"
const member = { projectId, userId: "1" }

it("a webhook is sent, and a membership expires", async () => {
  vi.useFakeTimers({ now: Date.parse("2030-01-01T00:00:00.000Z") })
  onTestFinished(() => void vi.useRealTimers())
  const { sent, transport } = recording()
  const tenure = await createTenure({ stores: memory(), transport, expiry: false })
  await tenure.memberships.createProject(projectId)
  await tenure.webhooks.create({ projectId, url: "https://receiver.example/" })
  await tenure.memberships.grant({ ...member, endDate: "2030-01-31T00:00:00.000Z" })
  await vi.advanceTimersByTimeAsync(29 * 86_400_000)
  expect(sent).toHaveLength(1)
  expect(await isMember(tenure, member)).toBe(true)
  await vi.advanceTimersByTimeAsync(86_400_000)
  expect(await isMember(tenure, member)).toBe(false)
  await tenure.close()
})
