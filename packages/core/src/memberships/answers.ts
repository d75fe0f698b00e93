/** The answers that stores keep with idempotency keys. */

import { Millis } from "../base/time.ts"
import { type TimeZone, utc } from "./calendar.ts"
import { type BulkChange, EndDate, type OptionalForm } from "./end-date.ts"
import type { Membership } from "./membership.ts"
import { metadataFromJson } from "./metadata.ts"
import type { Pause } from "./pause.ts"
import { noGrace, storedTimeZone } from "./project-settings.ts"

/** A grant's first response: the membership afterwards. */
export interface GrantAnswer extends OptionalForm {
  /** When it was made, in milliseconds since the epoch. */
  readonly at: number
  readonly endDate: EndDate
  /** The project's time zone then. Default: UTC. */
  readonly timeZone?: TimeZone | undefined
  /** The project's grace then. Default: none. */
  readonly grace?: Millis | undefined
  /** The pause it is in. Default: none. */
  readonly pause?: Pause | undefined
  /** Whether it changed nothing, because the user had a membership. */
  readonly isLeft: boolean
  /** The metadata as JSON. */
  readonly metadata: string
}

/** Formats a grant's answer, for repetitions. */
export const formatGrantAnswer = ({
  at,
  endDate,
  grace = noGrace,
  inDays = false,
  isLeft,
  keptDay,
  metadata,
  pause,
  timeZone = utc,
}: GrantAnswer): string =>
  [
    at,
    endDate,
    inDays ? "day" : "instant",
    keptDay ?? "-",
    timeZone,
    grace,
    pause?.since ?? "-",
    pause?.until ?? "-",
    isLeft ? "left" : "granted",
    metadata,
  ].join(" ")

/** Formats a bulk extension's answer: the number of memberships, and the end date if it has one. */
export const formatBulkAnswer = (total: number, bulk: BulkChange): string =>
  bulk.mode === "extendBy" ? String(total) : `${total} ${bulk.endDate}`

/** Parses text from `formatBulkAnswer`, and the total of an undone bulk extension. */
export const parseBulkAnswer = (
  answer: string,
): { readonly total: number; readonly endDate: EndDate | undefined } => {
  const [total, endDate] = answer.split(" ")
  return {
    total: Number(total),
    endDate: endDate === undefined ? undefined : EndDate(Number(endDate)),
  }
}

const numberOf = (text = "-"): number | undefined => (text === "-" ? undefined : Number(text))

/** Parses text from `formatGrantAnswer`. */
export const parseGrantAnswer = (
  answer: string,
): Pick<GrantAnswer, "at" | "isLeft"> & Omit<Membership, "projectId" | "userId"> => {
  // Metadata may have spaces.
  const [at, endDate, unit, keptDay, zone = utc, grace = "0", since, until, outcome, ...metadata] =
    answer.split(" ")
  const pausedAt = numberOf(since)
  return {
    at: Number(at),
    endDate: EndDate(Number(endDate)),
    inDays: unit === "day",
    keptDay: numberOf(keptDay),
    timeZone: storedTimeZone(zone),
    grace: Millis(Number(grace)),
    pause: pausedAt === undefined ? undefined : { since: pausedAt, until: numberOf(until) },
    isLeft: outcome === "left",
    metadata: metadataFromJson(metadata.join(" ")),
  }
}
