/** A cell moves between two servers while it is used. The quick suite moves one that nobody uses. */

import { expect, it } from "vitest"
import { recordingTransport } from "./harness.ts"
import { fill, follow, idsOf, memberCount, startLoad, twoServers } from "./moving-cells.ts"

const { leftovers, move, open, places, projectIn, sqlOn } = twoServers()

it("moves a cell there and back while two processes work on it", async () => {
  const { sent, transport } = recordingTransport()
  const tenure = await open(transport)
  const other = await open(transport)
  const projectId = projectIn(0)
  await fill(tenure, projectId)
  await tenure.webhooks.create({ projectId, url: "https://example.com/" })
  const follower = follow(other, projectId)
  const stops = [startLoad(tenure, projectId, 0), startLoad(other, projectId, 1)]
  expect(await move(0, "second")).toBe(true)
  expect(await move(0, "second")).toBe(false)
  expect((await places())[0]).toEqual({ server: "second", moving_to: null, moved_from: null })
  // No process has used the former place for so long.
  await sqlOn(0, "UPDATE tenure.cells SET moved_at = moved_at - interval '1 minute'")
  expect(await move(0, "first")).toBe(true)
  const loads = await Promise.all(stops.map((stop) => stop()))
  const changes = loads.reduce((sum, load) => sum + load.changes, 0)
  for (const { acknowledged } of loads)
    for (const [userId, endDate] of acknowledged)
      expect(await tenure.memberships.find({ projectId, userId })).toMatchObject({ endDate })
  const ids = new Set<string>()
  for (let after: string = "start"; ;) {
    const page = await tenure.events.read({ projectId, after })
    for (const { id } of page.events) ids.add(id)
    if (page.isLast) break
    after = page.cursor
  }
  expect(ids.size).toBe(memberCount + changes)
  await expect.poll(() => follower.seen.length).toBe(ids.size)
  expect(new Set(follower.seen)).toEqual(ids)
  await follower.stop()
  const deliverable = [...ids].slice(memberCount)
  await expect.poll(() => deliverable.filter((id) => !idsOf(sent).has(id))).toEqual([])
  expect(await leftovers()).toEqual([])
})
