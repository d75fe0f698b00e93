import * as FastCheck from "fast-check"
import { describe, expect, it } from "vitest"
import { acceptsEventStream } from "../../src/http/request.ts"

const streams = [
  "text/event-stream",
  "TEXT/Event-Stream;charset=utf-8",
  "text/event-stream, */*",
  "text/event-stream, application/*",
  "application/json;q=0.9, text/event-stream",
  "text/event-stream;q=0.5, */*;q=0.1",
  "text/html, text/event-stream ; q=0.2",
  ["application/json;q=0.1", "text/event-stream"],
]

const json = [
  undefined,
  "",
  "*/*",
  "text/*",
  "application/json",
  "text/html",
  "application/json, text/event-stream",
  "text/event-stream;q=0",
  "text/event-stream;q=0, */*;q=0",
  "text/event-stream;q=0.5, */*",
  "text/event-stream;q=0.5, application/*;q=0.6",
  "text/event-stream;q=high",
  "text/event-streams",
  "*/*, text/event-stream;q=0.9",
]

describe("a client that accepts", () => {
  for (const accept of streams) {
    it(`${JSON.stringify(accept)} gets a stream`, () => {
      expect(acceptsEventStream({ accept })).toBe(true)
    })
  }

  for (const accept of json) {
    it(`${JSON.stringify(accept)} gets JSON`, () => {
      expect(acceptsEventStream({ accept })).toBe(false)
    })
  }

  it("anything gets a stream only if it names it", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.string(), (accept) => {
        if (!/text\/event-stream/i.test(accept)) expect(acceptsEventStream({ accept })).toBe(false)
      }),
    )
    expect(acceptsEventStream(Object.create({ accept: "text/event-stream" }))).toBe(false)
  })
})
