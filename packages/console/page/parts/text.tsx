/** Small pieces of text. */

import type { ComponentChildren } from "preact"

const units = [
  ["year", 31_557_600_000],
  ["month", 2_629_800_000],
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
] as const

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" })

/** Writes a time relative to now, such as `in 3 days`. */
const agoOf = (millis: number): string => {
  const [unit, size] = units.find(([, length]) => Math.abs(millis) >= length) ?? ["second", 1000]
  return relative.format(Math.round(millis / size), unit)
}

/** Formats milliseconds, such as `1.2 s`. */
export const durationOf = (millis: number): string => {
  if (millis < 1000) return `${millis} ms`
  const [unit, size] = units.find(([, length]) => millis >= 2 * length) ?? ["second", 1000]
  return unit === "second"
    ? `${(millis / 1000).toFixed(1)} s`
    : `${Math.round(millis / size)} ${unit}s`
}

/** Formats a count, such as `2 checks`. */
export const amountOf = (count: number, thing: string): string =>
  `${count.toLocaleString("en")} ${thing}${count === 1 ? "" : "s"}`

/** A time in UTC, to the second. */
export const Time = ({ iso }: { readonly iso: string | null }) =>
  iso === null ? (
    <span class="dim">–</span>
  ) : (
    <time dateTime={iso} title={`${iso} (${agoOf(Date.parse(iso) - Date.now())})`}>
      {iso.slice(0, 19).replace("T", " ")}
    </time>
  )

/** A time relative to now. */
export const Ago = ({ iso }: { readonly iso: string }) => (
  <time dateTime={iso} title={iso}>
    {agoOf(Date.parse(iso) - Date.now())}
  </time>
)

const tones = {
  good: ["active", "delivered", "enabled", "answers"],
  bad: ["failed", "disabled", "revoked", "away"],
  warn: ["failing", "waiting", "expired"],
}

const toneOf = (state: string): string =>
  Object.entries(tones).find(([, states]) => states.includes(state))?.[0] ?? "plain"

/** A state, in its colour. */
export const State = ({ of }: { readonly of: string }) => (
  <span class={`state ${toneOf(of)}`}>{of}</span>
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
