/** Attempts that fail are repeated, at a pace that the receiver can bear. */

import { describe, expect, it } from "vitest"
import { eventually } from "../../support/eventually.ts"
import type { Answer } from "../../support/receiver.ts"
import type { Deliveries } from "./DeliveryHarness.ts"

const failing: Answer = (response) => void response.writeHead(500).end()

/** Declares the tests. */
export const retryTests = ({ receiver, sender }: Deliveries): void => {
  describe("a retry", () => {
    it("reaches a receiver that has recovered, with the same id", async () => {
      let isWell = false
      const one = await receiver((response) => {
        response.writeHead(isWell ? 204 : 500).end("not now")
      })
      const { deliveries, publish, webhookTo } = await sender({ retrySchedule: [50, 50, "1 hour"] })
      const { id } = await webhookTo(one.url)
      await publish()
      await one.until(2)
      isWell = true
      await eventually(async () => (await deliveries(id))[0]?.state === "delivered")
      const results = (await deliveries(id))[0]?.attempts.map(({ result }) => result)
      expect(results?.at(0)).toEqual({ _tag: "Answered", status: 500, body: "not now" })
      expect(results?.at(-1)).toEqual({ _tag: "Answered", status: 204, body: "" })
      expect(new Set(one.received.map(({ headers }) => headers["webhook-id"])).size).toBe(1)
    })

    it("waits as long as the receiver asks, and so do other deliveries to it", async () => {
      const one = await receiver((response) => {
        const isFirst = one.received.length === 1
        response.writeHead(isFirst ? 429 : 204, { "retry-after": "1" }).end()
      })
      const { attempts, publish, webhookTo } = await sender({ retrySchedule: [50, "2 seconds"] })
      const { id } = await webhookTo(one.url)
      await publish()
      // A delivery that is claimed before the first attempt is recorded does not wait.
      await eventually(async () => (await attempts(id)).length === 1)
      await publish()
      await one.until(3)
      const [first, ...others] = one.received
      // The second that the receiver asked for, less the early firing of timers.
      for (const { at } of others) expect(at - (first?.at ?? 0)).toBeGreaterThan(900)
    })

    it("is rare while a webhook only fails", async () => {
      const bad = await receiver(failing)
      const { attempts, publish, webhookTo } = await sender({ retrySchedule: ["30 seconds"] })
      const { id } = await webhookTo(bad.url)
      await publish(60)
      await bad.until(10)
      await eventually(async () => (await attempts(id)).length === bad.received.length)
      // Each delivery to another webhook takes a claim, which could include the failing one.
      const good = await receiver()
      await webhookTo(good.url)
      for (let count = 1; count <= 20; count++) {
        await publish()
        await good.until(count)
      }
      expect(bad.received.length).toBeLessThan(20)
    })
  })
}
