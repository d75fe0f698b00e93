/** What servers leave behind: in logs, in memory, and when they end. */

import { groupBy } from "effect/Array"
import type { Check, Holding, Size } from "../history.ts"
import { isJudged, livesOf } from "./growth.ts"

// The default of `SHUTDOWN_TIMEOUT`.
const longestExitMillis = 20_000

/** Checks exits. */
export const exits: Check = {
  name: "servers end cleanly",
  find: ({ exits: all, slackMillis }) =>
    all
      .filter(({ code, millis }) => code !== 0 || millis > longestExitMillis + slackMillis)
      .map(({ code, millis, process, signal }) => ({
        text: `${process} ended with ${signal ?? code} after ${millis.toFixed(0)} ms`,
      })),
}

// Many secrets begin alike. Without this beginning, a log has none of them.
const beginLength = 6

/** Checks logs. */
export const logs: Check = {
  name: "no secret in any log",
  find: ({ logs: all, secrets }) => {
    const alike = Object.entries(
      groupBy(Object.entries(secrets), ([, secret]) => secret.slice(0, beginLength)),
    )
    return all.flatMap(({ process, text }) =>
      alike
        .filter(([begin]) => text.includes(begin))
        .flatMap(([, some]) => some.filter(([, secret]) => text.includes(secret)))
        .map(([name]) => ({ text: `the log of ${process} contains ${name}` })),
    )
  },
}

const mostGrownBytes = 200 * 2 ** 20
const mostGrownHandles = 40

/** Finds that a process holds much more than before. */
export const grown = (
  process: string,
  before: Holding,
  after: Holding,
): ReadonlyArray<{ readonly text: string }> => [
  ...(after.bytes - before.bytes > mostGrownBytes
    ? [{ text: `${process} grew from ${before.bytes} to ${after.bytes} bytes` }]
    : []),
  ...(after.handles - before.handles > mostGrownHandles
    ? [{ text: `${process} grew from ${before.handles} to ${after.handles} open files` }]
    : []),
]

/** Finds the processes that hold much more than before. */
export const grownAmong = (all: ReadonlyArray<Size>): ReadonlyArray<{ readonly text: string }> =>
  all.flatMap(({ after, before, process }) => grown(process, before, after))

/** Checks sizes. What has run for long is judged by its growth. */
export const sizes: Check = {
  name: "memory and handles stay flat",
  find: ({ samples, sizes: all }) => {
    const last = new Map(livesOf(samples).map((life) => [life.process, life]))
    return grownAmong(
      all.filter(({ process }) => {
        const life = last.get(process)
        return life === undefined || !isJudged(life)
      }),
    )
  },
}
