/** The feed: live as Server-Sent Events, and clients that go while they wait. */

import * as Http from "node:http"
import { describe, expect, it } from "vitest"
import { expectFailure } from "../support/envelope.ts"
import { type EventStream, openEventStream } from "../support/eventStream.ts"
import { eventually } from "../support/eventually.ts"
import type { Fixture, Serving } from "./AdapterHarness.ts"

const events = "/v2/projects/p1/events"
const extend = "2099-01-01T00:00:00.000Z"
const extendOne = "/v2/projects/p1/memberships/1001/extend"

const open = (
  { token, url }: Fixture,
  query = "",
  headers: Http.OutgoingHttpHeaders = {},
): Promise<EventStream> =>
  openEventStream(url, `${events}${query}`, { authorization: `Bearer ${token}`, ...headers })

/** The types of the events that have arrived. */
const typesOf = ({ blocks }: EventStream) =>
  blocks().flatMap(({ event }) => (event === undefined ? [] : [event]))

/** The last id that has arrived. */
const idOf = ({ blocks }: EventStream) =>
  blocks().reduce<string | undefined>((last, { id }) => id ?? last, undefined)

const publish = ({ tenure }: Fixture, type: string, data: unknown = {}) =>
  tenure.events.publish({ projectId: "p1", type, data })

/** Has waited until as many events have arrived. */
const until = (stream: EventStream, count: number) =>
  eventually(() => typesOf(stream).length >= count)

const streamTests = (serving: Serving): void => {
  it(
    "brings what is stored and then what comes, as it comes",
    serving(async (fixture) => {
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
      await fixture.call("PATCH", extendOne, { body: { extend } })
      await until(stream, 2)
      const polled = await fixture.call("GET", `${events}?after=start&types=membership.extended`)
      expect(polled.body).toMatchObject({
        data: [JSON.parse(stream.blocks().at(-1)?.["data"] ?? "")],
        next: idOf(stream),
      })
      stream.close()
    }),
  )

  it(
    "goes on after Last-Event-ID, also where nothing had come yet",
    serving(async (fixture) => {
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
      expectFailure(gone, "GET", events, 410, "CURSOR_EXPIRED")
    }),
  )

  it(
    "brings everything, once and in order, to a client that reads nothing for a while",
    serving(async (fixture) => {
      const stream = await open(fixture)
      await eventually(() => idOf(stream) !== undefined)
      stream.pause()
      const types = Array.from({ length: 150 }, (_, index) => `event.${index}`)
      for (const type of types) await publish(fixture, type, "x".repeat(60_000))
      stream.resume()
      await until(stream, types.length)
      expect(typesOf(stream)).toEqual(types)
      stream.close()
    }),
  )

  it(
    "ends when its project is deleted",
    serving(async (fixture) => {
      const stream = await open(fixture)
      await eventually(() => idOf(stream) !== undefined)
      await fixture.tenure.memberships.deleteProject("p1")
      await eventually(stream.isComplete)
    }),
  )
}

/** Asks for events and goes away without an answer. */
const abandon = ({ token, url }: Fixture): Promise<void> =>
  new Promise((resolve) => {
    const request = Http.get(new URL(`${events}?wait=20`, url), {
      agent: false,
      headers: { authorization: `Bearer ${token}` },
    })
    request.on("error", () => {}).on("close", resolve)
    // The server has taken the request by the time that it answers another one.
    request.on("finish", () => {
      void fetch(url).finally(() => request.destroy())
    })
  })

const seatTests = (serving: Serving): void => {
  it(
    "that are refused beyond ten of a key are admitted once others have gone",
    serving(async (fixture) => {
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
    }),
  )

  it(
    "whose clients have gone give back their slots at once, polls too",
    serving(async (fixture) => {
      await Promise.all(Array.from({ length: 10 }, () => abandon(fixture)))
      const start = performance.now()
      await eventually(async () => {
        const stream = await open(fixture)
        stream.close()
        return stream.status === 200
      })
      // A poll would have waited for 20 seconds.
      expect(performance.now() - start).toBeLessThan(15_000)
    }),
  )
}

/** Declares the tests. */
export const feedSuite = (serving: Serving): void => {
  describe("a stream of events", () => {
    streamTests(serving)
  })
  describe("those who wait for events", () => {
    seatTests(serving)
  })
}
