/** Events reach webhooks: from a request to the API to a receiver that verifies signatures. */

import { describe, expect, it } from "vitest"
import { fieldsOf, webhookOf } from "../support/envelope.ts"
import { eventually } from "../support/eventually.ts"
import { type Answer, isSignedWith, type Receiver, startReceiver } from "../support/receiver.ts"
import type { Fixture, Serving } from "./AdapterHarness.ts"

const webhooks = "/v2/projects/p1/integrations/webhooks"
const extend = "2099-01-01T00:00:00.000Z"
const extendOne = "/v2/projects/p1/memberships/1001/extend"

const options = {
  webhooks: { allowedNetworks: ["127.0.0.0/8"], retrySchedule: [100, 100, 100] },
}

// Elapsed time is part of what the test is about. It may run again, since the machine may be busy.
const patiently = { retry: 2 }

interface Registered {
  readonly id: string
  readonly secret: string
}

/** Runs a test with a receiver that is registered as a webhook. */
const receiving =
  (
    test: (fixture: Fixture, receiver: Receiver, webhook: Registered) => Promise<void>,
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

const deliveriesOf = ({ tenure }: Fixture, { id }: Registered) =>
  tenure.webhooks.deliveries({ projectId: "p1", webhookId: id })

const idsOf = ({ received }: Receiver): ReadonlySet<unknown> =>
  new Set(received.map(({ headers }) => headers["webhook-id"]))

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

const traceTests = (serving: Serving): void => {
  it(
    "carry the trace of the request that has led to them",
    serving(
      receiving(async ({ call }, receiver) => {
        await call("PATCH", extendOne, { body: { extend }, headers: { traceparent } })
        await receiver.until(1)
        const [notification] = receiver.received
        expect(notification?.headers["traceparent"]).toBe(traceparent)
        expect(JSON.parse(notification?.body ?? "")).toMatchObject({ traceparent })
      }),
      options,
    ),
  )
}

const publicationTests = (serving: Serving): void => {
  it(
    "of an extension arrives within a second, signed, with the id of the request",
    patiently,
    serving(
      receiving(async ({ call }, receiver, { secret }) => {
        const before = Date.now()
        const response = await call("PATCH", extendOne, { body: { extend } })
        await receiver.until(1)
        const notification = receiver.received[0] ?? expect.fail("nothing was received")
        expect(notification.at - before).toBeLessThan(1000)
        expect(isSignedWith(notification, secret)).toBe(true)
        expect(notification.headers["content-type"]).toBe("application/json")
        const { timestamp, ...event } = JSON.parse(notification.body)
        expect(event).toEqual({
          type: "membership.extended",
          data: {
            project_id: "p1",
            user_id: "1001",
            new_end_date: extend,
            request_id: fieldsOf(response.body)["request_id"],
            sequence: expect.any(Number),
          },
        })
        expect(Math.abs(Date.parse(timestamp) - before)).toBeLessThan(1000)
      }),
      options,
    ),
  )

  it(
    "of a bulk extension is one for all members",
    serving(
      receiving(async (fixture, receiver, webhook) => {
        await fixture.call("PATCH", "/v2/projects/p1/memberships/extend", { body: { extend } })
        expect(await deliveriesOf(fixture, webhook)).toHaveLength(1)
        await receiver.until(1)
        expect(receiver.received.map(({ body }) => JSON.parse(body))).toMatchObject([
          { type: "memberships.extended", data: { project_id: "p1", new_end_date: extend } },
        ])
      }),
      options,
    ),
  )

  it(
    "of the host is delivered in the same way",
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
        expect(receiver.received.every((one) => isSignedWith(one, secret))).toBe(true)
      }),
      options,
    ),
  )

  it(
    "is not published for failed requests, nor to webhooks of other projects",
    serving(
      receiving(async (fixture, receiver, webhook) => {
        const { call, tenure } = fixture
        await call("PATCH", extendOne, { body: { extend: 1 } })
        await call("PATCH", "/v2/projects/p1/memberships/9/extend", { body: { extend } })
        await tenure.memberships.extendAll({ projectId: "p2", endDate: extend })
        expect(await deliveriesOf(fixture, webhook)).toEqual([])
        expect(receiver.received).toEqual([])
      }),
      options,
    ),
  )
}

