/** A process that delivers only when it is told to. */

import { once } from "node:events"
import { describe, expect, it } from "vitest"
import type { Deliveries } from "./DeliveryHarness.ts"

/** Declares the tests. */
export const flushingTests = ({ receiver, sender }: Deliveries): void => {
  describe("a process that delivers only when it is told to", () => {
    it("sends all that is due, and returns how much is left", async () => {
      const { received, url } = await receiver()
      const failing = await receiver((response) => void response.writeHead(500).end())
      const { publish, tenure, webhookTo } = await sender({ dispatch: false })
      await webhookTo(url)
      await publish(100)
      expect(received).toHaveLength(0)
      expect(await tenure.flush({ timeout: "1 minute" })).toBe(0)
      expect(new Set(received.map(({ headers }) => headers["webhook-id"])).size).toBe(100)
      await webhookTo(failing.url)
      await publish()
      expect(await tenure.flush({ timeout: "1 minute" })).toBe(1)
      expect([received.length, failing.received.length]).toEqual([101, 1])
    })

    it("gives back what it could not send in time", async () => {
      const closed: Array<Promise<unknown>> = []
      const slow = await receiver((response) => {
        if (slow.received.length > 1) return void response.writeHead(204).end()
        closed.push(once(response, "close"))
      })
      const { publish, tenure, webhookTo } = await sender({ dispatch: false })
      await webhookTo(slow.url)
      await publish()
      const flushed = tenure.flush({ timeout: "1 second" })
      await slow.until(1)
      expect(await flushed).toBe(1)
      await Promise.all(closed)
      expect(await tenure.flush({ timeout: "1 minute" })).toBe(0)
      expect(slow.received).toHaveLength(2)
    })
  })
}
