/** How far away an end is. */

import { now } from "../lib/clock.ts"

const dayMillis = 86_400_000

/** How soon an end counts as soon, in days. */
export const soonDays = 7

// Ends further away fill the bar.
const maxDays = 365

const width = 64

/** How far away an end is, as a bar; the text beside it says the same. */
export const Distance = ({ iso }: { readonly iso: string }) => {
  const days = (Date.parse(iso) - now()) / dayMillis
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
