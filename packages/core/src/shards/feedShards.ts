/** The port `FeedStore` over several shards, each of which has a history of its own. */

import type { FeedStore, History } from "../events/FeedStore.ts"
import type { Routing, Shards } from "./Routing.ts"
import type { Shard } from "./Shard.ts"

const historyOf = (shard: Shard): History => ({
  read: (...asked) => shard.use(({ feed }) => feed.read(...asked)),
})

/** Makes the store. */
export const make = ({ all }: Shards, { on, shardOf }: Routing): FeedStore["Service"] => {
  const [home, ...others] = all
  const first = historyOf(home)
  const histories = new Map(others.map((shard) => [shard, historyOf(shard)] as const))
  return {
    read: (projects, ...rest) => on(projects[0], ({ feed }) => feed.read(projects, ...rest)),
    histories: {
      all: [first, ...histories.values()],
      of: (projectId) => histories.get(shardOf(projectId)) ?? first,
    },
  }
}
