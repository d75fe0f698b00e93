/** What metrics cost: an extension over HTTP, in memory, with them and without. */

import { rowsOf, type Section } from "../measurement.ts"
import { compare } from "../rounds.ts"
import { withServers } from "../withServers.ts"

const without = "Tenure without metrics"

const served = {
  tenure: { name: "Tenure with metrics", server: "tenureMetrics" },
  peers: [{ name: without, server: "tenure" }],
}

const profile =
  "A request updates three histograms, and reads the clock twice for each: of the request, of the take from its buckets, and of the change."

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
          [without]: { of: "ratio", atMost: 1.05, profile },
        },
      ),
    })),
}
