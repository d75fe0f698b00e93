import * as Result from "effect/Result"
import fc from "fast-check"
import { expect, it } from "vitest"
import { closeFrameOf, parseFrame } from "../../src/http/realtime.ts"

it("a frame of a client is one of the protocol, or an error that names a status", () => {
  const jsonLike = fc.json().map((json) => json.replace(/^\{/, '{"type":"subscribe",'))
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json(), jsonLike), (text) => {
      const parsed = parseFrame(text)
      if (Result.isFailure(parsed)) {
        const { code, frame, reason } = closeFrameOf(parsed.failure)
        expect([4400, 4413, 4422]).toContain(code)
        expect(JSON.parse(frame ?? "")).toMatchObject({ type: "error", error_code: reason })
        // A close frame has no more bytes.
        expect(reason.length).toBeLessThan(124)
      } else {
        expect(["Pong", "Subscribe"]).toContain(parsed.success._tag)
      }
    }),
    { numRuns: 1000 },
  )
})

it("a subscription is read as it was written", () => {
  const subscription = fc.record(
    { project: fc.string(), types: fc.array(fc.string()), after: fc.string() },
    { requiredKeys: ["project"] },
  )
  fc.assert(
    fc.property(subscription, (given) => {
      const text = JSON.stringify({ type: "subscribe", ...given })
      const parsed = Result.getOrThrow(parseFrame(text))
      expect(parsed).toMatchObject({ _tag: "Subscribe", subscription: given })
    }),
  )
})
