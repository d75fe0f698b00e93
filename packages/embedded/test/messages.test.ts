/** Messages are found however they arrive. */

import { it } from "@effect/vitest"
import * as fc from "fast-check"
import { expect } from "vitest"
import { makeMessageReader } from "../src/protocol.ts"

const message = (letter: string, body: string): Buffer => {
  const length = Buffer.alloc(4)
  length.writeInt32BE(4 + Buffer.byteLength(body))
  return Buffer.concat([Buffer.from(letter), length, Buffer.from(body)])
}

const start = Buffer.from([0, 0, 0, 8, 0, 3, 0, 0])

const sent = [
  start,
  message("P", "s1\0SELECT 1\0\0\0"),
  message("B", "\0s1\0\0\0\0\0\0\0"),
  message("E", "\0\0\0\0\0"),
  message("S", ""),
  message("P", "\0SELECT 2\0\0\0"),
  message("H", ""),
  message("Q", "SELECT 3\0"),
  message("X", ""),
]

it("are found however they arrive", () => {
  const all = Buffer.concat(sent)
  const cycle = (
    from: number,
    to: number,
    prepares: ReadonlyArray<string>,
    isUnfinished: boolean,
  ) => ({
    _tag: "Cycle",
    messages: Buffer.concat(sent.slice(from, to)),
    prepares,
    isUnfinished,
  })
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(all.length)), (cuts) => {
      const read = makeMessageReader()
      const ends = [...cuts.toSorted((a, b) => a - b), all.length]
      const pieces = ends.flatMap((end, index) => read(all.subarray(ends[index - 1] ?? 0, end)))
      expect(pieces).toEqual([
        { _tag: "Start" },
        cycle(1, 5, ["s1"], false),
        cycle(5, 7, [], true),
        cycle(7, 8, [], false),
        { _tag: "End" },
      ])
    }),
  )
})
