/** Extensions over HTTP, on PostgreSQL: from many clients beside one. */

import { type Section, rowsOf } from "../measurement.ts"
import { overHttp, start, startServer } from "../processes.ts"
import { compare } from "../rounds.ts"
import { requests, tokensOf } from "../servers/workload.ts"
import type { Target } from "../target.ts"

const schema = "benchmark_http"

const one = "Tenure, from one key"
const targets: Record<string, Target> = {
  [one]: {
    of: "ratio",
    atLeast: 0.95,
    profile:
      "Every key has a row of its own. A statement that takes for 24 keys locks and writes 25 rows rather than 2, which costs PostgreSQL more than twice as much.",
  },
}

const oneKeyTarget: Target = {
  of: "figure",
  atLeast: 12_000,
  profile:
    "The server works 80 µs for an extension, 67 of them on HTTP, PostgreSQL 56 and the load generator 19: together 155 µs on two processors, so that 12,900 a second would leave none of them idle.",
}

/** Throughput of one process. All requests come from one address. */
export const httpPostgres: Section = {
  name: "http-postgres",
  measure: async (settings) => {
    const keys = settings.pick(2000, 100)
    const { sql, url } = await settings.database()
    await sql(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
    const server = await startServer("tenure-postgres", [url, schema, String(keys)])
    const generator = await start("./load-generator.ts")
    const contestant = (name: string, count: number) =>
      overHttp(name, server, generator, requests(undefined, tokensOf(count)))
    const field = {
      tenure: contestant("Tenure", keys),
      peers: [contestant(one, 1)],
    }
    const scores = await compare(field, settings)
    for (const { stop } of [generator, server]) stop()
    await sql(`DROP SCHEMA ${schema} CASCADE`)
    const [ofOne = scores.tenure] = scores.peers
    return {
      rows: [
        ...rowsOf("extension over HTTP, on PostgreSQL, from 2,000 keys", "rate", scores, targets),
        {
          measured: "extension over HTTP, on PostgreSQL, from one key",
          unit: "/s",
          figure: ofOne.rate,
          target: oneKeyTarget,
        },
      ],
    }
  },
}
