import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  type Verdict,
  type VerdictOutcome,
  type VerdictRules,
  type WebhookStanding,
  decideFailingPercent,
  decideVerdict,
} from "../../src/webhooks/verdict.ts"

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
const now = Date.UTC(2026, 10, 18)

const retrySchedule = [
  5 * second,
  5 * minute,
  30 * minute,
  ...[2, 5, 10, 14, 20, 24].map((hours) => hours * hour),
]
const rules: VerdictRules = { retrySchedule, disableAfter: 5 * day }
const first: WebhookStanding = { attemptNumber: 1, failures: 0, failingSince: undefined }
const noAnswer: VerdictOutcome = { endedAt: now, status: undefined, retryAfter: undefined }

const anyRules = fc.record({
  retrySchedule: fc.oneof(
    fc.constant(retrySchedule),
    fc.array(fc.integer({ min: 0, max: 30 * day }), { maxLength: 12 }),
  ),
  disableAfter: fc.integer({ min: 1, max: 366 * day }),
})
const anyStanding = fc.record({
  attemptNumber: fc.integer({ min: 1, max: 15 }),
  failures: fc.nat({ max: 30 }),
  failingSince: fc.option(fc.integer({ min: now - 400 * day, max: now }), { nil: undefined }),
})
const retryAfter = fc.oneof(
  fc.nat().map(String),
  fc.nat({ max: 30 * day }).map((millis) => new Date(now + millis).toUTCString()),
  fc.string(),
  fc.constant(undefined),
)
const failures = fc
  .oneof(fc.constant(undefined), fc.integer({ min: 100, max: 999 }))
  .filter((status) => status === undefined || (status !== 410 && (status < 200 || status > 299)))
const failed = fc.record({ endedAt: fc.constant(now), status: failures, retryAfter })
const random = fc.double({ min: 0, max: 1, noNaN: true })

/** Webhooks that have not been failing for long. */
const lately = anyStanding.map((standing) => ({ ...standing, failingSince: undefined }))

const retryOf = (verdict: Verdict) => (verdict._tag === "Retry" ? verdict : undefined)

/** The waits after an attempt: of the delivery, and of the webhook. */
const waits = (verdict: Verdict) =>
  verdict._tag === "Retry" ? verdict : { delayMillis: undefined, holdMillis: 0, ...verdict }

describe("an attempt", () => {
  it("has succeeded if and only if the status is 2xx", () => {
    const statuses = fc.option(fc.integer({ min: 100, max: 999 }), { nil: undefined })
    fc.assert(
      fc.property(anyRules, anyStanding, statuses, random, (given, standing, status, at) => {
        const { _tag } = decideVerdict(given, standing, { ...noAnswer, status }, at)
        const isSuccess = status !== undefined && status >= 200 && status < 300
        expect(_tag === "Delivered").toBe(isSuccess)
      }),
    )
  })

  it("disables the webhook if the status is 410", () => {
    fc.assert(
      fc.property(anyRules, anyStanding, random, (given, standing, at) => {
        const verdict = decideVerdict(given, standing, { ...noAnswer, status: 410 }, at)
        expect(verdict).toEqual({ _tag: "Disabled", reason: "gone" })
      }),
    )
  })

  it("that fails disables the webhook if and only if all have failed for too long", () => {
    fc.assert(
      fc.property(anyRules, anyStanding, failed, random, (given, standing, outcome, at) => {
        const verdict = decideVerdict(given, standing, outcome, at)
        const failingFor = standing.failingSince === undefined ? 0 : now - standing.failingSince
        const isTooLong = failingFor >= given.disableAfter
        expect(verdict._tag === "Disabled").toBe(isTooLong)
        if (isTooLong) expect(verdict).toMatchObject({ reason: "failing" })
      }),
    )
  })

  it("that fails is retried until the schedule has ended", () => {
    fc.assert(
      fc.property(anyRules, lately, failed, random, (given, standing, outcome, at) => {
        const { _tag } = decideVerdict(given, standing, outcome, at)
        const hasMore = standing.attemptNumber <= given.retrySchedule.length
        expect(_tag).toBe(hasMore ? "Retry" : "Failed")
      }),
    )
  })
})

describe("a failing webhook", () => {
  const shares = fc.record({
    disableAfter: fc.integer({ min: 1, max: 366 * day }),
    part: fc.double({ min: 0, max: 2, noNaN: true }),
  })

  it("has reached the greatest share of the time that has passed", () => {
    fc.assert(
      fc.property(shares, ({ disableAfter, part }) => {
        const failingFor = Math.floor(part * disableAfter)
        const percent = decideFailingPercent(now - failingFor, now, disableAfter) ?? 0
        const next = { 0: 50, 50: 90, 90: 100, 100: Infinity }[percent]
        expect(failingFor).toBeGreaterThanOrEqual((percent * disableAfter) / 100)
        expect(failingFor).toBeLessThan((next * disableAfter) / 100)
      }),
    )
  })

  it("reaches a share at the instant at which it has passed", () => {
    const after = (failingFor: number) => decideFailingPercent(now - failingFor, now, 5 * day)
    const limits = [2.5 * day, 4.5 * day, 5 * day]
    expect(limits.map(after)).toEqual([50, 90, 100])
    expect(limits.map((limit) => after(limit - 1))).toEqual([undefined, 50, 90])
  })

  it("reaches no share before its first failure, nor by a clock that was set back", () => {
    fc.assert(
      fc.property(shares, ({ disableAfter, part }) => {
        const ahead = now + part * disableAfter + 1
        expect(decideFailingPercent(undefined, now, disableAfter)).toBeUndefined()
        expect(decideFailingPercent(ahead, now, disableAfter)).toBeUndefined()
      }),
    )
  })
})

