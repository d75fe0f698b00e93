/** Readers: each goes on from its cursor, at any process. */

import { setTimeout as sleep } from "node:timers/promises"
import { now } from "../clock.ts"
import type { Connection, FeedAction, Got, Reader } from "../history.ts"
import type { Session } from "../world/database.ts"
import { host, places, projects } from "../world/world.ts"
import {
  type Ended,
  type Follow,
  admitted,
  listen,
  polling,
  readOn,
  subscribe,
} from "./following.ts"
import { refused } from "./hosts.ts"
import { type Send, makeSend } from "./http.ts"
import { type Actor, type Scene, actor } from "./recorder.ts"

// A connection ends by itself after ten minutes, and for these readers after one of these times at the
// latest: some are cut often, others survive a long fault.
const longestMillis = [500, 4000, 15_000] as const

// Small pages have many cursors, and large ones keep up with what many announce at the same time.
const pageSizes = [5, 50, 500] as const

/** Follows in process, until the stream fails or the reader leaves. */
const following =
  ({ world }: Actor): Follow =>
  ({ cursor: after, onMessage, projectId, signal }) => {
    const from = now()
    const read = async (): Promise<Ended> => {
      for await (const event of world.tenure.events.stream({ projectId, after, signal })) {
        onMessage({ event, cursor: event.cursor })
      }
      return { status: 200, from, to: now() }
    }
    const failed = (fault: unknown) => ({ ...refused(fault), from, to: now() })
    const ended = read().catch(failed)
    return { answered: ended, ended }
  }

const ways: Readonly<Record<FeedAction, (on: Actor, send: Send) => Follow>> = {
  poll: ({ choose }, send) =>
    polling(send, 1 + choose.below(choose.pick(pageSizes)), choose.below(2)),
  listen: () => listen,
  subscribe: () => subscribe,
  follow: following,
}

/** Reads from a cursor on, for a while. Returns the cursor that it has reached. */
const read = async (
  on: Actor,
  send: Send,
  { action, key, projectId, types }: Reader & { readonly action: FeedAction; readonly key: string },
  cursor: string,
  leaving: AbortSignal,
  take: (got: Got) => void,
  onConnection: (connection: Connection) => void,
): Promise<string> => {
  const { choose, recorder, world } = on
  const isConnection = action === "listen" || action === "subscribe"
  const { process, url } = action === "follow" ? { process: host, url: "" } : world.door(choose)
  const signal = isConnection
    ? AbortSignal.any([
        leaving,
        AbortSignal.timeout(Math.ceil(choose.between(1, choose.pick(longestMillis)))),
      ])
    : leaving
  const token = world.tokens[key] ?? ""
  const { answered, ended } = readOn(
    ways[action](on, send),
    { url, projectId, types, token, cursor, signal },
    take,
  )
  const asked = { action, process, projectId, expected: admitted }
  const keyed = action === "follow" ? asked : { ...asked, key }
  if (action === "follow") {
    const { problem, status } = await answered
    // What follows in process may do so for long.
    if (status !== 200) await recorder.record(keyed, async () => ({ status, problem }))
  } else {
    await recorder.record(keyed, async () => {
      const answer = await answered
      // The reader may give it up before an answer.
      const isGivenUp = isConnection && answer.status === 0 && signal.aborted
      return isGivenUp ? { status: 200 } : answer
    })
  }
  const { from, reached, refusal, status, to } = await ended
  if (refusal !== undefined) await recorder.record(keyed, async () => ({ status: refusal }))
  if (isConnection && admitted.includes(status)) onConnection({ key, process, from, to })
  return reached
}

const some = ["membership.extended", "membership.expired", "memberships.imported"] as const

/** How each reader reads, its key, and which event types. */
const plan: ReadonlyArray<
  readonly [action: FeedAction, key: string, types?: ReadonlyArray<string>]
> = [
  ["poll", "poller0"],
  ["poll", "poller1", some],
  ["listen", "listener0"],
  ["listen", "listener1", some],
  ["subscribe", "subscriber0"],
  ["subscribe", "subscriber1", some],
  ["follow", "follower0"],
]

export const readerKeys: ReadonlyArray<string> = plan.map(([, key]) => key)

/** Starts readers, which read from the oldest event on until they are stopped. */
export const startReaders = (scene: Scene) => {
  const ending = new AbortController()
  const { signal } = ending
  const connections: Array<Connection> = []
  const { close, send } = makeSend()
  const all = plan.map(([action, key, types]) => {
    const on = actor(scene, key)
    const got: Array<Got> = []
    const reader = { name: key, projectId: on.choose.pick(projects), types, got, action, key }
    const readAll = async (): Promise<void> => {
      let cursor = "start"
      while (!signal.aborted) {
        cursor = await read(
          on,
          send,
          reader,
          cursor,
          signal,
          (one) => got.push(one),
          (one) => connections.push(one),
        )
        await sleep(on.choose.between(20, 150))
      }
    }
    return { reader, reading: readAll() }
  })
  return {
    readers: (): ReadonlyArray<Reader> => all.map(({ reader }) => reader),
    connections,
    stop: async (): Promise<void> => {
      ending.abort()
      await Promise.all(all.map(({ reading }) => reading))
      close()
    },
  }
}

interface Row {
  readonly id: string
  readonly epoch: number
  readonly xid: string
}

const beforeAll: Row = { id: "00000000-0000-0000-0000-000000000000", epoch: 0, xid: "0" }

const afterLast = `
  SELECT e.id, e.epoch, e.xid::text FROM tenure.events e
  JOIN tenure.projects p ON p.number = e.project_number
  WHERE p.id = $1 AND (e.epoch, e.xid, e.id) > ($2::integer, $3::xid8, $4::uuid)
  ORDER BY e.epoch, e.xid, e.id LIMIT 100`

/**
 * Starts to read a feed as it is often built: it asks for what comes after the last position that it has seen. It
 * misses what commits late, which the readers' check has to find. Returns what ends it.
 */
export const startNaiveReader = (scene: Scene): (() => Promise<Reader>) => {
  const { choose, world } = actor(scene, "naive")
  const projectId = choose.pick(places.projects)
  const got: Array<Got> = []
  const ending = new AbortController()
  let last = beforeAll

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

  const readAll = async (): Promise<void> => {
    while (!ending.signal.aborted) await pollOn().catch(() => sleep(100))
  }

  const reading = readAll()
  return async () => {
    ending.abort()
    await reading
    return { name: "naive", projectId, got }
  }
}
