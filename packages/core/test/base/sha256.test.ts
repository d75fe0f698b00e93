import { createHash, createHmac } from "node:crypto"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { hmac, sha256 } from "../../src/base/bytes.ts"

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex")
const bytes = fc.uint8Array({ maxLength: 300 })

describe("SHA-256", () => {
  it.each([
    // FIPS 180-4's own examples, and the empty message.
    ["", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
    ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
    [
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
    ],
    ["a".repeat(1_000_000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"],
  ])("of %j", (text, digest) => {
    expect(hex(sha256(new TextEncoder().encode(text)))).toBe(digest)
  })

  it("is what Node says, for messages of any length", () => {
    for (let length = 0; length < 200; length++) {
      const message = new Uint8Array(length).map((_, index) => index * 7 + length)
      expect(hex(sha256(message))).toBe(createHash("sha256").update(message).digest("hex"))
    }
  })
})

describe("HMAC-SHA-256", () => {
  it("is what RFC 4231 says", () => {
    const key = new Uint8Array(20).fill(0x0b)
    expect(hex(hmac(key, new TextEncoder().encode("Hi There")))).toBe(
      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
    )
  })

  it("is what Node says, for any key and message", () => {
    fc.assert(
      fc.property(bytes, bytes, (key, message) => {
        const expected = createHmac("sha256", key).update(message).digest("hex")
        expect(hex(hmac(key, message))).toBe(expected)
      }),
    )
  })
})