const attemptTests = (serving: Serving): void => {
  it(
    "is sent again after a failure, with the same id and a new signature",
    serving(
      receiving(
        async ({ call }, receiver, { secret }) => {
          await call("PATCH", extendOne, { body: { extend } })
          await receiver.until(4)
          expect(idsOf(receiver).size).toBe(1)
          expect(receiver.received.every((one) => isSignedWith(one, secret))).toBe(true)
        },
        (response) => void response.writeHead(500).end(),
      ),
      options,
    ),
  )

  it(
    "is not sent to where a redirect leads",
    serving(
      receiving(
        async (fixture, receiver, webhook) => {
          await fixture.call("PATCH", extendOne, { body: { extend } })
          await eventually(
            async () => (await deliveriesOf(fixture, webhook))[0]?.state === "failed",
          )
          expect(receiver.received).toHaveLength(4)
        },
        (response) => void response.writeHead(307, { location: "/elsewhere" }).end(),
      ),
      options,
    ),
  )

  it(
    "reaches a receiver soon while another does not respond",
    serving(
      receiving(
        async ({ call }, hanging) => {
          const healthy = await startReceiver()
          await call("POST", webhooks, { body: { url: healthy.url } })
          for (let count = 0; count < 10; count++)
            await call("PATCH", extendOne, { body: { extend } })
          const extended = performance.now()
          await healthy.until(10)
          expect(performance.now() - extended).toBeLessThan(10_000)
          await hanging.until(4)
          expect(hanging.received).toHaveLength(4)
          healthy.close()
        },
        () => {},
      ),
      // What waited for an attempt that hangs would take an hour.
      { webhooks: { ...options.webhooks, timeout: "1 hour" } },
    ),
  )
}

/** Responds with 500 to two requests, and never to the others. */
const answerTwo = (): Answer => {
  let requests = 0
  return (response) => {
    requests += 1
    if (requests <= 2) response.writeHead(500).end()
  }
}

const deletionTests = (serving: Serving): void => {
  it(
    "is not sent after the response to the deletion of the webhook",
    serving(
      receiving(async (fixture, receiver, webhook) => {
        const { call } = fixture
        for (let count = 0; count < 20; count++)
          await call("PATCH", extendOne, { body: { extend } })
        // Two attempts have failed, and after a failure a webhook gets one at a time: the other
        // attempts hang, so that none starts by itself any more.
        await receiver.until(3)
        await eventually(async () => {
          const deliveries = await deliveriesOf(fixture, webhook)
          return deliveries.filter(({ attempts }) => attempts.length === 1).length === 2
        })
        const before = receiver.received.length
        expect((await call("DELETE", `${webhooks}/${webhook.id}`)).status).toBe(200)
        const sentinel = await startReceiver()
        await call("POST", webhooks, { body: { url: sentinel.url } })
        await call("PATCH", extendOne, { body: { extend } })
        await sentinel.until(1)
        expect(receiver.received).toHaveLength(before)
        const states = (await deliveriesOf(fixture, webhook)).map(({ state }) => state)
        expect(states).toEqual(Array.from({ length: 20 }, () => "cancelled"))
        sentinel.close()
      }, answerTwo()),
      // Longer than the test takes, so that the two failed deliveries wait.
      { webhooks: { ...options.webhooks, retrySchedule: ["1 hour"] } },
    ),
  )
}

/** Declares the tests. */
export const eventsSuite = (serving: Serving): void => {
  describe("an event", () => {
    publicationTests(serving)
    traceTests(serving)
    attemptTests(serving)
    deletionTests(serving)
  })
}
