/** Clients that extend memberships at servers, and followers, which begin anew if their cursor expires. */

import { setTimeout as sleep } from "node:timers/promises"
import type { Got, Operation, Reader } from "../history.ts"
import type { Server } from "../world/server.ts"
import { listen, polling, readOn, subscribe } from "./following.ts"
import { makeSend } from "./http.ts"
import type { Recorder } from "./recorder.ts"

/** A client, which extends a membership to a date that no other extension sets. */
export interface Client {
  readonly extend: (server: Server, projectId: string, userId: string) => Promise<Operation>
  readonly close: () => void
}

/** Makes a client, whose extensions are recorded. */
export const makeClient = (recorder: Recorder, token: string): Client => {
  const { close, send } = makeSend()
  return {
    close,
    extend: ({ name, url }, projectId, userId) => {
      const endDate = recorder.nextDate()
      const asked = { action: "extend", process: name, projectId, userId, endDate } as const
      return recorder.record({ ...asked, expected: [200] }, async () => {
        const { problem, requestId, status } = await send(url, {
          method: "PATCH",
          path: `/v2/projects/${projectId}/memberships/${userId}/extend`,
          token,
          body: { extend: new Date(endDate).toISOString() },
        })
        return { problem, requestId, status }
      })
    },
  }
}

export interface Follower extends Reader {
  /** What it got since the last reset, with the cursors that follow. */
  readonly got: Array<Got>
  /** When each event came. */
  readonly at: Array<number>
  /** How often its cursor had expired. */
  resets: number
}

const retryMillis = 200

/** Has one follower by each transport read at each server, from its cursor on. */
export const startFollowers = (
  servers: ReadonlyArray<Server>,
  projectId: string,
  token: string,
  signal: AbortSignal,
) => {
  const { close, send } = makeSend()
  const ways = { poll: polling(send, 100, 1), stream: listen, WebSocket: subscribe }
  const started = servers.flatMap(({ name, url }) =>
    Object.entries(ways).map(([way, follow]) => {
      const follower: Follower = {
        name: `${way} at ${name}`,
        projectId,
        got: [],
        at: [],
        resets: 0,
      }
      const take = (one: Got): void => {
        if (!one.isSettled) return
        follower.got.push(one)
        follower.at.push(one.at)
      }
      const run = async (): Promise<void> => {
        let cursor = "start"
        while (!signal.aborted) {
          const subscription = { url, projectId, token, cursor, signal }
          const { isExpired, reached } = await readOn(follow, subscription, take).ended
          if (!isExpired && reached === cursor) await sleep(retryMillis)
          cursor = isExpired ? "start" : reached
          if (!isExpired) continue
          follower.resets++
          follower.got.length = 0
        }
      }
      return { follower, done: run() }
    }),
  )
  return {
    followers: started.map(({ follower }) => follower),
    done: Promise.all(started.map(({ done }) => done)).then(close),
  }
}
