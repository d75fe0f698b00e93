/** Text formatting. */

import type { Extended, Membership } from "@tenure/client"
import type { ComponentChildren } from "preact"
import { now } from "../lib/clock.ts"
import { partsOf } from "../lib/webhooks.ts"

const units = [
  ["year", 31_557_600_000],
  ["month", 2_629_800_000],
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
] as const

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" })

// Months and years are coarse: below two, smaller units say more.
const leastOf = (unit: string): number => (unit === "month" || unit === "year" ? 2 : 1)

/** Writes a time relative to now, such as `in 3 days`. */
const agoOf = (millis: number): string => {
  const [unit, size] = units.find(
    ([name, length]) => Math.abs(millis) >= leastOf(name) * length,
  ) ?? ["second", 1000]
  return relative.format(Math.round(millis / size), unit)
}

/** Formats milliseconds, such as `1.2 s`. */
export const durationOf = (millis: number): string => {
  if (millis < 1000) return `${Math.round(millis)} ms`
  const [unit, size] = units.find(([, length]) => millis >= 2 * length) ?? ["second", 1000]
  return unit === "second"
    ? `${(millis / 1000).toFixed(1)} s`
    : `${Math.round(millis / size)} ${unit}s`
}

/** Formats a count, such as `2 checks`. */
export const amountOf = (count: number, thing: string): string =>
  `${count.toLocaleString("en")} ${thing}${count === 1 ? "" : "s"}`

// The API counts no further.
const maxCounted = 10_000

/** Formats a count up to 10,000; a dash if it is unknown. */
export const cappedOf = (count: number | undefined): string => {
  if (count === undefined) return "–"
  return count >= maxCounted ? "10,000+" : count.toLocaleString("en")
}

/** The end date for life, which changes and events keep. */
export const lastDate = "9999-12-31T23:59:59.999Z"

/** Returns the date and the minute, or the second, in UTC; an end date for life in words. */
export const utcOf = (iso: string, isExact = false): string =>
  iso === lastDate ? "for life" : iso.slice(0, isExact ? 19 : 16).replace("T", " ")

/** Says how many memberships for life would end, if there are any. */
export const lifetimesOf = (count = 0): string =>
  count === 0 ? "" : ` ${amountOf(count, "membership")} for life would end.`

/** A count, in red unless nothing is lost or goes out. */
export const Loss = ({ of }: { readonly of: number }) => (
  <span class={of > 0 ? "bad" : undefined}>{of.toLocaleString("en")}</span>
)

/** Says how many announcements a dry run counts. */
export const Announced = ({ of }: { readonly of: Extended["announcements"] }) =>
  of && (
    <>
      {" "}
      In 7 days, <Loss of={of.expiring} /> reminders and <Loss of={of.overdue + of.expired} /> ends
      would be announced, <Loss of={of.next_24_hours} /> in 24 hours.
    </>
  )

/** A time in UTC, to the minute or to the second. */
export const Time = ({
  iso,
  isExact,
  text,
}: {
  readonly iso: string | null
  readonly isExact?: boolean
  /** What it says, if this is not the time. */
  readonly text?: string | undefined
}) =>
  iso === null ? (
    <span class="dim">–</span>
  ) : (
    <time dateTime={iso} title={`${iso} (${agoOf(Date.parse(iso) - now())})`}>
      {text ?? utcOf(iso, isExact)}
    </time>
  )

const dayFormat = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" })

/** Formats a day, such as `31 Jan 2027`. */
export const dayText = (day: string): string => dayFormat.format(Date.parse(day))

/** A membership's end: its last day, or a time in UTC. */
export const End = (props: {
  readonly of: Pick<Membership, "end_date" | "through">
  readonly isExact?: boolean
}) => {
  const { end_date, through } = props.of
  const text = through === null ? undefined : `through ${dayText(through)}`
  return <Time {...props} iso={end_date ?? lastDate} text={text} />
}

/** A time relative to now; nothing for life. */
export const Ago = ({ iso }: { readonly iso: string }) =>
  iso === lastDate ? null : (
    <time dateTime={iso} title={iso}>
      {agoOf(Date.parse(iso) - now())}
    </time>
  )

const tones = {
  good: ["active", "delivered", "enabled", "succeeded"],
  wait: ["waiting", "paused"],
  warn: ["ends soon", "refused"],
  bad: ["failing", "given up", "disabled", "unreadable secret", "failed"],
  rest: ["expired", "cancelled", "revoked", "ended"],
}

const toneOf = (state: string): string =>
  Object.entries(tones).find(([, states]) => states.includes(state))?.[0] ?? "rest"

/** A state, in its colour. */
export const State = ({ of }: { readonly of: string }) => (
  <span class={`state ${toneOf(of)}`}>{of}</span>
)

/** A membership's state, and until when its pause or its grace lasts. */
export const MemberState = ({ of }: { readonly of: Membership }) => (
  <>
    <State of={of.state} />
    {of.resumes_at !== null && (
      <small>
        {" "}
        until <Time iso={of.resumes_at} />
      </small>
    )}
    {of.grace_until !== null && (
      <small>
        {" "}
        in grace until <Time iso={of.grace_until} />
      </small>
    )}
  </>
)

/** A webhook's URL: its host, and the rest in grey. */
export const Url = ({ of }: { readonly of: string }) => {
  const { host, rest } = partsOf(of)
  return (
    <>
      {host}
      <span class="dim">{rest}</span>
    </>
  )
}

// SVG paths for 16 × 16 pixels.
const icons = {
  home: "M2.5 7 8 2.5 13.5 7v6.5h-11zM6.5 13.5v-4h3v4",
  key: "M9.5 9.5a3.5 3.5 0 1 0-3-3l-4 4v3h3v-2h2z",
  audit: "M4 2.5h8v11H4zM6 5.5h4M6 8h4M6 10.5h2",
  project: "M2.5 5 8 2l5.5 3v6L8 14l-5.5-3zM2.5 5 8 8l5.5-3M8 8v6",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.5 10.5l3 3",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  fold: "m6 4 4 4-4 4",
  check: "m3 8.5 3.5 3.5L13 4.5",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  play: "M5 3v10l8-5z",
  pause: "M5.5 3v10M10.5 3v10",
  step: "M4 3v10l6-5zM12 3v10",
}

/** A small picture beside a text with the same meaning. */
export const Icon = ({ of }: { readonly of: keyof typeof icons }) => (
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
    <path d={icons[of]} />
  </svg>
)

/** A heading with a number beside it. */
export const Figure = (props: {
  readonly name: string
  readonly children: ComponentChildren
  readonly isBad?: boolean
}) => (
  <div class="figure">
    <dt>{props.name}</dt>
    <dd class={props.isBad === true ? "bad" : undefined}>{props.children}</dd>
  </div>
)

/** A value as JSON. */
export const Json = ({ value }: { readonly value: unknown }) => (
  <pre tabIndex={0}>{JSON.stringify(value, null, 2)}</pre>
)

/** Names and values. */
export const Facts = (props: {
  readonly of: ReadonlyArray<readonly [name: string, value: ComponentChildren]>
}) => (
  <dl class="facts">
    {props.of.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
)
