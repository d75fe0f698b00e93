/** Webhooks from end to end: from a change over HTTP to a receiver that verifies. */

import * as WebhookSignature from "@tenure/core/WebhookSignature"
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import type { Fixture, Serving } from "./AdapterHarness.ts"
import { fieldsOf, webhookOf } from "./envelope.ts"
import { type Answer, type Notification, type Receiver, startReceiver } from "./receiver.ts"

const webhooks = "/v2/projects/p1/integrations/webhooks"
const extend = "2099-01-01T00:00:00.000Z"
const extendOne = "/v2/projects/p1/memberships/1001/extend"

const options = {
  webhooks: { allowedNetworks: ["127.0.0.0/8"], retrySchedule: [100, 100, 100] },
}

/** Runs a test with a receiver, which is registered as a webhook. */
const receiving =
  (
    test: (
      fixture: Fixture,
      receiver: Receiver,
      webhook: { readonly id: string; readonly secret: string },
    ) => Promise<void>,
    answer?: Answer,
  ) =>
  async (fixture: Fixture): Promise<void> => {
    const receiver = await startReceiver(answer)
    try {
      const created = await fixture.call("POST", webhooks, { body: { url: receiver.url } })
      await test(fixture, receiver, webhookOf(created))
    } finally {
      receiver.close()
    }
  }

const isVerified = ({ at, body, headers }: Notification, secret: string): boolean =>
  Result.isSuccess(
    WebhookSignature.verify({ headers, body, now: at }, [WebhookSignature.Secret(secret)]),
  )

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

/** Declares the suite. */
export const eventsSuite = (serving: Serving): void => {
  describe("events", () => {
    it(
      "of an extension arrive within a second, signed, and name the request",
      serving(
        receiving(async ({ call }, receiver, { secret }) => {
          const before = Date.now()
          const response = await call("PATCH", extendOne, { body: { extend } })
          await receiver.until(1)
          const notification = receiver.received[0] ?? expect.fail("nothing was received")
          expect(notification.at - before).toBeLessThan(1000)
          expect(isVerified(notification, secret)).toBe(true)
          expect(notification.headers["content-type"]).toBe("application/json")
          const { timestamp, ...event } = JSON.parse(notification.body)
          expect(event).toEqual({
            type: "membership.extended",
            data: {
              project_id: "p1",
              user_id: "1001",
              new_end_date: extend,
              request_id: fieldsOf(response.body)["request_id"],
            },
          })
          expect(Math.abs(Date.parse(timestamp) - before)).toBeLessThan(1000)
        }),
        options,
      ),
    )

    it(
      "of a bulk extension are one for all",
      serving(
        receiving(async ({ call }, receiver) => {
          await call("PATCH", "/v2/projects/p1/memberships/extend", { body: { extend } })
          await receiver.until(1)
          await pause(50)
          expect(receiver.received.map(({ body }) => JSON.parse(body))).toMatchObject([
            { type: "memberships.extended", data: { project_id: "p1", new_end_date: extend } },
          ])
        }),
        options,
      ),
    )

    it(
      "of the host's own are delivered like the others",
      serving(
        receiving(async ({ tenure }, receiver, { id, secret }) => {
          const data = { amount: "12.50", note: "für 日本 \u2028" }
          const publication = { projectId: "p1", type: "payment.completed", data }
          const eventId = await tenure.events.publish(publication)
          const pingId = await tenure.webhooks.ping({ projectId: "p1", webhookId: id })
          await receiver.until(2)
          const byId = Object.fromEntries(
            receiver.received.map(({ body, headers }) => [headers["webhook-id"], JSON.parse(body)]),
          )
          expect(byId).toMatchObject({
            [eventId]: { type: "payment.completed", data },
            [pingId]: { type: "webhook.ping" },
          })
          expect(receiver.received.every((one) => isVerified(one, secret))).toBe(true)
        }),
        options,
      ),
    )

    it(
      "are not sent for requests that fail, nor to webhooks of other projects",
      serving(
        receiving(async ({ call, tenure }, receiver) => {
          await call("PATCH", extendOne, { body: { extend: 1 } })
          await call("PATCH", "/v2/projects/p1/memberships/9/extend", { body: { extend } })
          await tenure.memberships.extendAll({ projectId: "p2", endDate: extend })
          await pause(50)
          expect(receiver.received).toEqual([])
        }),
        options,
      ),
    )

    it(
      "are sent again until they are received, with the same id and a fresh signature",
      serving(
        receiving(
          async ({ call }, receiver, { secret }) => {
            await call("PATCH", extendOne, { body: { extend } })
            await receiver.until(4)
            expect(
              new Set(receiver.received.map(({ headers }) => headers["webhook-id"])).size,
            ).toBe(1)
            expect(receiver.received.every((one) => isVerified(one, secret))).toBe(true)
          },
          (response) => void response.writeHead(500).end(),
        ),
        options,
      ),
    )

    it(
      "do not follow redirects",
      serving(
        receiving(
          async ({ call }, receiver) => {
            await call("PATCH", extendOne, { body: { extend } })
            await receiver.until(4)
            await pause(50)
            expect(receiver.received).toHaveLength(4)
          },
          (response) => void response.writeHead(307, { location: "/elsewhere" }).end(),
        ),
        options,
      ),
    )

    it(
      "stop with the deletion of the webhook: none starts after the response",
      serving(
        receiving(
          async ({ call }, receiver, { id }) => {
            for (let count = 0; count < 20; count++)
              await call("PATCH", extendOne, { body: { extend } })
            await receiver.until(1)
            expect((await call("DELETE", `${webhooks}/${id}`)).status).toBe(200)
            const soFar = receiver.received.length
            await call("PATCH", extendOne, { body: { extend } })
            await pause(400)
            expect(receiver.received).toHaveLength(soFar)
          },
          (response) => void setTimeout(() => response.writeHead(500).end(), 20),
        ),
        options,
      ),
    )

    it(
      "reach a receiver at once while another hangs",
      serving(
        receiving(
          async ({ call }, hanging) => {
            const healthy = await startReceiver()
            await call("POST", webhooks, { body: { url: healthy.url } })
            const before = Date.now()
            for (let count = 0; count < 10; count++)
              await call("PATCH", extendOne, { body: { extend } })
            await healthy.until(10)
            expect(Date.now() - before).toBeLessThan(1000)
            expect(hanging.received).toHaveLength(4)
            healthy.close()
          },
          () => {},
        ),
        options,
      ),
    )
  })
}
