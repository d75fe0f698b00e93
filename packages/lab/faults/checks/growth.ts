/** What servers hold does not grow with the time for which they run. */

import { groupBy } from "effect/Array"
import type { Check, Sample } from "../history.ts"

/** What is judged of a sample, and by how much it may grow from the middle third of a life to its last third. */
const measures = [
  {
    name: "bytes of heap",
    most: 8 * 2 ** 20,
    of: ({ heapBytes }: Sample): number => heapBytes,
  },
  { name: "resident bytes", most: 64 * 2 ** 20, of: ({ bytes }: Sample): number => bytes },
  { name: "open files", most: 20, of: ({ handles }: Sample): number => handles },
] as const

/** A process from its start to its end. A restart begins another one. */
export interface Life {
  readonly process: string
  readonly samples: ReadonlyArray<Sample>
}

/** Returns the lives of all processes. */
export const livesOf = (samples: ReadonlyArray<Sample>): ReadonlyArray<Life> =>
  Object.values(groupBy(samples, ({ id, process }) => `${process} ${id}`)).map((all) => ({
    process: all[0].process,
    samples: all,
  }))

/** How long a life takes, in milliseconds. */
export const ageOf = ({ samples }: Life): number =>
  (samples.at(-1)?.at ?? 0) - (samples[0]?.at ?? 0)

/** Returns the samples of a third of a life. */
export const thirdOf = ({ samples }: Life, third: 0 | 1 | 2): ReadonlyArray<Sample> =>
  samples.filter((_, index) => Math.floor((3 * index) / samples.length) === third)

/** The middle one of some values. */
export const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0

// Sooner, memory still grows to what the work needs, and a third has few samples.
const leastMillis = 1_200_000

/** Whether a life is long enough to be judged. */
export const isJudged = (life: Life): boolean => ageOf(life) >= leastMillis

/** Checks growth. */
export const growth: Check = {
  name: "what a server holds does not grow with time",
  find: ({ samples }) =>
    livesOf(samples)
      .filter(isJudged)
      .flatMap((life) =>
        measures.flatMap(({ most, name, of }) => {
          const middle = median(thirdOf(life, 1).map(of))
          const last = median(thirdOf(life, 2).map(of))
          const text = `${life.process} grew from ${middle} to ${last} ${name} in a third of ${(ageOf(life) / 1000).toFixed(0)} s`
          return last - middle > most ? [{ text, at: life.samples.at(-1)?.at }] : []
        }),
      ),
}
