/** Webhooks that are disabled or deleted get no more deliveries. */

import { once } from "node:events"
import { describe, expect, it } from "vitest"
import { eventually } from "../../support/eventually.ts"
import { type Deliveries, projectId } from "./DeliveryHarness.ts"

const typeOf = ({ body }: { readonly body: string }): unknown => JSON.parse(body).type

const disabledTests = ({ receiver, sender }: Deliveries): void => {
  it("is disabled after failing for too long, which the host and other webhooks learn", async () => {
    const other = await receiver()
    const failing = await receiver((response) => void response.writeHead(500).end())
    const { events, publish, tenure, webhookTo } = await sender({
      retrySchedule: [200, 200, 200, 200, 200],
      disableAfter: 500,
    })
    await webhookTo(other.url)
    const { id } = await webhookTo(failing.url)
    await publish()
    await other.until(2)
    expect(JSON.parse(other.received[1]?.body ?? "")).toMatchObject({
      type: "webhook.disabled",
      data: { webhook_id: id, reason: "failing" },
    })
    const announced = () => events.filter((event) => typeOf(event) === "webhook.disabled")
    await eventually(() => announced().length > 0)
    expect(announced().map(({ body }) => JSON.parse(body).data.webhook_id)).toEqual([id])
    await tenure.webhooks.enable({ projectId, webhookId: id })
    expect(await tenure.webhooks.replayFailed({ projectId, webhookId: id, since: 0 })).toBe(1)
  })

  it("is disabled when it responds with 410, and delivers again when it is enabled", async () => {
    const other = await receiver()
    const gone = await receiver((response) => void response.writeHead(410).end())
    const { publish, tenure, webhookTo } = await sender()
    await webhookTo(other.url)
    const { id } = await webhookTo(gone.url)
    await publish()
    await other.until(2)
    await publish()
    await other.until(3)
    expect(gone.received).toHaveLength(1)
    expect(other.received.map(typeOf)).toEqual([
      "test.happened",
      "webhook.disabled",
      "test.happened",
    ])
    await tenure.webhooks.enable({ projectId, webhookId: id })
    await publish()
    await gone.until(2)
  })
}

const deletedTests = ({ receiver, sender }: Deliveries): void => {
  it("ends its deliveries when it is deleted: those in flight and those that wait", async () => {
    const closed: Array<Promise<unknown>> = []
    const hanging = await receiver((response) => void closed.push(once(response, "close")))
    const { deliveries, publish, tenure, webhookTo } = await sender()
    const { id } = await webhookTo(hanging.url)
    await publish(10)
    await hanging.until(4)
    await tenure.webhooks.delete({ projectId, webhookId: id })
    await Promise.all(closed)
    const sentinel = await receiver()
    await webhookTo(sentinel.url)
    await publish()
    await sentinel.until(1)
    expect(hanging.received).toHaveLength(4)
    const states = (await deliveries(id)).map(({ state }) => state)
    expect(states).toEqual(Array.from({ length: 10 }, () => "cancelled"))
  })
}

/** Declares the tests. */
export const endingTests = (deliveries: Deliveries): void => {
  describe("a webhook", () => {
    disabledTests(deliveries)
    deletedTests(deliveries)
  })
}
