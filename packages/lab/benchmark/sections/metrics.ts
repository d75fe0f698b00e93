/** What metrics cost: an extension over HTTP, in memory, with them and without. */

import { type Section, type Settings, rowsOf } from "../measurement.ts"
import { type Rounds, compare } from "../rounds.ts"
import { withServers } from "../with-servers.ts"

const without = "Tenure without metrics"

const served = {
  tenure: { name: "Tenure with metrics", server: "tenure-metrics" },
  peers: [{ name: without, server: "tenure" }],
}

const profile =
  "A request updates three histograms: of the request, of the take from its buckets, and of the change. For that, it reads the clock five times more."

/** Shorter rounds, and more of them: noise that lasts longer than a round is noise for both. */
const often = ({ pick, rounds, seconds }: Settings): Rounds =>
  pick({ rounds: 8 * rounds, seconds: seconds / 8 }, { rounds, seconds })

/** The processor time of one process. */
export const metrics: Section = {
  name: "metrics",
  measure: (settings) =>
    withServers(served, async (field) => ({
      rows: rowsOf(
        "extension over HTTP, in memory, metrics on",
        "cpu",
        await compare(field, often(settings)),
        {
          [without]: { of: "ratio", atMost: 1.05, profile },
        },
      ),
    })),
}
