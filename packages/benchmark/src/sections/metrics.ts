/** What metrics cost: an extension over HTTP, in memory, with them and without. */

import { rowsOf, type Section } from "../measurement.ts"
import { compare } from "../rounds.ts"
import { withServers } from "../withServers.ts"

const without = "Tenure without metrics"

const served = {
  tenure: { name: "Tenure with metrics", server: "tenureMetrics" },
  peers: [{ name: without, server: "tenure" }],
}

/** The processor time of one process. */
export const metrics: Section = {
  name: "metrics",
  measure: (settings) =>
    withServers(served, async (field) => ({
      rows: rowsOf(
        "extension over HTTP, in memory, metrics on",
        "cpu",
        await compare(field, settings),
        {
          [without]: { of: "ratio", atMost: 1.05 },
        },
      ),
    })),
}
