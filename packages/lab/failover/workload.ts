/** What goes on while nodes fail: changes at two servers, followers of the feed, and a plain driver beside them. */

import { setTimeout as sleep } from "node:timers/promises"
import pg from "pg"
import { now } from "../faults/clock.ts"
import { listen } from "../faults/workload/event-stream.ts"
import { type Follow, idOf } from "../faults/workload/following.ts"
import { fieldOf, makeSend } from "../faults/workload/http.ts"
import { subscribe } from "../faults/workload/web-socket.ts"
import type { Change, Follower } from "./outcome.ts"

/** Where clients send to. */
export interface Target {
  /** The URL of each server. */
  readonly urls: ReadonlyArray<string>
  readonly projectId: string
  readonly token: string
  readonly signal: AbortSignal
}

const clientsPerServer = 4

/** The members that clients extend, each its own ones. */
export const memberIds: ReadonlyArray<string> = Array.from({ length: 48 }, (_, index) =>
  String(index + 1),
)

const pauseMillis = 30

// Over one connection after the other, so that a client that fails fast does not take the processor for itself.
const pauseAfterFailureMillis = 100

/** How servers have answered. */
interface Answers {
  readonly acknowledged: ReadonlyArray<Change>
  /** The answers other than 200, or why there is none, with how often. */
  readonly refusals: ReadonlyMap<string, number>
}

/** Extends members of a project. */
export interface Extender extends Answers {
  /** Extends a member at a server to a date that no other extension sets. Returns whether that was acknowledged. */
  readonly extend: (server: number, userId: string) => Promise<boolean>
  readonly close: () => void
}

/** Makes an extender, which records the answers. */
export const makeExtender = ({ projectId, token, urls }: Omit<Target, "signal">): Extender => {
  const acknowledged: Array<Change> = []
  const refusals = new Map<string, number>()
  const { close, send } = makeSend()
  let time = Date.parse("2099-01-01T00:00:00.000Z")

  const extend = async (server: number, userId: string): Promise<boolean> => {
    const endDate = time++
    const { problem, requestId, status } = await send(urls[server] ?? "", {
      method: "PATCH",
      path: `/v2/projects/${projectId}/memberships/${userId}/extend`,
      token,
      body: { extend: new Date(endDate).toISOString() },
    })
    if (status === 200 && requestId !== undefined) {
      acknowledged.push({ server, userId, endDate, at: now() })
      return true
    }
    const refusal = problem ?? String(status)
    refusals.set(refusal, (refusals.get(refusal) ?? 0) + 1)
    return false
  }

  return { acknowledged, refusals, extend, close }
}

/** Clients at work. */
export interface Clients extends Answers {
  /** Resolves when the signal has ended all of them. */
  readonly done: Promise<void>
}

/** Has clients extend members at each server. */
export const startClients = (target: Target): Clients => {
  const { signal, urls } = target
  const { acknowledged, close, extend, refusals } = makeExtender(target)
  const work = async (client: number): Promise<void> => {
    const count = clientsPerServer * urls.length
    const own = memberIds.filter((_, index) => index % count === client)
    for (let turn = 0; !signal.aborted; turn++) {
      const isDone = await extend(client % urls.length, own[turn % own.length] ?? "")
      await sleep(isDone ? pauseMillis : pauseAfterFailureMillis)
    }
  }

  const clients = Array.from({ length: clientsPerServer * urls.length }, (_, index) => work(index))
  return { acknowledged, refusals, done: Promise.all(clients).then(close) }
}

const attemptMillis = 100
const connectTimeoutMillis = 2000

// Writes that wait for a lost standby keep their connections, of which the server has 100.
const maxAttempts = 20

/** Inserts a row over a new connection ten times a second. Returns when one was inserted. */
export const startPlainDriver = (
  url: string,
  signal: AbortSignal,
): { readonly written: ReadonlyArray<number>; readonly done: Promise<void> } => {
  const written: Array<number> = []
  const write = async (): Promise<void> => {
    const client = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: connectTimeoutMillis,
    })
    client.on("error", () => {})
    try {
      await client.connect()
      await client.query("INSERT INTO plain DEFAULT VALUES")
      written.push(now())
    } catch {
      // Its absence is what is measured.
    } finally {
      client.end().catch(() => {})
    }
  }
  const run = async (): Promise<void> => {
    const attempts = new Set<Promise<void>>()
    while (!signal.aborted) {
      if (attempts.size < maxAttempts) {
        // Beside those that wait for something that died.
        const attempt = write()
        attempts.add(attempt)
        void attempt.then(() => attempts.delete(attempt))
      }
      await sleep(attemptMillis)
    }
    await Promise.all(attempts)
  }
  return { written, done: run() }
}

const retryMillis = 200

type Read = (follower: Follower, target: Target, url: string, cursor: string) => Promise<string>

const take = (follower: Follower, eventId: string): void => {
  if (follower.seen.has(eventId)) follower.repeated++
  follower.seen.add(eventId)
  follower.at.push(now())
}

/** Begins anew at the oldest event, as a reader does whose cursor has expired. */
const reset = (follower: Follower): string => {
  follower.resets++
  follower.seen.clear()
  return "start"
}

const { send: sendPoll } = makeSend()

const poll: Read = async (follower, { projectId, token }, url, cursor) => {
  const path = `/v2/projects/${projectId}/events?after=${cursor}&limit=100&wait=1`
  const { data, next, status } = await sendPoll(url, { method: "GET", path, token })
  if (status === 410) return reset(follower)
  if (status !== 200 || next === undefined || !Array.isArray(data)) return cursor
  for (const event of data) take(follower, idOf(event))
  return next
}

/** Reads over a connection until it ends. Events count once a cursor follows them: others come again. */
const readBy =
  (follow: Follow): Read =>
  async (follower, { projectId, signal, token }, url, cursor) => {
    let reached = cursor
    let unsettled: Array<string> = []
    const expired = new AbortController()
    const { ended } = follow({
      url,
      projectId,
      token,
      cursor,
      signal: AbortSignal.any([signal, expired.signal]),
      onMessage: ({ cursor: next, event }) => {
        if (fieldOf(event, "reason") !== undefined) expired.abort()
        else if (event !== undefined) unsettled.push(idOf(event))
        if (next === undefined) return
        reached = next
        for (const eventId of unsettled) take(follower, eventId)
        unsettled = []
      },
    })
    const { refusal, status } = await ended
    return expired.signal.aborted || status === 410 || refusal === 410 ? reset(follower) : reached
  }

const readers: ReadonlyArray<readonly [name: string, read: Read]> = [
  ["poll", poll],
  ["stream", readBy(listen)],
  ["WebSocket", readBy(subscribe)],
]

/** Has one follower of each kind read at each server, from its cursor on. */
export const startFollowers = (
  target: Target,
): { readonly followers: ReadonlyArray<Follower>; readonly done: Promise<void> } => {
  const started = target.urls.flatMap((url, server) =>
    readers.map(([kind, read]) => {
      const name = `${kind} at server ${server + 1}`
      const follower: Follower = { name, seen: new Set(), at: [], repeated: 0, resets: 0 }
      const run = async (): Promise<void> => {
        let cursor = "start"
        while (!target.signal.aborted) {
          const reached = await read(follower, target, url, cursor)
          if (reached === cursor) await sleep(retryMillis)
          cursor = reached
        }
      }
      return { follower, done: run() }
    }),
  )
  return {
    followers: started.map(({ follower }) => follower),
    done: Promise.all(started.map(({ done }) => done)).then(() => {}),
  }
}
