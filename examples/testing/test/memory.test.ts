/** Code of a host, tested in memory: no database, no server, and only Tenure to close. */

import { type Event, type Tenure, createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { afterEach, beforeEach, expect, it } from "vitest"
import { isMember, offerRenewals } from "../src/promises.ts"

const projectId = "club"
const inDays = (days: number): number => Date.now() + days * 86_400_000

let tenure: Tenure
let events: Array<Event>

beforeEach(async () => {
  events = []
  tenure = await createTenure({ stores: memory(), onEvent: (event) => void events.push(event) })
  await tenure.memberships.createProject(projectId)
})

afterEach(() => tenure.close())

it("a user with a membership that has not expired is a member", async () => {
  await tenure.memberships.grant({ projectId, userId: "1", endDate: inDays(30) })
  await tenure.memberships.grant({ projectId, userId: "2", endDate: inDays(-1) })
  expect(await isMember(tenure, { projectId, userId: "1" })).toBe(true)
  expect(await isMember(tenure, { projectId, userId: "2" })).toBe(false)
  expect(await isMember(tenure, { projectId, userId: "3" })).toBe(false)
})

it("memberships that end within a week cause an event", async () => {
  const ends = { 1: inDays(-1), 2: inDays(6), 3: inDays(8) }
  for (const [userId, endDate] of Object.entries(ends)) {
    await tenure.memberships.grant({ projectId, userId, endDate })
  }
  await offerRenewals(tenure, projectId)
  const offers = events.filter(({ type }) => type === "renewal.offered")
  expect(offers.map(({ body }) => JSON.parse(body))).toMatchObject([{ data: { user_id: "2" } }])
})
