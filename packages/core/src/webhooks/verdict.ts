/** Decides what follows an attempt: success, a retry, failure, or disabling the webhook. */

import type { Attempt } from "./outbox.ts"
import { type FailingPercent, type Health, failingPercents } from "./webhook.ts"

/** Delays between attempts, in milliseconds: after the first, after the second, and so on. */
export type RetrySchedule = ReadonlyArray<number>

const jitter = 0.2

/**
 * Returns the delay before the next attempt.
 *
 * @param attemptNumber - the failed attempt's number, from 1
 * @param random - a number from 0 to 1, to spread the delay by ± 20 %
 * @returns milliseconds, or `undefined` if there are no more attempts
 */
export const retryDelay = (
  schedule: RetrySchedule,
  attemptNumber: number,
  random: number,
): number | undefined => {
  const scheduled = schedule[attemptNumber - 1]
  return scheduled && Math.round(scheduled * (1 + jitter * (2 * random - 1)))
}

/**
 * Returns the maximum delay a receiver can request instead of the scheduled one: the next two steps'
 * delay.
 *
 * @param attemptNumber - the failed attempt's number, from 1
 * @returns milliseconds; 0 if there are no further steps
 */
export const maxRetryAfter = (schedule: RetrySchedule, attemptNumber: number): number =>
  Math.max(0, ...schedule.slice(attemptNumber, attemptNumber + 2))

