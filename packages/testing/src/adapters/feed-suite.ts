/** Events: from a request to the API, to webhooks and the feed. */

import * as Http from "node:http"
import { describe, expect } from "vitest"
import {
  type Answer,
  type Receiver,
  eventually,
  isSignedWith,
  startReceiver,
} from "../support/fixtures.ts"
import {
  type EventStream,
  expectFailure,
  fieldsOf,
  openEventStream,
  webhookOf,
} from "../support/http.ts"
import { type Fixture, type ServerTest, webhooks, extendOne } from "./harness.ts"

const extend = "2099-01-01T00:00:00.000Z"

const options = {
  webhooks: { allowedNetworks: ["127.0.0.0/8"], retrySchedule: [100, 100, 100] },
}

interface Registered {
  readonly id: string
  readonly secret: string
}

/** Runs a test with a receiver registered as a webhook. */
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

/** Responds with 500 to two requests, and never to the others. */
const answerTwo = (): Answer => {
  let requests = 0
  return (response) => {
    requests += 1
    if (requests <= 2) response.writeHead(500).end()
  }
}

/** Declares the tests. */
export const eventsSuite = (test: ServerTest): void => {
  describe("an event", () => {
    test.with(options)(
      "of an extension arrives, signed, with the time and the id of the request",
      receiving(async ({ call }, receiver, { secret }) => {
        const before = Date.now()
        const response = await call("PATCH", extendOne, { body: { extend } })
        await receiver.until(1)
        const notification = receiver.received[0] ?? expect.fail("nothing was received")
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
        const at = Date.parse(timestamp)
        expect([at >= before, at <= notification.at]).toEqual([true, true])
      }),
    )

    test.with(options)(
      "of a bulk extension is one for all members",
      receiving(async (fixture, receiver, webhook) => {
        await fixture.call("PATCH", "/v2/projects/p1/memberships/extend", { body: { extend } })
        expect(await deliveriesOf(fixture, webhook)).toHaveLength(1)
        await receiver.until(1)
        expect(receiver.received.map(({ body }) => JSON.parse(body))).toMatchObject([
          { type: "memberships.extended", data: { project_id: "p1", new_end_date: extend } },
        ])
      }),
    )

    test.with(options)(
      "of the host is delivered in the same way",
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
    )

    test.with(options)(
      "is not published for failed requests, nor to webhooks of other projects",
      receiving(async (fixture, receiver, webhook) => {
        const { call, tenure } = fixture
        await call("PATCH", extendOne, { body: { extend: 1 } })
        await call("PATCH", "/v2/projects/p1/memberships/9/extend", { body: { extend } })
        await tenure.memberships.extendAll({ projectId: "p2", endDate: extend })
        expect(await deliveriesOf(fixture, webhook)).toEqual([])
        expect(receiver.received).toEqual([])
      }),
    )

    test.with(options)(
      "carry the trace of the request that has led to them",
      receiving(async ({ call }, receiver) => {
        await call("PATCH", extendOne, { body: { extend }, headers: { traceparent } })
        await receiver.until(1)
        const [notification] = receiver.received
        expect(notification?.headers["traceparent"]).toBe(traceparent)
        expect(JSON.parse(notification?.body ?? "")).toMatchObject({ traceparent })
      }),
    )

    test.with(options)(
      "is sent again after a failure, with the same id and a new signature",
      receiving(
        async ({ call }, receiver, { secret }) => {
          await call("PATCH", extendOne, { body: { extend } })
          await receiver.until(4)
          expect(idsOf(receiver).size).toBe(1)
          expect(receiver.received.every((one) => isSignedWith(one, secret))).toBe(true)
        },
        (response) => void response.writeHead(500).end(),
      ),
    )

    test.with(options)(
      "is not sent to where a redirect leads",
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
    )

    test.with({ webhooks: { ...options.webhooks, timeout: "1 hour" } })(
      "reaches a receiver soon while another does not respond",
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
    )

    test.with({ webhooks: { ...options.webhooks, retrySchedule: ["1 hour"] } })(
      "is not sent after the response to the deletion of the webhook",
      receiving(async (fixture, receiver, webhook) => {
        const { call } = fixture
        for (let count = 0; count < 20; count++)
          await call("PATCH", extendOne, { body: { extend } })
        // Two attempts have failed. A failing webhook gets one attempt at a time, and the others hang:
        // no attempt starts by itself now.
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
    )
  })
}

/** The live feed by Server-Sent Events, and clients disconnecting while they wait. */

const events = "/v2/projects/p1/events"

const open = (
  { token, url }: Fixture,
  query = "",
  headers: Http.OutgoingHttpHeaders = {},
): Promise<EventStream> =>
  openEventStream(url, `${events}${query}`, { authorization: `Bearer ${token}`, ...headers })

/** Returns the received event types. */
const typesOf = ({ blocks }: EventStream) =>
  blocks().flatMap(({ event }) => (event === undefined ? [] : [event]))

/** Returns the last received id. */
const idOf = ({ blocks }: EventStream) =>
  blocks().reduce<string | undefined>((last, { id }) => id ?? last, undefined)

const publish = ({ tenure }: Fixture, type: string, data: unknown = {}) =>
  tenure.events.publish({ projectId: "p1", type, data })

/** Has waited until as many events have arrived. */
const until = (stream: EventStream, count: number) =>
  eventually(() => typesOf(stream).length >= count)

/** Asks for events and goes away without an answer. */
const abandon = ({ token, url }: Fixture): Promise<void> =>
  new Promise((resolve) => {
    const request = Http.get(new URL(`${events}?wait=20`, url), {
      agent: false,
      headers: { authorization: `Bearer ${token}` },
    })
    request.on("error", () => {}).on("close", resolve)
    // When the server answers another request, it has received this one.
    request.on("finish", () => {
      void fetch(url).finally(() => request.destroy())
    })
  })

/** Declares the tests. */
export const feedSuite = (test: ServerTest): void => {
  describe("a stream of events", () => {
    test("brings what is stored and then what comes, as it comes", async (fixture) => {
      await publish(fixture, "stored.one", { text: "a\nb\r\u2028: ü" })
      const stream = await open(fixture, "?after=start&types=stored.one,membership.extended")
      expect(stream.status).toBe(200)
      expect(stream.headers).toMatchObject({
        "content-type": "text/event-stream",
        "cache-control": "no-store, no-transform",
        "x-accel-buffering": "no",
        "x-ratelimit-limit": expect.any(String),
      })
      expect(stream.headers["content-length"]).toBeUndefined()
      await until(stream, 1)
      expect(JSON.parse(stream.blocks().at(-1)?.["data"] ?? "")).toEqual({
        id: expect.any(String),
        type: "stored.one",
        timestamp: expect.any(String),
        data: { text: "a\nb\r\u2028: ü" },
      })
      await fixture.call("PATCH", extendOne, { body: { extend: extend } })
      await until(stream, 2)
      const polled = await fixture.call("GET", `${events}?after=start&types=membership.extended`)
      expect(polled.body).toMatchObject({
        data: [JSON.parse(stream.blocks().at(-1)?.["data"] ?? "")],
        next: idOf(stream),
      })
      stream.close()
    })

    test("goes on after Last-Event-ID, also where nothing had come yet", async (fixture) => {
      await publish(fixture, "before")
      const first = await open(fixture)
      await eventually(() => idOf(first) !== undefined)
      first.close()
      await publish(fixture, "meanwhile")
      const second = await open(fixture, "?after=start", { "last-event-id": idOf(first) ?? "" })
      await until(second, 1)
      second.close()
      await publish(fixture, "later")
      const third = await open(fixture, "", { "last-event-id": idOf(second) ?? "" })
      await until(third, 1)
      third.close()
      expect([...typesOf(second), ...typesOf(third)]).toEqual(["meanwhile", "later"])
      const gone = await fixture.call("GET", events, {
        headers: { accept: "text/event-stream", "last-event-id": "never-was" },
      })
      expectFailure(gone, 410, "CURSOR_EXPIRED")
    })

    test("brings everything, once and in order, to a client that reads nothing for a while", async (fixture) => {
      const stream = await open(fixture)
      await eventually(() => idOf(stream) !== undefined)
      stream.pause()
      const types = Array.from({ length: 150 }, (_, index) => `event.${index}`)
      for (const type of types) await publish(fixture, type, "x".repeat(60_000))
      stream.resume()
      await until(stream, types.length)
      expect(typesOf(stream)).toEqual(types)
      stream.close()
    })

    test("ends when its project is deleted", async (fixture) => {
      const stream = await open(fixture)
      await eventually(() => idOf(stream) !== undefined)
      await fixture.tenure.memberships.deleteProject("p1")
      await eventually(stream.isComplete)
    })
  })
  describe("those who wait for events", () => {
    test("that are refused beyond ten of a key are admitted once others have gone", async (fixture) => {
      const streams = await Promise.all(Array.from({ length: 10 }, () => open(fixture)))
      expect(streams.map(({ status }) => status)).toEqual(streams.map(() => 200))
      const refused = await open(fixture)
      expect(refused.status).toBe(429)
      expect(refused.headers["retry-after"]).toBe("20")
      expect((await fixture.call("GET", `${events}?wait=1`)).status).toBe(429)
      const [first] = streams
      first?.close()
      await eventually(async () => {
        const again = await open(fixture)
        if (again.status === 200) streams.push(again)
        return again.status === 200
      })
      for (const stream of streams) stream.close()
    })

    test("whose clients have gone give back their slots at once, polls too", async (fixture) => {
      await Promise.all(Array.from({ length: 10 }, () => abandon(fixture)))
      const start = performance.now()
      await eventually(async () => {
        const stream = await open(fixture)
        stream.close()
        return stream.status === 200
      })
      // A poll would have waited for 20 seconds.
      expect(performance.now() - start).toBeLessThan(15_000)
    })
  })
}
