import { memory } from "@tenure/memory"
import { describe, expect, it } from "vitest"
import type { Event } from "../../src/events/event.ts"
import { createTenure } from "../../src/tenure.ts"

const member = { projectId: "p1", userId: "1" }
const endDate = "2099-01-01T00:00:00.000Z"

/** Runs a function and returns the unhandled rejections. */
const unhandledRejections = async (run: () => Promise<void>): Promise<ReadonlyArray<unknown>> => {
  const unhandled: Array<unknown> = []
  const last = new Error("the last unhandled rejection")
  const listeners = process.listeners("unhandledRejection")
  process.removeAllListeners("unhandledRejection")
  const isOver = new Promise<void>((resolve) => {
    process.on("unhandledRejection", (reason) => {
      if (reason === last) resolve()
      else unhandled.push(reason)
    })
  })
  await run()
  void Promise.reject(last)
  await isOver
  process.removeAllListeners("unhandledRejection")
  for (const listener of listeners) process.on("unhandledRejection", listener)
  return unhandled
}

describe("onEvent", () => {
  it("is called with every event that is stored", async () => {
    const events: Array<Event> = []
    const tenure = await createTenure({
      stores: memory(),
      onEvent: (event) => void events.push(event),
    })
    const { memberships } = tenure
    await memberships.createProject("p1")
    await memberships.grant({ ...member, endDate })
    await memberships.extend({ ...member, endDate })
    await memberships.extendAll({ projectId: "p1", endDate })
    await memberships.end(member)
    await tenure.events.publish({ projectId: "p1", type: "payment.completed", data: {} })
    await expect(memberships.extend({ ...member, endDate })).rejects.toThrow("no membership")
    expect(events.map(({ type }) => type)).toEqual([
      "membership.granted",
      "membership.extended",
      "memberships.extended",
      "membership.ended",
      "payment.completed",
    ])
    expect(JSON.parse(events[0]?.body ?? "")).toMatchObject({ data: { user_id: "1" } })
    await tenure.close()
  })

  it("that throws or rejects does not disturb the operation or the process", async () => {
    const error = new Error("from the host")
    const throwing = () => {
      throw error
    }
    const unhandled = await unhandledRejections(async () => {
      for (const onEvent of [throwing, () => Promise.reject(error)]) {
        const tenure = await createTenure({ stores: memory(), onEvent })
        await tenure.memberships.createProject("p1")
        await tenure.memberships.grant({ ...member, endDate })
        expect(await tenure.memberships.find(member)).toMatchObject(member)
        await tenure.close()
      }
    })
    expect(unhandled).toEqual([])
  })
})
