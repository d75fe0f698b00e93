/** Extensions over HTTP, in a folder. */

import type { Section } from "../measurement.ts"
import { overHttp, start, startServer } from "../processes.ts"
import { takeTurns } from "../rounds.ts"
import { requests, tokens } from "../servers/workload.ts"

const ways = [
  { name: "one at a time", connections: 1, members: undefined, atLeast: 400 },
  { name: "64 at a time", connections: 64, members: undefined, atLeast: 4000 },
  { name: "64 at a time, of one member", connections: 64, members: 1, atLeast: 2500 },
] as const

/** Throughput of one process whose commits wait for the disk. */
export const folder: Section = {
  name: "folder",
  measure: async (settings) => {
    const server = await startServer("tenure-folder")
    const generator = await start("./load-generator.ts")
    const scores = await takeTurns(
      ways.map(({ connections, members, name }) =>
        overHttp(name, server, generator, requests(undefined, tokens, members), connections),
      ),
      settings,
    )
    for (const { stop } of [generator, server]) stop()
    return {
      rows: ways.flatMap(({ atLeast, name }, index) => [
        {
          measured: `extension over HTTP, in a folder, ${name}`,
          unit: "/s",
          figure: scores[index]?.rate ?? NaN,
          target: { of: "figure", atLeast } as const,
        },
        {
          measured: `processor time of an extension in a folder, ${name}`,
          unit: "µs CPU",
          figure: scores[index]?.cpu ?? NaN,
        },
      ]),
    }
  },
}
