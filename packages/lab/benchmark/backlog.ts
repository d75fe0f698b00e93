/** Backlogs, published while nobody delivers, and how they are delivered. */

import { makeEvent, newEventId } from "@tenure/core/internal"
import { EventType, Outbox, ProjectId } from "@tenure/core/store"
import { postgres } from "@tenure/postgres"
import * as Effect from "effect/Effect"
import { type Database, meterDatabase } from "./database.ts"
import type { Child } from "./processes.ts"
import type { Receiver } from "./receiving.ts"
import type { DelivererReport, DelivererTask } from "./servers/deliverer.ts"

/** An event's data: when it was published, and about as much as usual. */
export const data = () => ({ at: Date.now(), padding: "x".repeat(200) })

/** Makes an event. */
export const eventOf = (projectId: string) => {
  const at = Date.now()
  const type = EventType("benchmark")
  const id = newEventId(crypto, at)
  return makeEvent({ id, projectId: ProjectId(projectId), type, at, data: data() })
}

/** Publishes this many events, for each project in turn. */
export const fillBacklog = (
  { schema, url }: { readonly url: string; readonly schema: string },
  projectIds: ReadonlyArray<string>,
  count: number,
): Promise<void> => {
  const turns = Array.from({ length: count }, (_, index) => projectIds[index % projectIds.length])
  const fill = Outbox.use(({ publish }) =>
    Effect.forEach(turns, (projectId = "") => publish(eventOf(projectId)), {
      concurrency: 512,
      discard: true,
    }),
  )
  return Effect.runPromise(Effect.provide(fill, postgres({ url, schema })))
}

/** How a backlog was delivered. Processor time is in microseconds a delivery. */
export interface Delivered {
  /** Deliveries a second. */
  readonly rate: number
  /** In all processes that send. */
  readonly sending: number
  readonly receiving: number
  /** In PostgreSQL. It is 0 where the system does not tell. */
  readonly database: number
}

/** Has senders start or stop. Returns their processor time so far, in microseconds. */
const tell = async (senders: ReadonlyArray<Child>, task: "start" | "stop"): Promise<number> => {
  const reports = await Promise.all(
    senders.map(({ ask }) => ask<DelivererReport>({ do: task } satisfies DelivererTask)),
  )
  return reports.reduce((total, { system, user }) => total + system + user, 0)
}

/** Has processes deliver a backlog. */
export const deliverBacklog = async (
  { sql }: Database,
  receiver: Receiver,
  senders: ReadonlyArray<Child>,
  count: number,
): Promise<Delivered> => {
  const before = await receiver.report()
  const inDatabase = await meterDatabase(sql)
  const began = await tell(senders, "start")
  const received = await receiver.arrived(before.distinct + count)
  // The processes that serve connections end with these.
  const used = await inDatabase()
  const ended = await tell(senders, "stop")
  return {
    rate: received.rate,
    sending: (ended - began) / count,
    receiving: (received.cpu - before.cpu) / count,
    database: used / count,
  }
}