const formats = [
  // IMF-fixdate: Sun, 06 Nov 1994 08:49:37 GMT
  /^(?<weekday>[A-Z][a-z]{2}), (?<day>\d\d) (?<month>[A-Z][a-z]{2}) (?<year>\d{4}) (?<time>\d\d:\d\d:\d\d) GMT$/,
  // The obsolete RFC 850 format: Sunday, 06-Nov-94 08:49:37 GMT
  /^(?<weekday>(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day), (?<day>\d\d)-(?<month>[A-Z][a-z]{2})-(?<year>\d\d) (?<time>\d\d:\d\d:\d\d) GMT$/,
  // The obsolete asctime format: Sun Nov  6 08:49:37 1994
  /^(?<weekday>[A-Z][a-z]{2}) (?<month>[A-Z][a-z]{2}) (?<day>[ \d]\d) (?<time>\d\d:\d\d:\d\d) (?<year>\d{4})$/,
]

/** Completes a two-digit year to at most 50 years in the future. */
const fullYear = (digits: string, now: number): string => {
  const latest = new Date(now).getUTCFullYear() + 50
  return String(latest - ((latest - Number(digits)) % 100))
}

/**
 * Parses a date in the required format, or in one of the two obsolete ones.
 *
 * @param now - milliseconds since the epoch; determines a two-digit year's century
 * @returns milliseconds since the epoch, or `undefined` if the text is not a date or the date does not
 *   exist
 * @example `parseHttpDate("Sun, 06 Nov 1994 08:49:37 GMT", now)` returns 784111777000
 */
export const parseHttpDate = (text: string, now: number): number | undefined => {
  for (const format of formats) {
    const fields = format.exec(text)?.groups
    if (fields === undefined) continue
    const { day = "", month = "", time = "", weekday = "", year = "" } = fields
    const yyyy = year.length === 2 ? fullYear(year, now) : year
    const weekdayAndDay = `${weekday.slice(0, 3)}, ${day.replace(" ", "0")}`
    return instantOf(`${weekdayAndDay} ${month} ${yyyy} ${time} GMT`)
  }
  return undefined
}

/** Returns an IMF-fixdate's instant. A nonexistent date is formatted differently. */
const instantOf = (fixdate: string): number | undefined => {
  const instant = Date.parse(fixdate)
  return new Date(instant).toUTCString() === fixdate ? instant : undefined
}

/**
 * Decodes the pause a receiver requests in the `Retry-After` header field (RFC 9110, 10.2.3).
 *
 * @param field - the field as sent: a number of seconds or an HTTP date
 * @param now - when the response ended, in milliseconds since the epoch
 * @param longest - the maximum pause to grant, in milliseconds
 * @returns milliseconds; 0 if the field is missing, invalid or in the past
 */
export const parseRetryAfter = (
  field: string | undefined,
  now: number,
  longest: number,
): number => {
  if (field === undefined) return 0
  const asked = /^\d+$/.test(field)
    ? Number(field) * 1000
    : (parseHttpDate(field, now) ?? now) - now
  return Math.min(Math.max(0, asked), longest)
}

/**
 * Decides which share of `disableAfter` a failing webhook has reached. At 100, it is disabled.
 *
 * @param failingSince - when the first attempt since the last success failed, if one did
 * @param now - when the latest one failed; all times are in milliseconds
 * @returns `undefined` below the first share
 */
export const decideFailingPercent = (
  failingSince: Health["failingSince"],
  now: number,
  disableAfter: number,
): FailingPercent | undefined => {
  if (failingSince === undefined) return undefined
  const failingFor = now - failingSince
  return failingPercents.findLast((percent) => 100 * failingFor >= percent * disableAfter)
}

/** A verdict on an attempt. */
export type Verdict =
  | { readonly _tag: "Delivered" }
  /** It is attempted again after `delayMillis`. Its webhook gets nothing for `holdMillis`. */
  | { readonly _tag: "Retry"; readonly delayMillis: number; readonly holdMillis: number }
  /** It is given up, because the schedule has ended. */
  | { readonly _tag: "Failed"; readonly holdMillis: number }
  /** It is given up and its webhook disabled: the receiver is gone, or has failed for too long. */
  | { readonly _tag: "Disabled"; readonly reason: "gone" | "failing" }

/** The rules for all verdicts. */
export interface VerdictRules {
  /** The delays between attempts, in milliseconds. */
  readonly retrySchedule: RetrySchedule
  /** How long a webhook may fail before it is disabled, in milliseconds. */
  readonly disableAfter: number
}

/** The delivery and its webhook before the attempt. */
export interface WebhookStanding extends Health {
  /** The attempt's number, from 1. */
  readonly attemptNumber: number
}

/** How the attempt ended. */
export interface VerdictOutcome {
  /** When it ended, in milliseconds since the epoch. */
  readonly endedAt: number
  /** The response's status; `undefined` without a response. */
  readonly status: number | undefined
  /** The response's `Retry-After` field, as sent. */
  readonly retryAfter: string | undefined
}

// Statuses from overloaded receivers.
const busy = new Set<number | undefined>([429, 502, 503, 504])

const busyPauseMillis = 1000

// After this many failures in a row, a webhook gets an attempt a minute.
const failuresToBreak = 10

const longestBreakMillis = 60_000

/** Returns how long to hold a webhook without `Retry-After`. */
const pauseMillis = (status: number | undefined, failures: number): number => {
  if (failures >= failuresToBreak) return longestBreakMillis
  return busy.has(status) ? busyPauseMillis : 0
}

/**
 * Decides about a failed attempt. `Retry-After` never shortens the delivery's delay, and holds the
 * webhook.
 */
const judgeFailure = (
  { retrySchedule }: VerdictRules,
  { attemptNumber, failures }: WebhookStanding,
  { endedAt, retryAfter, status }: VerdictOutcome,
  random: number,
): Verdict => {
  const scheduled = retryDelay(retrySchedule, attemptNumber, random)
  const longest =
    scheduled === undefined
      ? longestBreakMillis
      : Math.max(scheduled, maxRetryAfter(retrySchedule, attemptNumber))
  const asked = parseRetryAfter(retryAfter, endedAt, longest)
  const pause = asked > 0 ? asked : pauseMillis(status, failures + 1)
  if (scheduled === undefined) return { _tag: "Failed", holdMillis: pause }
  const delayMillis = Math.max(scheduled, asked)
  return { _tag: "Retry", delayMillis, holdMillis: Math.min(pause, delayMillis) }
}

/** Tells whether the receiver has accepted the event. */
const isSuccessStatus = (status: number | undefined): boolean =>
  status !== undefined && status >= 200 && status <= 299

/**
 * Decides about an attempt.
 *
 * @param random - a number from 0 to 1, to spread the delays
 */
export const decideVerdict = (
  rules: VerdictRules,
  standing: WebhookStanding,
  outcome: VerdictOutcome,
  random: number,
): Verdict => {
  const { endedAt, status } = outcome
  if (isSuccessStatus(status)) return { _tag: "Delivered" }
  if (status === 410) return { _tag: "Disabled", reason: "gone" }
  if (decideFailingPercent(standing.failingSince, endedAt, rules.disableAfter) === 100) {
    return { _tag: "Disabled", reason: "failing" }
  }
  return judgeFailure(rules, standing, outcome, random)
}

const untrusted = "The certificate of the receiver is not trusted."
const unreachable = "The receiver cannot be reached."

/** Explains the codes from transports and stores. */
const meanings: ReadonlyMap<string, string> = new Map([
  ["Timeout", "The receiver did not answer in time."],
  ["NoAnswer", "The receiver closed the connection without an answer."],
  ["AddressNotAllowed", "The receiver has an address that webhooks may not reach."],
  ["SecretUnreadable", "Nothing was sent, because the secret of the webhook cannot be read."],
  ["Unreadable", "Nothing was sent, because the event or the webhook cannot be read."],
  ["Defect", "The notification could not be sent because of an internal error."],
  ["ECONNREFUSED", "The receiver refused the connection."],
  ["ECONNRESET", "The receiver closed the connection."],
  ["EPIPE", "The receiver closed the connection."],
  ["ETIMEDOUT", unreachable],
  ["EHOSTUNREACH", unreachable],
  ["ENETUNREACH", unreachable],
  ["ENOTFOUND", "The host name of the receiver does not exist."],
  ["EAI_AGAIN", "The host name of the receiver cannot be resolved at the moment."],
  ["CERT_HAS_EXPIRED", "The certificate of the receiver has expired."],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "The certificate of the receiver is for another host name."],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", untrusted],
  ["SELF_SIGNED_CERT_IN_CHAIN", untrusted],
  ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", untrusted],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", untrusted],
])

