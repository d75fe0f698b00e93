import { maxHeaderSize } from "node:http"
import { expect, it } from "vitest"
import { readMalformedHead } from "../src/malformed-requests.ts"
import { lines } from "./support.ts"

const rejected = (text: string) => ({ packet: Buffer.from(text), parsed: 1 })

/** How long it takes to read a head with so many fields, in milliseconds: the best of many. */
const millis = (fields: number): number => {
  const head = rejected(lines("BREW / HTTP/1.1", ...Array.from({ length: fields }, () => "x:")))
  const times = Array.from({ length: 30 }, () => {
    const start = performance.now()
    expect(readMalformedHead(head)?._tag).toBe("Head")
    return performance.now() - start
  })
  return Math.min(...times)
}

it("the time to read a head grows with its length and not with the square of it", () => {
  millis(400)
  // A tenth of the fields: with the square of the length, this would be a hundredth of the time.
  expect(millis(4000)).toBeLessThan(50 * millis(400) + 1)
})

it("a head has all values of a repeated field, and any name", () => {
  const head = rejected(lines("BREW /x HTTP/1.1", "A: 1", "a:2 ", "__proto__: 3"))
  expect(readMalformedHead(head)).toMatchObject({
    _tag: "Head",
    method: "BREW",
    target: "/x",
    headers: { a: ["1", "2"], ["__proto__"]: ["3"] },
  })
})

it("a head is read up to the length that Node allows", () => {
  const head = (length: number) => rejected(lines("BREW / HTTP/1.1", "x:".padEnd(length)))
  expect(readMalformedHead(head(maxHeaderSize - 17))?._tag).toBe("Head")
  expect(readMalformedHead(head(maxHeaderSize + 1))?._tag).toBe("TooLong")
})
