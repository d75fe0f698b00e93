/**
 * A feed as it is often built: it asks for what comes after the last position that it has seen. It misses
 * what commits late, which the check of readers has to find.
 */

import { setTimeout as sleep } from "node:timers/promises"
import { now } from "../clock.ts"
import type { Got, Reader } from "../history.ts"
import { random } from "../random.ts"
import type { Session } from "../world/database.ts"
import { type World, places } from "../world/world.ts"

interface Row {
  readonly id: string
  readonly epoch: number
  readonly xid: string
}

const nothing: Row = { id: "00000000-0000-0000-0000-000000000000", epoch: 0, xid: "0" }

const afterLast = `
  SELECT e.id, e.epoch, e.xid::text FROM tenure.events e
  JOIN tenure.projects p ON p.number = e.project_number
  WHERE p.id = $1 AND (e.epoch, e.xid, e.id) > ($2::integer, $3::xid8, $4::uuid)
  ORDER BY e.epoch, e.xid, e.id LIMIT 100`

/** A reader at work. */
export interface NaiveReader {
  /** Ends its reading, and returns what it has got. */
  readonly stop: () => Promise<Reader>
}

/** Starts to read from the oldest event on. */
export const startNaiveReader = (world: World, seed: number): NaiveReader => {
  const choose = random(seed, "naive")
  const projectId = choose.pick(places.projects)
  const got: Array<Got> = []
  const ending = new AbortController()
  let last = nothing

  const poll = async (session: Session): Promise<void> => {
    const rows = await session.query<Row>(afterLast, [projectId, last.epoch, last.xid, last.id])
    got.push(...rows.map(({ id }) => ({ eventId: id, at: now(), isSettled: true })))
    last = rows.at(-1) ?? last
  }

  /** Polls until it is told to stop, or the connection breaks. */
  const pollOn = async (): Promise<void> => {
    const session = await world.database.connect()
    try {
      while (!ending.signal.aborted) {
        await poll(session)
        await world.rest(choose, 20, 150)
      }
      await poll(session)
    } finally {
      await session.close()
    }
  }

  const read = async (): Promise<void> => {
    while (!ending.signal.aborted) await pollOn().catch(() => sleep(100))
  }

  const reading = read()
  return {
    stop: async () => {
      ending.abort()
      await reading
      return { name: "naive", projectId, got }
    },
  }
}
