/** Events: from a request to the API, to webhooks and the feed. */

import * as Http from "node:http"
import { describe, expect } from "vitest"
import { eventually, isSignedWith } from "../support/fixtures.ts"
import {
  type EventStream,
  expectFailure,
  fieldsOf,
  openEventStream,
  webhookOf,
} from "../support/http.ts"
import {
  type Fixture,
  type ServerTest,
  events,
  extend,
  extendAll,
  extendOne,
  webhooks,
} from "./harness.ts"

const options = {
  webhooks: { allowedNetworks: ["127.0.0.0/8"], retrySchedule: ["1 hour"] },
} as const

/** Registers a webhook. */
const register = async ({ call }: Fixture, url: string) =>
  webhookOf(await call("POST", webhooks, { body: { url } }))

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

export const eventsSuite = (on: ServerTest): void => {
  const test = on.with(options)
  describe("an event", () => {
    test("of an extension arrives, signed, with the time, the id and the trace of the request", async (fixture) => {
      const { call } = fixture
      const receiver = await fixture.receiver()
      const { secret } = await register(fixture, receiver.url)
      const before = Date.now()
      const headers = { traceparent }
      const response = await call("PATCH", extendOne, { body: { extend }, headers })
      await receiver.until(1)
      const notification = receiver.received[0] ?? expect.fail("nothing was received")
      expect(isSignedWith(notification, secret)).toBe(true)
      expect(notification.headers).toMatchObject({
        "content-type": "application/json",
        traceparent,
      })
      const { timestamp, ...event } = JSON.parse(notification.body)
      expect(event).toEqual({
        type: "membership.extended",
        traceparent,
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
    })

    test("of a bulk extension is one for all members, of failed requests and other projects none", async (fixture) => {
      const { call, tenure } = fixture
      const receiver = await fixture.receiver()
      const { id } = await register(fixture, receiver.url)
      await call("PATCH", extendOne, { body: { extend: 1 } })
      await call("PATCH", extendOne.replace("1001", "9"), { body: { extend } })
      await tenure.memberships.extendAll({ projectId: "p2", endDate: extend })
      await call("PATCH", extendAll, { body: { extend } })
      await receiver.until(1)
      const deliveries = await tenure.webhooks.deliveries({ projectId: "p1", webhookId: id })
      expect(deliveries).toHaveLength(1)
      expect(receiver.received.map(({ body }) => JSON.parse(body))).toMatchObject([
        { type: "memberships.extended", data: { project_id: "p1", new_end_date: extend } },
      ])
    })

    test("is not sent after the response to the deletion of the webhook", async (fixture) => {
      const { call, tenure } = fixture
      const hanging = await fixture.receiver(() => {})
      const { id } = await register(fixture, hanging.url)
      for (let count = 0; count < 10; count++) {
        await call("PATCH", extendOne, { body: { extend } })
      }
      // No other attempt starts while so many hang.
      await hanging.until(4)
      expect((await call("DELETE", `${webhooks}/${id}`)).status).toBe(200)
      const sentinel = await fixture.receiver()
      await register(fixture, sentinel.url)
      await call("PATCH", extendOne, { body: { extend } })
      await sentinel.until(1)
      expect(hanging.received).toHaveLength(4)
      const deliveries = await tenure.webhooks.deliveries({ projectId: "p1", webhookId: id })
      expect(deliveries.map(({ state }) => state)).toEqual(Array(10).fill("cancelled"))
    })
  })
}

/** Opens the live feed by Server-Sent Events. */
const open = (
  { token, url }: Fixture,
  query = "",
  headers: Http.OutgoingHttpHeaders = {},
): Promise<EventStream> =>
  openEventStream(url, `${events}${query}`, { authorization: `Bearer ${token}`, ...headers })

/** Returns the received event types. */
const typesOf = ({ blocks }: EventStream) =>
  blocks().flatMap(({ event }) => (event === undefined ? [] : [event]))

/** Returns the last received event. */
const eventOf = ({ blocks }: EventStream): unknown => JSON.parse(blocks().at(-1)?.["data"] ?? "")

/** Returns the last received id. */
const idOf = ({ blocks }: EventStream) =>
  blocks().reduce<string | undefined>((last, { id }) => id ?? last, undefined)

const publish = ({ tenure }: Fixture, type: string, data: unknown = {}) =>
  tenure.events.publish({ projectId: "p1", type, data })

/** Waits until as many events have arrived. */
const until = (stream: EventStream, count: number) =>
  eventually(() => typesOf(stream).length >= count)

/** Waits until a stream has begun. */
const begun = (stream: EventStream) => eventually(() => idOf(stream) !== undefined)

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

const streamTests = (test: ServerTest): void => {
  test("brings what is stored and then what comes, as it comes", async (fixture) => {
    const data = { text: "a\nb\r\u2028: ü" }
    await publish(fixture, "stored.one", data)
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
    expect(eventOf(stream)).toEqual({
      id: expect.any(String),
      type: "stored.one",
      timestamp: expect.any(String),
      data,
    })
    await fixture.call("PATCH", extendOne, { body: { extend } })
    await until(stream, 2)
    const polled = await fixture.call("GET", `${events}?after=start&types=membership.extended`)
    expect(polled.body).toMatchObject({ data: [eventOf(stream)], next: idOf(stream) })
    stream.close()
  })

  test("goes on after Last-Event-ID, also where nothing had come yet", async (fixture) => {
    await publish(fixture, "before")
    let last = await open(fixture)
    await begun(last)
    last.close()
    for (const [type, query] of [
      ["meanwhile", "?after=start"],
      ["later", ""],
    ] as const) {
      await publish(fixture, type)
      last = await open(fixture, query, { "last-event-id": idOf(last) ?? "" })
      await until(last, 1)
      last.close()
      expect(typesOf(last)).toEqual([type])
    }
    const gone = await fixture.call("GET", events, {
      headers: { accept: "text/event-stream", "last-event-id": "never-was" },
    })
    expectFailure(gone, 410, "CURSOR_EXPIRED")
  })

  test("brings everything, once and in order, to a client that reads nothing for a while", async (fixture) => {
    const stream = await open(fixture)
    await begun(stream)
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
    await begun(stream)
    await fixture.tenure.memberships.deleteProject("p1")
    await eventually(stream.isComplete)
  })
}

const waitingTests = (test: ServerTest): void => {
  test("that are refused beyond ten of a key are admitted once others have gone", async (fixture) => {
    const streams = await Promise.all(Array.from({ length: 10 }, () => open(fixture)))
    expect(streams.map(({ status }) => status)).toEqual(Array(10).fill(200))
    const refused = await open(fixture)
    expect([refused.status, refused.headers["retry-after"]]).toEqual([429, "20"])
    expect((await fixture.call("GET", `${events}?wait=1`)).status).toBe(429)
    streams[0]?.close()
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
}

export const feedSuite = (test: ServerTest): void => {
  describe("a stream of events", () => {
    streamTests(test)
  })
  describe("those who wait for events", () => {
    waitingTests(test)
  })
}
