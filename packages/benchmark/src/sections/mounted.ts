/** Tenure mounted in a host, beside the same host that answers a constant. */

import { type Row, rowsOf, type Section, type Settings } from "../measurement.ts"
import { compare } from "../rounds.ts"
import { withServers } from "../withServers.ts"

/** A host: the modules of the folder `servers` with Tenure mounted in it, and without. */
interface Host {
  readonly name: string
  readonly mounted: string
  readonly bare: string
}

// One line for each adapter.
const hosts: ReadonlyArray<Host> = [
  { name: "Express", mounted: "mountedExpress", bare: "bareExpress" },
  { name: "Fastify", mounted: "mountedFastify", bare: "bareFastify" },
  { name: "fetch", mounted: "mountedFetch", bare: "bareFetch" },
]

const profile =
  "In any host the steps of a request take 16 µs: authentication, three limits, decoding, the change with its audit row and event, and the envelope 6, and Effect, which runs them, 10 with the garbage that it leaves."

const measure = (
  { bare, mounted, name }: Host,
  settings: Settings,
): Promise<ReadonlyArray<Row>> => {
  const yardstick = `${name}, a constant`
  const served = {
    tenure: { name: `Tenure in ${name}`, server: mounted },
    peers: [{ name: yardstick, server: bare }],
  }
  const target = { of: "difference", atMost: 8, profile } as const
  return withServers(served, async (field) => {
    const scores = await compare(field, settings)
    const measured = `extension over HTTP, mounted in ${name}`
    return [
      ...rowsOf(measured, "cpu", scores, { [yardstick]: target }),
      ...rowsOf(measured, "rate", scores),
    ]
  })
}

/** The additional cost of Tenure over the host in which it is mounted. */
export const mounted: Section = {
  name: "mounted",
  measure: async (settings) => {
    const rows: Array<Row> = []
    for (const host of hosts) rows.push(...(await measure(host, settings)))
    return { rows }
  },
}
