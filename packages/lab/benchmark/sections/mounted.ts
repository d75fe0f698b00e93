/** Tenure mounted in a host, beside the same host that answers a constant. */

import { type Row, type Section, type Settings, rowsOf } from "../measurement.ts"
import { compare } from "../rounds.ts"
import { withServers } from "../with-servers.ts"

/** A host: the modules of the folder `servers` with Tenure mounted in it, and without. */
interface Host {
  readonly name: string
  readonly mounted: string
  readonly bare: string
}

// One line for each adapter.
const hosts: ReadonlyArray<Host> = [
  { name: "Express", mounted: "mounted-express", bare: "bare-express" },
  { name: "Fastify", mounted: "mounted-fastify", bare: "bare-fastify" },
  { name: "fetch", mounted: "mounted-fetch", bare: "bare-fetch" },
]

const profile =
  "With a core that answers a constant, the adapters for fetch and Fastify take no longer than the hosts that answer one: all of the difference is the core. Its functions take 12 µs in any host, none of them more than a twentieth of that, and the garbage that they leave takes 2: the table further down lists them."

const measure = (
  { bare, mounted, name }: Host,
  settings: Settings,
): Promise<ReadonlyArray<Row>> => {
  const yardstick = `${name}, a constant`
  const served = {
    tenure: { name: `Tenure in ${name}`, server: mounted },
    peers: [{ name: yardstick, server: bare }],
  }
  const target = { of: "difference", atMost: 6, profile } as const
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
