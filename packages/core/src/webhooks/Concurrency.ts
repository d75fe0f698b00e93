/** The concurrency of a webhook: how many attempts for it may be in flight. It follows their success. */

/** Bounds of a concurrency. */
export interface Range {
  readonly least: number
  readonly most: number
}

/** The bounds for every webhook. */
export const range: Range = { least: 4, most: 16 }

/** The concurrency of a webhook without attempts. */
export const initial = range.least

/** Returns the concurrency after a successful attempt: one more. */
export const afterSuccess = (concurrency: number): number => Math.min(range.most, concurrency + 1)

/** Returns the concurrency after a failed attempt: half. */
export const afterFailure = (concurrency: number): number =>
  Math.max(range.least, Math.floor(concurrency / 2))

/** Returns the concurrency within other bounds, for example while there is little room. */
export const within = (concurrency: number, { least, most }: Range): number =>
  Math.max(least, Math.min(concurrency, most))
