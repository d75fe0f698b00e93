import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type Frame, makeParser } from "../src/subscribe.ts"

const parse = (...pieces: ReadonlyArray<string>): ReadonlyArray<Frame> =>
  pieces.flatMap(makeParser())

/** The algorithm of the standard (HTML, 9.2.6), word by word, for a whole stream. */
const standard = (stream: string): ReadonlyArray<Frame> => {
  const frames: Array<Frame> = []
  const lines = stream.split(/\r\n|\n|\r/)
  lines.pop()
  let data = ""
  let event = ""
  let id: string | undefined
  let retry: number | undefined
  for (const line of lines) {
    if (line === "") {
      frames.push({
        event: event || "message",
        data: data ? data.slice(0, -1) : undefined,
        id,
        retry,
      })
      data = ""
      event = ""
      retry = undefined
      continue
    }
    const colon = line.indexOf(":")
    if (colon === 0) continue
    const name = colon < 0 ? line : line.slice(0, colon)
    const after = colon < 0 ? "" : line.slice(colon + 1)
    const value = after.startsWith(" ") ? after.slice(1) : after
    if (name === "event") event = value
    if (name === "data") data += `${value}\n`
    if (name === "id" && !value.includes("\0")) id = value
    if (name === "retry" && /^[0-9]+$/.test(value)) retry = Number.parseInt(value, 10)
  }
  return frames
}

const words = [
  "data",
  "event",
  "id",
  "retry",
  ":",
  " ",
  "\r",
  "\n",
  "\r\n",
  "\n\n",
  "7",
  "é\u2028",
  "\0",
]
const streams = fc
  .array(fc.constantFrom(...words), { maxLength: 60 })
  .map((parts) => parts.join(""))

describe("an event stream", () => {
  it("is read as the standard says, wherever it is cut", () => {
    fc.assert(
      fc.property(streams, fc.array(fc.nat(80)), (stream, cuts) => {
        const borders = [0, ...cuts.toSorted((a, b) => a - b), stream.length]
        const pieces = borders.map((border, index) => stream.slice(borders[index - 1] ?? 0, border))
        expect(parse(...pieces)).toEqual(standard(stream))
      }),
      { numRuns: 2000 },
    )
  })

  it.each([
    ["data: one\ndata: two\n\n", { data: "one\ntwo" }],
    ["data\n\n", { data: "" }],
    ["event: a.b\ndata:x\n\n", { event: "a.b", data: "x" }],
    ["id: 7\nretry: 1500\n\n", { id: "7", retry: 1500, data: undefined }],
    ["data:  x\n\n", { data: " x" }],
    [": comment\n: data\n\n", { data: undefined }],
    ["retry: soon\nid: a\0b\ndata: x\n\n", { data: "x" }],
  ])("%j has the frame %j", (stream, frame) => {
    const empty = { event: "message", id: undefined, retry: undefined }
    expect(parse(stream)).toEqual([{ ...empty, ...frame }])
  })

  it("keeps the last id", () => {
    const ids = parse("id: 1\ndata: a\n\ndata: b\n\nid: 2\n\n").map(({ id }) => id)
    expect(ids).toEqual(["1", "1", "2"])
  })

  it("has no frame until a blank line", () => {
    expect(parse("data: x\n", "data: y")).toEqual([])
  })
})
