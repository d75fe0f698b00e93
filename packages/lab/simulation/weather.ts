/** What a seed decides about a run: how often what fails, and how the receivers behave. */

import { type Random, random } from "../faults/random.ts"

/** The least and the most milliseconds. */
type Span = readonly [least: number, most: number]

/** How a network or a server fails. All but the delays are probabilities. */
export interface Trouble {
  readonly delay: Span
  /** Nothing arrives, and nobody answers. */
  readonly lost: number
  /** What was asked for is done, and the answer does not arrive. */
  readonly unanswered: number
  /** It arrives twice. */
  readonly doubled: number
}

/** How receivers answer. All are probabilities. */
export interface Receiving extends Trouble {
  readonly refused: number
  readonly hanging: number
}

/** What a seed decides. */
export interface Weather {
  readonly isCalm: boolean
  readonly processes: number
  readonly store: Trouble
  readonly http: Trouble
  readonly receivers: Receiving
  /** How long the time is in which things fail, in milliseconds. */
  readonly millis: number
  /** When a process crashes, in milliseconds since the beginning. It starts again soon. */
  readonly crashes: ReadonlyArray<number>
  /** When a process stands still, as when its machine is overloaded, and for how long. */
  readonly outages: ReadonlyArray<{ readonly at: number; readonly millis: number }>
  /** When everything moves to another server, if it is in a database. */
  readonly moves: ReadonlyArray<number>
  /** When a wall clock is set, by how much, and whether it is the store's. */
  readonly jumps: ReadonlyArray<{
    readonly at: number
    readonly byMillis: number
    readonly isOfStore: boolean
  }>
  /** By how much clocks run fast or slow, as a share. */
  readonly drift: number
  /** How many requests a key may make in a minute, if few. */
  readonly limit: number | undefined
}

/** Nothing fails. */
export const calm: Trouble = { delay: [0, 5], lost: 0, unanswered: 0, doubled: 0 }

/** Receivers that accept everything. */
export const well: Receiving = { ...calm, refused: 0, hanging: 0 }

/** A weather without failures, but for its processes, its time and its limit. */
export const calmWeather = {
  isCalm: true,
  store: calm,
  http: calm,
  receivers: well,
  crashes: [],
  outages: [],
  moves: [],
  jumps: [],
  drift: 0,
} as const

const troubleOf = ({ between, chance, pick }: Random): Trouble => {
  const slowest = pick([5, 50, 500])
  const some = (most: number): number => (chance(0.5) ? between(0, most) : 0)
  return { delay: [0, slowest], lost: some(0.2), unanswered: some(0.2), doubled: some(0.2) }
}

const several = <A>(count: number, make: () => A): ReadonlyArray<A> =>
  Array.from({ length: count }, make)

/** Decides on a seed's weather. One in five is calm: nothing fails, so nothing may be repeated. */
export const weatherOf = (seed: number): Weather => {
  const choose = random(seed, "weather")
  const { below, between, chance, pick } = choose
  const isCalm = chance(0.2)
  const millis = pick([5000, 30_000, 120_000])
  const processes = pick([1, 1, 2, 2, 3])
  const limit = chance(0.2) ? 3 + below(5) : undefined
  if (isCalm) return { ...calmWeather, processes, millis, limit }
  const at = (): number => between(0, millis)
  return {
    isCalm,
    processes,
    store: { ...troubleOf(choose), doubled: 0 },
    http: troubleOf(choose),
    receivers: {
      ...troubleOf(choose),
      refused: pick([0, 0.1, 0.5]),
      hanging: pick([0, 0, 0.1]),
    },
    millis,
    crashes: several(below(3), at),
    outages: several(below(2), () => ({ at: at(), millis: between(100, 10_000) })),
    jumps: several(below(3), () => ({
      at: at(),
      byMillis: pick([-3_600_000, -5000, 200, 5000, 60_000, 3_600_000]),
      isOfStore: chance(0.4),
    })),
    drift: pick([0, 0, 0.0001, 0.01]),
    limit,
    moves: several(below(3), at),
  }
}
