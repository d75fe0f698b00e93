/** The verdict on an attempt: the rule, its schedule and the waits requested by a receiver. */

import fc from "fast-check"
import { describe, expect, it } from "vitest"
import * as Setting from "../../src/base/setting.ts"
import { dispatcherOptions } from "../../src/webhooks/dispatcher.ts"
import {
  type Verdict,
  type VerdictOutcome,
  type VerdictRules,
  type WebhookStanding,
  decideFailingPercent,
  decideVerdict,
  describeAttemptError,
  maxRetryAfter,
  parseHttpDate,
  parseRetryAfter,
  retryDelay,
} from "../../src/webhooks/verdict.ts"

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
const year = 365.25 * day
const now = Date.UTC(2026, 10, 18, 11, 6, 40)

const { retrySchedule: standard } = Setting.parse(dispatcherOptions)

const schedules = fc.oneof(
  fc.constant(standard),
  fc.array(fc.integer({ min: 0, max: 30 * day }), { maxLength: 12 }),
)
const attemptNumbers = fc.integer({ min: 1, max: 15 })
const random = fc.double({ min: 0, max: 1, noNaN: true })

describe("the schedule", () => {
  it("has ten attempts over more than three days by default", () => {
    const delays = Array.from({ length: 10 }, (_, index) => retryDelay(standard, index + 1, 0.5))
    expect(delays).toEqual([
      5 * second,
      5 * minute,
      30 * minute,
      ...[2, 5, 10, 14, 20, 24].map((hours) => hours * hour),
      undefined,
    ])
  })

  it("has delays that are spread by 20 % to both sides", () => {
    expect([0, 0.5, 1].map((at) => retryDelay([1000], 1, at))).toEqual([800, 1000, 1200])
    fc.assert(
      fc.property(schedules, attemptNumbers, random, (schedule, attemptNumber, at) => {
        const scheduled = schedule[attemptNumber - 1]
        const delayed = retryDelay(schedule, attemptNumber, at)
        if (scheduled === undefined) expect(delayed).toBeUndefined()
        else {
          expect(delayed).toBeGreaterThanOrEqual(Math.floor(scheduled * 0.8))
          expect(delayed).toBeLessThanOrEqual(Math.ceil(scheduled * 1.2))
        }
      }),
    )
  })

  it("lets a receiver ask for the longer of the next two delays, and for nothing after the last", () => {
    expect(maxRetryAfter(standard, 1)).toBe(30 * minute)
    expect(maxRetryAfter([5, 7, 6, 9], 1)).toBe(7)
    expect(maxRetryAfter(standard, 9)).toBe(0)
    expect(maxRetryAfter([], 1)).toBe(0)
  })
})

const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]

/** Prints a date in HTTP's three formats; the last two are obsolete. */
const spellings = (instant: number) => {
  const fixdate = new Date(instant).toUTCString()
  const [weekday = "", date = "", month = "", yyyy = "", time = ""] = fixdate.split(" ")
  const weekdayInFull = weekdays[new Date(instant).getUTCDay()]
  return {
    fixdate,
    rfc850: `${weekdayInFull}, ${date}-${month}-${yyyy.slice(2)} ${time} GMT`,
    asctime: `${weekday.slice(0, 3)} ${month} ${date.replace(/^0/, " ")} ${time} ${yyyy}`,
  }
}

const secondsBetween = (min: number, max: number) =>
  fc
    .integer({ min: Math.ceil(min / second), max: Math.floor(max / second) })
    .map((seconds) => seconds * second)

