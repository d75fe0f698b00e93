/** What servers hold, in connections, memory and files, and what they leave behind when they end. */

import { groupBy } from "effect/Array"
import type { Check, Connection, Finding, Holding, Run, Sample, Size } from "../history.ts"
import { deadline } from "../trouble.ts"

const maxPerKey = 10

const placeOf = ({ key, process }: Connection): string => `${key} at ${process}`

export const slots: Check = {
  name: "ten connections of a key at a process",
  find: ({ connections }) =>
    Object.values(groupBy(connections, placeOf)).flatMap((all) =>
      all.flatMap(({ from, key, process }) => {
        const open = all.filter((other) => other.from <= from && other.to > from).length
        const text = `${key} has ${open} connections at ${process}`
        return open > maxPerKey ? [{ text, at: from }] : []
      }),
    ),
}

const longestMillis = 10_000

export const revocations: Check = {
  name: "connections of a revoked key end within ten seconds",
  find: (run) =>
    run.revocations
      .filter(({ ended, revoked }) => ended > deadline(run, revoked, longestMillis))
      .map(({ ended, revoked }) => ({
        text: `a connection ended ${(ended - revoked).toFixed(0)} ms after its key was revoked`,
        at: ended,
      })),
}

// A server closes the connection at once, and cuts it if the client does not close it, too.
const longestIntrusionMillis = 3000

export const intrusions: Check = {
  name: "connections end after what is no frame of the protocol",
  find: (run) =>
    run.intrusions
      .filter(({ at, ended }) => ended > deadline(run, at, longestIntrusionMillis))
      .map(({ at, ended, sent }) => ({
        text: `a connection was open ${(ended - at).toFixed(0)} ms after ${sent}`,
        at: ended,
      })),
}

// The default `SHUTDOWN_TIMEOUT`.
const longestExitMillis = 20_000

export const exits: Check = {
  name: "servers end cleanly",
  find: ({ exits: all, slackMillis }) =>
    all
      .filter(({ code, millis }) => code !== 0 || millis > longestExitMillis + slackMillis)
      .map(({ code, millis, process, signal }) => ({
        text: `${process} ended with ${signal ?? code} after ${millis.toFixed(0)} ms`,
      })),
}

// Many secrets begin alike. Without this beginning, a log has no such secret.
const beginLength = 6

export const logs: Check = {
  name: "no secret in any log",
  find: ({ logs: all, secrets }) => {
    const alike = Object.entries(
      groupBy(Object.entries(secrets), ([, secret]) => secret.slice(0, beginLength)),
    )
    return all.flatMap(({ process, text }) =>
      alike
        .flatMap(([begin, some]) => (text.includes(begin) ? some : []))
        .filter(([, secret]) => text.includes(secret))
        .map(([name]) => ({ text: `the log of ${process} contains ${name}` })),
    )
  },
}

const maxGrownBytes = 200 * 2 ** 20
const maxGrownHandles = 40

/** Finds that a process holds much more than before. */
export const grown = (process: string, before: Holding, after: Holding): ReadonlyArray<Finding> => [
  ...(after.bytes - before.bytes > maxGrownBytes
    ? [{ text: `${process} grew from ${before.bytes} to ${after.bytes} bytes` }]
    : []),
  ...(after.handles - before.handles > maxGrownHandles
    ? [{ text: `${process} grew from ${before.handles} to ${after.handles} open files` }]
    : []),
]

/** Finds the processes that hold much more than before. */
export const grownAmong = (all: ReadonlyArray<Size>): ReadonlyArray<Finding> =>
  all.flatMap(({ after, before, process }) => grown(process, before, after))

/** A process from its start to its end. A restart begins another one. */
interface Life {
  readonly process: string
  readonly samples: ReadonlyArray<Sample>
}

export const livesOf = (samples: ReadonlyArray<Sample>): ReadonlyArray<Life> =>
  Object.values(groupBy(samples, ({ id, process }) => `${process} ${id}`)).map((all) => ({
    process: all[0].process,
    samples: all,
  }))

/** How long a life takes, in milliseconds. */
export const ageOf = ({ samples }: Life): number =>
  (samples.at(-1)?.at ?? 0) - (samples[0]?.at ?? 0)

/** Returns the median that the samples in a third of a life say. */
export const medianOf = (
  { samples }: Life,
  third: 0 | 1 | 2,
  of: (sample: Sample) => number,
): number => {
  const values = samples.filter((_, index) => Math.floor((3 * index) / samples.length) === third)
  const sorted = values.map(of).toSorted((one, other) => one - other)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}

// Sooner, memory still grows to what the work needs, and a third has few samples.
const leastMillis = 1_200_000

const isJudged = (life: Life): boolean => ageOf(life) >= leastMillis

/** Returns the sizes that are compared. What has run for long is judged by its growth. */
export const comparedSizes = ({ samples, sizes: all }: Run): ReadonlyArray<Size> => {
  const last = new Map(livesOf(samples).map((life) => [life.process, life]))
  return all.filter(({ process }) => {
    const life = last.get(process)
    return life === undefined || !isJudged(life)
  })
}

export const sizes: Check = {
  name: "memory and handles stay flat",
  find: (run) => grownAmong(comparedSizes(run)),
}

/** What is judged in a sample, and by how much it may grow from the middle third of a life to its last. */
const measures = [
  { name: "bytes of heap", most: 8 * 2 ** 20, of: ({ heapBytes }: Sample) => heapBytes },
  { name: "resident bytes", most: 64 * 2 ** 20, of: ({ bytes }: Sample) => bytes },
  { name: "open files", most: 20, of: ({ handles }: Sample) => handles },
] as const

export const growth: Check = {
  name: "what a server holds does not grow with time",
  find: ({ samples }) =>
    livesOf(samples)
      .filter(isJudged)
      .flatMap((life) =>
        measures.flatMap(({ most, name, of }) => {
          const middle = medianOf(life, 1, of)
          const last = medianOf(life, 2, of)
          const text = `${life.process} grew from ${middle} to ${last} ${name} in a third of ${(ageOf(life) / 1000).toFixed(0)} s`
          return last - middle > most ? [{ text, at: life.samples.at(-1)?.at }] : []
        }),
      ),
}
