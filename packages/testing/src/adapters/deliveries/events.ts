/** What is delivered, and how it is signed. */

import { describe, expect, it } from "vitest"
import { eventually } from "../../support/eventually.ts"
import { isSignedWith } from "../../support/receiver.ts"
import { type Deliveries, projectId } from "./DeliveryHarness.ts"

/** Declares the tests. */
export const eventTests = ({ receiver, sender }: Deliveries): void => {
  describe("a notification", () => {
    it("is signed with both secrets during a rotation", async () => {
      const one = await receiver()
      const { publish, tenure, webhookTo } = await sender()
      const { id, secret } = await webhookTo(one.url)
      await publish()
      await one.until(1)
      const { secret: fresh } = await tenure.webhooks.rotateSecret({ projectId, webhookId: id })
      await publish()
      await one.until(2)
      const verdicts = one.received.map((notification) => [
        isSignedWith(notification, secret),
        isSignedWith(notification, fresh),
      ])
      expect(verdicts).toEqual([
        [true, false],
        [true, true],
      ])
    })

    it("has an event type that the webhook asked for, and the same id when it is replayed", async () => {
      const one = await receiver()
      const { deliveries, publish, tenure } = await sender()
      const eventTypes = ["payment.completed"]
      const { id } = await tenure.webhooks.create({ projectId, url: one.url, eventTypes })
      await publish()
      const payment = { projectId, type: "payment.completed", data: 1 }
      const eventId = await tenure.events.publish(payment)
      await eventually(async () => {
        const [delivery] = await deliveries(id)
        return delivery?.state === "delivered" && delivery.eventId === eventId
      })
      expect(await deliveries(id)).toHaveLength(1)
      expect(await tenure.webhooks.replay({ projectId, webhookId: id, eventId })).toBe(true)
      await one.until(2)
      const ids = one.received.map(({ headers }) => headers["webhook-id"])
      expect(ids).toEqual([eventId, eventId])
    })
  })
}