const ofStatus = (status: number): string => {
  if (status === 410) return "The receiver answered 410: it wants no more notifications."
  return status >= 300 && status <= 399
    ? `The receiver answered ${status}. Redirects are not followed.`
    : `The receiver answered ${status}. Only 200 to 299 mean that it has the notification.`
}

/** Describes a proxy's failure by its status, or by a code if it did not answer. */
const ofProxy = (cause: string): string => {
  switch (cause) {
    case "407":
      return "The proxy for webhooks answered 407: it requires other credentials, or refuses the receiver."
    case "ECONNRESET":
      return "The proxy for webhooks closed the connection, and did not connect to the receiver."
    case "ETIMEDOUT":
      return "The proxy for webhooks did not connect to the receiver in time."
    default:
      return /^\d+$/.test(cause)
        ? `The proxy for webhooks did not connect to the receiver: it answered ${cause}.`
        : `The proxy for webhooks cannot be used: ${cause}.`
  }
}

const ofReason = (reason: string): string => {
  const [prefix, cause] = reason.split(":")
  if (prefix === "Proxy" && cause !== undefined) return ofProxy(cause)
  return meanings.get(reason) ?? `The notification could not be sent: ${reason}.`
}

/** Describes an error; returns `undefined` if the attempt succeeded. */
export const describeAttemptError = (result: Attempt["result"]): string | undefined => {
  if (result._tag === "Failed") return ofReason(result.reason)
  return isSuccessStatus(result.status) ? undefined : ofStatus(result.status)
}