describe("the next attempt", () => {
  it("is never earlier because of Retry-After", () => {
    fc.assert(
      fc.property(anyRules, lately, failed, random, (given, standing, outcome, at) => {
        const asked = waits(decideVerdict(given, standing, outcome, at))
        const plain = waits(
          decideVerdict(given, standing, { ...outcome, retryAfter: undefined }, at),
        )
        expect(asked.delayMillis ?? 0).toBeGreaterThanOrEqual(plain.delayMillis ?? 0)
      }),
    )
  })

  it("is later because of Retry-After, up to the next two delays of the schedule", () => {
    fc.assert(
      fc.property(anyRules, lately, failed, random, (given, standing, outcome, at) => {
        const { delayMillis = 0 } = retryOf(decideVerdict(given, standing, outcome, at)) ?? {}
        const { attemptNumber } = standing
        const [step = 0, ...next] = given.retrySchedule.slice(attemptNumber - 1, attemptNumber + 2)
        expect(delayMillis).toBeLessThanOrEqual(Math.max(Math.ceil(1.2 * step), ...next))
      }),
    )
  })

  it.each([
    [1, "60", minute],
    [1, "1000000000", 30 * minute],
    [1, "1", 5 * second],
    [9, "1000000000", day],
    [1, new Date(now + 90_000).toUTCString(), 90 * second],
    [1, new Date(now - 90_000).toUTCString(), 5 * second],
    [1, "2027-01-01T00:00:00Z", 5 * second],
  ])("after attempt %d with Retry-After: %s is %d ms later", (attemptNumber, field, expected) => {
    const outcome = { endedAt: now, status: 503, retryAfter: field }
    const verdict = decideVerdict(rules, { ...first, attemptNumber }, outcome, 0.5)
    expect(retryOf(verdict)?.delayMillis).toBe(expected)
  })
})

describe("the webhook", () => {
  it("is held for as long as it asks for, if that is within bounds", () => {
    const seconds = fc.integer({ min: 6, max: 1800 })
    fc.assert(
      fc.property(seconds, fc.nat({ max: 30 }), random, (asked, before, at) => {
        const outcome = { endedAt: now, status: 429, retryAfter: String(asked) }
        const verdict = decideVerdict(rules, { ...first, failures: before }, outcome, at)
        expect(verdict).toMatchObject({ _tag: "Retry", holdMillis: asked * second })
      }),
    )
  })

  it("is held after the last attempt for as long as it asks for, up to a minute", () => {
    const holdFor = (asked: string) =>
      decideVerdict(
        rules,
        { ...first, attemptNumber: 10 },
        { endedAt: now, status: 503, retryAfter: asked },
        0.5,
      )
    expect(["30", "60", "61"].map(holdFor)).toEqual(
      [30 * second, minute, minute].map((holdMillis) => ({ _tag: "Failed", holdMillis })),
    )
  })

  it("is held at most until the next attempt, and a minute after the last one", () => {
    fc.assert(
      fc.property(anyRules, lately, failed, random, (given, standing, outcome, at) => {
        const verdict = decideVerdict(given, standing, outcome, at)
        const { delayMillis = minute, holdMillis } = waits(verdict)
        expect(holdMillis).toBeLessThanOrEqual(delayMillis)
      }),
    )
  })

  it.each([429, 502, 503, 504])(
    "is held for a second after a response with status %d",
    (status) => {
      const verdict = decideVerdict(rules, first, { ...noAnswer, status }, 0.5)
      expect(verdict).toMatchObject({ holdMillis: second })
    },
  )

  it.each([undefined, 400, 404, 500])("is not held after a response with status %s", (status) => {
    const verdict = decideVerdict(rules, first, { ...noAnswer, status }, 0.5)
    expect(verdict).toMatchObject({ holdMillis: 0 })
  })

  it("is held for a minute after ten failures in a row", () => {
    const holdAfter = (before: number, attemptNumber: number) => {
      const standing = { ...first, attemptNumber, failures: before }
      return waits(decideVerdict(rules, standing, noAnswer, 0.5)).holdMillis
    }
    expect([8, 9, 10].map((before) => holdAfter(before, 2))).toEqual([0, minute, minute])
    expect(holdAfter(9, 1)).toBe(5 * second)
    expect(holdAfter(9, 10)).toBe(minute)
  })
})
