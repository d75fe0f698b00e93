/** Readers of the feed: each goes on from its cursor, at any process. */

import { setTimeout as sleep } from "node:timers/promises"
import * as Predicate from "effect/Predicate"
import { now } from "../clock.ts"
import type { Connection, FeedAction, Got, Reader } from "../history.ts"
import { type Random, random } from "../random.ts"
import { type World, host, projects } from "../world/world.ts"
import { listen } from "./event-stream.ts"
import { type Follow, admitted, idOf } from "./following.ts"
import { type Send, makeSend } from "./http.ts"
import type { Recorder } from "./recorder.ts"
import { subscribe } from "./web-socket.ts"

/** What a reader works with. */
interface Reading {
  readonly world: World
  readonly recorder: Recorder
  readonly choose: Random
  readonly send: Send
  readonly key: string
  readonly projectId: string
  readonly types: ReadonlyArray<string> | undefined
  readonly signal: AbortSignal
  readonly got: Array<Got>
  readonly connections: Array<Connection>
}

/** Reads from a cursor on, for a while. Returns the cursor that it has reached. */
type Turn = (reading: Reading, cursor: string) => Promise<string>

// Small pages have many cursors, and large ones keep up with what many announce at the same time.
const pageSizes = [5, 50, 500] as const

const poll: Turn = async (reading, cursor) => {
  const { choose, got, key, projectId, recorder, send, types, world } = reading
  const { process, url } = world.door(choose)
  let reached = cursor
  await recorder.record({ action: "poll", process, projectId, key, expected: [200] }, async () => {
    const limit = 1 + choose.below(choose.pick(pageSizes))
    const only = types === undefined ? "" : `&types=${types.join(",")}`
    const query = `after=${cursor}&limit=${limit}&wait=${choose.below(2)}${only}`
    const path = `/v2/projects/${projectId}/events?${query}`
    const token = world.tokens[key] ?? ""
    const { data, next, ...answer } = await send(url, { method: "GET", path, token })
    if (answer.status === 200 && next !== undefined && Array.isArray(data)) {
      const at = now()
      got.push(...data.map((event) => ({ eventId: idOf(event), at, isSettled: true })))
      reached = next
    }
    return answer
  })
  return reached
}

// A connection ends by itself after ten minutes, and for these readers after one of these times at the
// latest: some are cut often, others survive a long fault.
const longestMillis = [500, 4000, 15_000] as const

const listening =
  (action: FeedAction, begin: Follow): Turn =>
  async (reading, cursor) => {
    const { choose, connections, got, key, projectId, recorder, signal, types, world } = reading
    const { process, url } = world.door(choose)
    const ending = AbortSignal.any([
      signal,
      AbortSignal.timeout(Math.ceil(choose.between(1, choose.pick(longestMillis)))),
    ])
    let reached = cursor
    /** What came after the last cursor, and comes again after a cut. */
    let unsettled: Array<Omit<Got, "isSettled">> = []
    const settle = (isSettled: boolean): void => {
      got.push(...unsettled.map((one) => ({ ...one, isSettled })))
      unsettled = []
    }
    const { answered, ended } = begin({
      url,
      projectId,
      types,
      token: world.tokens[key] ?? "",
      cursor,
      signal: ending,
      onMessage: ({ cursor: next, event }) => {
        if (event !== undefined) unsettled.push({ eventId: idOf(event), at: now() })
        if (next === undefined) return
        reached = next
        settle(true)
      },
    })
    const asked = { action, process, projectId, key, expected: admitted }
    await recorder.record(asked, async () => {
      const answer = await answered
      // The reader may give it up before an answer.
      return { status: answer === 0 && ending.aborted ? 200 : answer }
    })
    const { from, refusal, status, to } = await ended
    if (refusal !== undefined) await recorder.record(asked, async () => ({ status: refusal }))
    settle(false)
    if (admitted.includes(status)) connections.push({ key, process, from, to })
    return reached
  }

const follow: Turn = async ({ got, projectId, recorder, signal, world }, cursor) => {
  let reached = cursor
  try {
    const events = world.tenure.events.stream({ projectId, after: cursor, signal })
    for await (const event of events) {
      got.push({ eventId: event.id, at: now(), isSettled: true })
      reached = event.cursor
    }
  } catch (fault) {
    const isDown = Predicate.hasProperty(fault, "_tag") && fault._tag === "StoreUnavailable"
    const answer = isDown ? { status: 503 } : { status: 500, problem: String(fault) }
    await recorder.record(
      { action: "follow", process: host, projectId, expected: [200] },
      async () => answer,
    )
  }
  return reached
}

const turns: Readonly<Record<FeedAction, Turn>> = {
  poll,
  listen: listening("listen", listen),
  subscribe: listening("subscribe", subscribe),
  follow,
}

const some = ["membership.extended", "membership.expired", "memberships.imported"] as const

/** The readers: how each reads, its key, and which types of events. */
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

/** The names of the keys of readers. */
export const readerKeys: ReadonlyArray<string> = plan.map(([, key]) => key)

/** Readers at work. */
export interface Readers {
  readonly readers: () => ReadonlyArray<Reader>
  readonly connections: () => ReadonlyArray<Connection>
  /** Ends their reading. */
  readonly stop: () => Promise<void>
}

/** Starts readers, which read from the oldest event on until they are stopped. */
export const startReaders = (world: World, recorder: Recorder, seed: number): Readers => {
  const ending = new AbortController()
  const connections: Array<Connection> = []
  const { close, send } = makeSend()

  const begin = ([action, key, types]: (typeof plan)[number]) => {
    const choose = random(seed, key)
    const projectId = choose.pick(projects)
    const got: Array<Got> = []
    const { signal } = ending
    const reading = {
      world,
      recorder,
      choose,
      send,
      key,
      projectId,
      types,
      signal,
      got,
      connections,
    }
    const read = async (): Promise<void> => {
      let cursor = "start"
      while (!signal.aborted) {
        cursor = await turns[action](reading, cursor)
        await sleep(choose.between(20, 150))
      }
    }
    return { reader: { name: key, projectId, types, got }, reading: read() }
  }

  const all = plan.map(begin)
  return {
    readers: () => all.map(({ reader }) => reader),
    connections: () => connections,
    stop: async () => {
      ending.abort()
      await Promise.all(all.map(({ reading }) => reading))
      close()
    },
  }
}
