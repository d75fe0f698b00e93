import { createHash, createHmac } from "node:crypto"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { hmac, sha256 } from "../../src/base/bytes.ts"

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex")
const bytes = fc.uint8Array({ maxLength: 300 })

describe("SHA-256", () => {
  it("is what Node says, for messages of any length", () => {
    for (const length of [...Array.from({ length: 200 }).keys(), 1_000_000]) {
      const message = new Uint8Array(length).map((_, index) => index * 7 + length)
      expect(hex(sha256(message))).toBe(createHash("sha256").update(message).digest("hex"))
    }
  })
})

describe("HMAC-SHA-256", () => {
  it("is what Node says, for any key and message", () => {
    fc.assert(
      fc.property(bytes, bytes, (key, message) => {
        const expected = createHmac("sha256", key).update(message).digest("hex")
        expect(hex(hmac(key, message))).toBe(expected)
      }),
    )
  })
})