describe("an HTTP date", () => {
  it.each([
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
  ])("has one of the formats in RFC 9110, and nothing around it: %s", (text) => {
    expect(parseHttpDate(text, now)).toBe(784_111_777_000)
    for (const longer of [`x${text}`, `${text}x`, `${text}1`]) {
      expect(parseHttpDate(longer, now)).toBeUndefined()
    }
  })

  it("is read to the second in the formats with a four-digit year", () => {
    const instants = secondsBetween(Date.UTC(1000, 0, 1), Date.UTC(9999, 11, 31))
    fc.assert(
      fc.property(instants, (instant) => {
        const { asctime, fixdate } = spellings(instant)
        expect(parseHttpDate(fixdate, now)).toBe(instant)
        expect(parseHttpDate(asctime, now)).toBe(instant)
      }),
    )
  })

  it("with a two-digit year is at most fifty years in the future", () => {
    fc.assert(
      fc.property(secondsBetween(now - 48 * year, now + 49 * year), (instant) => {
        expect(parseHttpDate(spellings(instant).rfc850, now)).toBe(instant)
      }),
    )
  })

  it.each([
    ["another weekday", "Mon, 06 Nov 1994 08:49:37 GMT"],
    ["a day that does not exist", "Thu, 31 Feb 2028 00:00:00 GMT"],
    ["an hour that does not exist", "Sun, 06 Nov 1994 24:49:37 GMT"],
    ["a minute that does not exist", "Sun, 06 Nov 1994 08:60:37 GMT"],
    ["one digit for the day", "Sun, 6 Nov 1994 08:49:37 GMT"],
    ["one space less", "Sun Nov 6 08:49:37 1994"],
    ["a month in lower case", "Sun, 06 nov 1994 08:49:37 GMT"],
    ["another time zone", "Sun, 06 Nov 1994 08:49:37 UTC"],
    ["an offset", "Sun, 06 Nov 1994 08:49:37 +0000"],
    ["no time zone", "Sun, 06 Nov 1994 08:49:37"],
    ["a mixed format", "Sunday, 06 Nov 1994 08:49:37 GMT"],
    ["an unknown weekday", "Sundays, 06-Nov-94 08:49:37 GMT"],
    ["the format of ISO 8601", "1994-11-06T08:49:37Z"],
    ["a date only", "06 Nov 1994"],
    ["seconds", "784111777"],
    ["no text", ""],
  ])("cannot have %s: %j", (_name, text) => {
    expect(parseHttpDate(text, now)).toBeUndefined()
  })
})

describe("Retry-After", () => {
  it("is a number of seconds, up to the longest wait", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 400n }), fc.nat(), (seconds, most) => {
        const asked = parseRetryAfter(String(seconds), now, most)
        expect(asked).toBe(Math.min(Number(seconds) * second, most))
      }),
    )
  })

  it("is a date, up to the longest wait; 0 for a date in the past", () => {
    fc.assert(
      fc.property(secondsBetween(now - year, now + year), fc.nat(), (instant, most) => {
        const expected = Math.min(Math.max(0, instant - now), most)
        for (const field of Object.values(spellings(instant))) {
          expect(parseRetryAfter(field, now, most)).toBe(expected)
        }
      }),
    )
  })

  it("is 0 if the field is missing or invalid", () => {
    const numbers = ["-5", "+5", "1.5", "1e3", "0x10", "Infinity", "5 seconds", "5, 10"]
    const dates = ["2030-01-01", "2030-01-01T00:00:00Z", "January 1, 2030"]
    const zoned = "Tue, 01 Jan 2030 00:00:00 +0100"
    for (const field of [undefined, "", "soon", ...numbers, ...dates, zoned]) {
      expect([field, parseRetryAfter(field, now, 10 * year)]).toEqual([field, 0])
    }
    // A year alone means seconds.
    expect(parseRetryAfter("2030", now, 10 * year)).toBe(2_030_000)
  })

  it("is from 0 to the longest wait, whatever the field is", () => {
    const fields = fc.oneof(
      fc.string(),
      fc.string({ unit: fc.constantFrom(..."0123456789 :,GMT") }),
    )
    fc.assert(
      fc.property(fields, fc.nat(), (field, most) => {
        const asked = parseRetryAfter(field, now, most)
        expect(asked).toBeGreaterThanOrEqual(0)
        expect(asked).toBeLessThanOrEqual(most)
      }),
    )
  })
})

const rules: VerdictRules = { retrySchedule: standard, disableAfter: 5 * day }
const first: WebhookStanding = { attemptNumber: 1, failures: 0, failingSince: undefined }
const noAnswer: VerdictOutcome = { endedAt: now, status: undefined, retryAfter: undefined }

