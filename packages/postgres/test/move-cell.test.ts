/** A cell moves to another server with its members. The system suite moves cells under load, and kills moves. */

import { expect, it } from "vitest"
import { twoServers } from "./moving-cells.ts"

const { leftovers, move, open, places, projectIn } = twoServers()

it("moves a cell, and loses nothing", async () => {
  const { memberships } = await open()
  const projectId = projectIn(0)
  const member = { projectId, userId: "1001" }
  await memberships.createProject(projectId)
  const granted = await memberships.grant({ ...member, endDate: "2099-01-01T00:00:00.000Z" })
  expect(await move(0, "second")).toBe(true)
  expect((await places())[0]).toEqual({ server: "second", moving_to: null, moved_from: null })
  expect(await memberships.find(member)).toEqual(granted)
  expect(await leftovers()).toEqual([])
})
