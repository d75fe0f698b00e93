/** A host that publishes events in transactions of its own, and holds these open while others commit. */

import { setTimeout as sleep } from "node:timers/promises"
import pg from "pg"
import { random } from "../random.ts"
import { type World, host, places } from "../world/world.ts"
import type { Answered, Recorder } from "./recorder.ts"

// Longer than others take to commit, and less than what counts as slow.
const longestMillis = 1200

// An answer that the link has swallowed does not come any more.
const patience = { connectionTimeoutMillis: 10_000, query_timeout: 10_000 }

/** Publishes in a transaction, and commits it after a while. Without an answer, it may have committed. */
const publish = async (
  { database, links, tenure }: World,
  projectId: string,
  payment: string,
  heldMillis: number,
): Promise<Answered> => {
  const connectionString = database.urlThrough(links.get(host)?.port ?? 0)
  const client = new pg.Client({ connectionString, ...patience })
  client.on("error", () => {})
  try {
    await client.connect()
    await client.query("BEGIN")
    const data = { payment, amount: 5 }
    await tenure.within(client).events.publish({ projectId, type: "payment.completed", data })
    await sleep(heldMillis)
    await client.query("COMMIT")
    return { status: 200 }
  } catch {
    return { status: 503 }
  } finally {
    // It may have to wait for a link that is silent.
    void client.end().catch(() => {})
  }
}

/** Publishes one event after the other, until it is told to stop. */
export const runLateHost = async (
  world: World,
  recorder: Recorder,
  seed: number,
  name: string,
  isOver: () => boolean,
): Promise<void> => {
  const choose = random(seed, name)
  while (!isOver()) {
    const projectId = choose.pick(places.projects)
    const subject = String(recorder.nextNumber())
    const asked = { action: "publish", process: host, projectId, subject } as const
    await recorder.record({ ...asked, expected: [200] }, () =>
      publish(world, projectId, subject, choose.between(0, longestMillis)),
    )
    await world.rest(choose, 20, 150)
  }
}
