/** Servers that take turns in being asked. */

import { overHttp, start, startServer } from "./processes.ts"
import type { Contestant, Field } from "./rounds.ts"
import { requests } from "./servers/workload.ts"

/** A contestant in a process of its own. */
export interface Served {
  readonly name: string
  /** A module of the folder `servers`. */
  readonly server: string
}

/** Lends servers as contestants, and one generator of their load. */
export const withServers = async <A>(
  served: Field<Served>,
  use: (contestants: Field<Contestant>) => Promise<A>,
): Promise<A> => {
  const generator = await start("./load-generator.ts")
  const running = [generator.stop]
  const contestant = async ({ name, server }: Served) => {
    const process = await startServer(server)
    running.push(process.stop)
    return overHttp(name, process, generator, requests())
  }
  try {
    const peers = await Promise.all(served.peers.map(contestant))
    return await use({ tenure: await contestant(served.tenure), peers })
  } finally {
    for (const stop of running) stop()
  }
}
