/**
 * What this process knows of empty buckets. While a bucket is known to be empty, requests that draw
 * on it are refused without asking the store: takes elsewhere can only make it emptier.
 */

/** A bucket that refuses from `since` to `until`, in microseconds on this process's clock. */
interface Exhausted {
  readonly since: number
  readonly until: number
  /** When the bucket is full again, on the store's clock. */
  readonly tat: number
}

/** Remembers empty buckets. */
export interface ExhaustedBuckets {
  /** What is known of a bucket that refuses at `now`. */
  readonly find: (key: string, now: number) => Exhausted | undefined
  readonly remember: (key: string, bucket: Exhausted) => void
}

const maxRemembered = 10_000

/** Makes a memory of 10,000 buckets; beyond that the one remembered longest is forgotten. */
export const make = (): ExhaustedBuckets => {
  const buckets = new Map<string, Exhausted>()
  return {
    find: (key, now) => {
      const bucket = buckets.size === 0 ? undefined : buckets.get(key)
      if (bucket === undefined) return undefined
      // Before `since` the clock has been set back, and an instant by the old clock means nothing.
      if (now >= bucket.since && now < bucket.until) return bucket
      buckets.delete(key)
      return undefined
    },
    remember: (key, bucket) => {
      const [oldest] = buckets.keys()
      if (buckets.size >= maxRemembered && oldest !== undefined) buckets.delete(oldest)
      buckets.set(key, bucket)
    },
  }
}
