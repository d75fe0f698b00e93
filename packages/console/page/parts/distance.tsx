/** How far away an end is. */

import type { Membership } from "@tenure/client"
import { now } from "../lib/clock.ts"
import { Ago, durationOf, lastDate } from "./text.tsx"

const dayMillis = 86_400_000

/** How soon an end counts as soon, in days. */
export const soonDays = 7

// Ends further away fill the bar.
const maxDays = 365

const width = 64

interface Props {
  readonly of: Membership
}

/** How long a membership still lasts, in milliseconds. A pause stops its clock. */
const leftOf = ({ end_date, paused_at }: Membership): number =>
  Date.parse(end_date ?? lastDate) - (paused_at === null ? now() : Date.parse(paused_at))

/** How far away an end is, in words; in a pause, how much is left; nothing for life. */
export const Left = ({ of }: Props) => {
  if (of.end_date === null) return null
  if (of.paused_at === null) return <Ago iso={of.end_date} />
  const left = leftOf(of)
  return <>{left > 0 ? durationOf(left) : "nothing"} left after the pause</>
}

/** How far away an end is, as a bar; the text beside it says the same. */
export const Distance = ({ of }: Props) => {
  const days = leftOf(of) / dayMillis
  const tone = days <= 0 ? "rest" : days <= soonDays ? "warn" : "link"
  // The root keeps near ends apart.
  const share = Math.sqrt(Math.min(1, Math.max(0, days) / maxDays))
  return (
    <svg
      class={`far ${tone}`}
      viewBox={`0 0 ${width} 6`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <rect width={width} height={6} rx={3} />
      <rect width={days <= 0 ? 0 : Math.max(3, share * width)} height={6} rx={3} />
    </svg>
  )
}
