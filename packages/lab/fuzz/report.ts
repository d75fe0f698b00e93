/** Reports a failure, so that somebody can repeat it. */

import type { Answer } from "./answers.ts"
import type { Exchange } from "./connection.ts"
import type { Failure } from "./run.ts"

const literal = (packet: Buffer): string =>
  `Buffer.from(${JSON.stringify(packet.toString("latin1")).replaceAll(
    /[\x7f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  )}, "latin1")`

const packetsOf = ({ packets }: Exchange): ReadonlyArray<string> =>
  packets.map((packet) => `  ${literal(packet)}`)

const describe = ({ body, status }: Answer): string => `${status} ${body.slice(0, 400)}`

/** Returns the seed, what is wrong, the bytes as JavaScript literals, and all answers. */
export const report = (seed: number, { exchange, problems, replies }: Failure): string =>
  [
    `Failure with seed ${seed}:`,
    ...problems.map((problem) => `- ${problem}`),
    "Sent, one packet a line:",
    ...packetsOf(exchange),
    "Answers:",
    ...replies.map(
      ({ host, reply }) => `  ${host} (${reply.end}): ${reply.answers.map(describe).join("; ")}`,
    ),
    ...replies.flatMap(({ host, reply: { end, previous } }) =>
      end === "late" && previous !== undefined
        ? [`Before that, over the same connection to ${host}:`, ...packetsOf(previous)]
        : [],
    ),
    "",
  ].join("\n")