const anyRules = fc.record({
  retrySchedule: schedules,
  disableAfter: fc.integer({ min: 1, max: 366 * day }),
})
const anyStanding = fc.record({
  attemptNumber: attemptNumbers,
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

/** Generates webhooks without long failures. */
const lately = anyStanding.map((standing) => ({ ...standing, failingSince: undefined }))

/** Returns the waits after an attempt: the delivery's and the webhook's. */
const waits = (verdict: Verdict) =>
  verdict._tag === "Retry" ? verdict : { delayMillis: undefined, holdMillis: 0, ...verdict }

it("an attempt succeeds, is the last one of its webhook or delivery, or is repeated", () => {
  const statuses = fc.oneof(
    fc.constantFrom(undefined, 199, 200, 299, 300, 410),
    fc.integer({ min: 100, max: 999 }),
  )
  const expected = (
    { disableAfter, retrySchedule }: VerdictRules,
    { attemptNumber, failingSince = now }: WebhookStanding,
    status: number | undefined,
  ) => {
    if (status !== undefined && status >= 200 && status < 300) return { _tag: "Delivered" }
    if (status === 410) return { _tag: "Disabled", reason: "gone" }
    if (now - failingSince >= disableAfter) return { _tag: "Disabled", reason: "failing" }
    return { _tag: attemptNumber <= retrySchedule.length ? "Retry" : "Failed" }
  }
  fc.assert(
    fc.property(
      anyRules,
      fc.oneof(anyStanding, lately),
      fc.record({ endedAt: fc.constant(now), status: statuses, retryAfter }),
      random,
      (given, standing, outcome, at) => {
        const verdict = decideVerdict(given, standing, outcome, at)
        expect(verdict).toMatchObject(expected(given, standing, outcome.status))
      },
    ),
    { numRuns: 300 },
  )
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
  it("may be later because of Retry-After, up to the next two delays, and never earlier", () => {
    fc.assert(
      fc.property(anyRules, lately, failed, random, (given, standing, outcome, at) => {
        const waitsAfter = (field: string | undefined) =>
          waits(decideVerdict(given, standing, { ...outcome, retryAfter: field }, at))
        const { delayMillis, holdMillis } = waitsAfter(outcome.retryAfter)
        const delay = delayMillis ?? 0
        expect(delay).toBeGreaterThanOrEqual(waitsAfter(undefined).delayMillis ?? 0)
        const { attemptNumber } = standing
        const [step = 0, ...next] = given.retrySchedule.slice(attemptNumber - 1, attemptNumber + 2)
        expect(delay).toBeLessThanOrEqual(Math.max(Math.ceil(1.2 * step), ...next))
        // The webhook is held no longer, and a minute after the last attempt.
        expect(holdMillis).toBeLessThanOrEqual(delayMillis ?? minute)
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
    expect(verdict).toMatchObject({ _tag: "Retry", delayMillis: expected })
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

  it("is held for a second after the status of an overloaded receiver, and after no other", () => {
    const holdAfter = (status: number | undefined) =>
      waits(decideVerdict(rules, first, { ...noAnswer, status }, 0.5)).holdMillis
    expect([429, 502, 503, 504].map(holdAfter)).toEqual([second, second, second, second])
    expect([undefined, 400, 404, 500].map(holdAfter)).toEqual([0, 0, 0, 0])
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

describe("the error of an attempt", () => {
  const ofStatus = (status: number) =>
    describeAttemptError({ _tag: "Answered", status, body: "a secret" })

  it("is missing for a success", () => {
    expect([200, 204, 299].map(ofStatus)).toEqual([undefined, undefined, undefined])
  })

  it.each([
    ["Only 200 to 299", [199, 400, 500]],
    ["Redirects are not followed", [300, 301, 399]],
    ["no more notifications", [410]],
  ])("says %s for the status %j, and nothing of the response", (text, statuses) => {
    for (const status of statuses) {
      expect(ofStatus(status)).toContain(String(status))
      expect(ofStatus(status)).toContain(text)
      expect(ofStatus(status)).not.toContain("secret")
    }
  })

  it.each([
    ["Timeout", "did not answer in time"],
    ["NoAnswer", "closed the connection without an answer"],
    ["AddressNotAllowed", "may not reach"],
    ["SecretUnreadable", "Nothing was sent, because the secret"],
    ["Unreadable", "Nothing was sent, because the event"],
    ["Defect", "an internal error"],
    ["ECONNREFUSED", "refused the connection"],
    ["ECONNRESET EPIPE", "The receiver closed the connection."],
    ["ETIMEDOUT EHOSTUNREACH ENETUNREACH", "cannot be reached"],
    ["ENOTFOUND", "does not exist"],
    ["EAI_AGAIN", "cannot be resolved at the moment"],
    ["CERT_HAS_EXPIRED", "has expired"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "for another host name"],
    ["DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN", "is not trusted"],
    ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY UNABLE_TO_VERIFY_LEAF_SIGNATURE", "is not trusted"],
    ["Proxy:407", "requires other credentials"],
    ["Proxy:ECONNRESET", "The proxy for webhooks closed the connection"],
    ["Proxy:ETIMEDOUT", "The proxy for webhooks did not connect to the receiver in time."],
    ["Proxy:403", "did not connect to the receiver: it answered 403."],
    ["Proxy:ECONNREFUSED", "The proxy for webhooks cannot be used: ECONNREFUSED."],
    ["Proxy:E403", "The proxy for webhooks cannot be used: E403."],
    ["Proxy:403E", "The proxy for webhooks cannot be used: 403E."],
    ["Proxy", "could not be sent: Proxy."],
    ["Other:407", "could not be sent: Other:407."],
    ["HPE_INVALID_CONSTANT", "could not be sent: HPE_INVALID_CONSTANT."],
    ["constructor", "could not be sent: constructor."],
  ])("says what %s means", (reasons, text) => {
    for (const reason of reasons.split(" ")) {
      expect(describeAttemptError({ _tag: "Failed", reason })).toContain(text)
    }
  })
})
