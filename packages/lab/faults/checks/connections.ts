/** How many connections a key may have, and that they end with the key or with what is no protocol. */

import { groupBy } from "effect/Array"
import type { Check, Connection } from "../history.ts"
import { deadline } from "../trouble.ts"

const mostPerKey = 10

const placeOf = ({ key, process }: Connection): string => `${key} at ${process}`

/** Checks that a key has no more than ten connections at a process. */
export const slots: Check = {
  name: "ten connections of a key at a process",
  find: ({ connections }) =>
    Object.values(groupBy(connections, placeOf)).flatMap((all) =>
      all.flatMap(({ from, key, process }) => {
        const open = all.filter((other) => other.from <= from && other.to > from).length
        return open > mostPerKey
          ? [{ text: `${key} has ${open} connections at ${process}`, at: from }]
          : []
      }),
    ),
}

const longestMillis = 10_000

/** Checks that a key that is revoked gets nothing more. */
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

/** Checks that a connection ends whose client does not speak the protocol. */
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
