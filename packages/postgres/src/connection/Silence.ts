/** Finds the connections that have died in silence, for example in a gateway that forgot them. */

import type { Connection } from "./Connection.ts"
import type { Busy, Connections } from "./Connections.ts"
import * as Patience from "./Patience.ts"

/** A connection whose statement the server did not know of, when it was asked before. */
interface Suspect {
  readonly since: number
  readonly bytesRead: number
}

/** Finds silent connections. */
export interface Silence {
  /** The processes of the server whose statements are overdue. */
  readonly suspects: () => ReadonlyArray<number>
  /** Destroys the silent connections, given which processes are at work, and all idle ones with them. */
  readonly end: (working: ReadonlySet<number>) => void
}

/** Makes the search among some connections. */
export const make = (connections: Connections): Silence => {
  let suspected = new Map<Connection, Suspect>()

  const overdue = (): ReadonlyArray<Busy> => {
    const now = performance.now()
    const millis = Patience.overdueMillis(connections.latency())
    return connections.busy().filter(({ since }) => now - since >= millis)
  }

  /** Whether a connection was suspected before, and nothing has come since. */
  const isSuspectedStill = ({ connection, since }: Busy): boolean => {
    const before = suspected.get(connection)
    return before?.since === since && before.bytesRead === connection.bytesRead()
  }

  return {
    suspects: () => overdue().flatMap(({ connection: { processId } }) => processId ?? []),

    end: (working) => {
      const unknown = overdue().filter(
        // Behind a pooler, nobody can tell.
        ({ connection: { processId } }) => processId !== undefined && !working.has(processId),
      )
      // The answer of a statement that has just ended may still be on its way.
      const silent = unknown.filter(isSuspectedStill)
      suspected = new Map(
        unknown.map(({ connection, since }) => [
          connection,
          { since, bytesRead: connection.bytesRead() },
        ]),
      )
      if (silent.length === 0) return
      for (const { connection } of silent) connection.destroy()
      // The same has probably become of those without a statement, which nobody would notice.
      connections.destroyIdle()
    },
  }
}
