/** Clients that strain connections: too many at once, revoked ones, and some that hardly read. */

import { connect } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { now } from "../clock.ts"
import type { Connection, Revocation } from "../history.ts"
import { places } from "../world/world.ts"
import { type Ended, type Follow, admitted, listen, subscribe } from "./following.ts"
import { handshake, text } from "./frames.ts"
import { type Actor, type Scene, actor, repeat } from "./recorder.ts"

/** Opens a connection at any server. */
const open = (follow: Follow, { choose, world }: Actor, token: string, signal: AbortSignal) => {
  const process = choose.pick(places.servers)
  const projectId = choose.pick(places.projects)
  const url = world.servers.get(process)?.url ?? ""
  const subscription = { url, projectId, token, cursor: "start", signal, onMessage: () => {} }
  return { process, ...follow(subscription) }
}

const transports = [listen, subscribe] as const

/** Opens more connections than a key may have, again and again. */
export const runCrowd = async (scene: Scene, key: string): Promise<ReadonlyArray<Connection>> => {
  const on = actor(scene, key)
  const connections: Array<Connection> = []
  const token = on.world.tokens[key] ?? ""
  const gather = async () => {
    const ending = new AbortController()
    const follow = on.choose.pick(transports)
    const crowd = Array.from({ length: 24 }, () => open(follow, on, token, ending.signal))
    await Promise.race([Promise.all(crowd.map(({ answered }) => answered)), sleep(2000)])
    ending.abort()
    for (const { ended, process } of crowd) {
      const { from, status, to } = await ended
      if (admitted.includes(status)) connections.push({ key, process, from, to })
    }
  }
  await repeat(on, gather, 1000, 3000)
  return connections
}

/** Makes a call again and again until the database is there. */
const insist = async <A>(call: () => Promise<A>): Promise<A> => {
  for (;;) {
    try {
      return await call()
    } catch {
      await sleep(100)
    }
  }
}

/** Revokes a key while it follows the feed. Returns when, and when its connection has ended. */
const revoke = async (on: Actor, follow: Follow): Promise<Revocation> => {
  const { apiKeys } = on.world.tenure
  const { id, token } = await insist(() => apiKeys.issue({ projects: places.projects }))
  let revoked = 0
  const never = new AbortController().signal
  const stay = async (): Promise<Ended> => {
    for (;;) {
      const ended = await open(follow, on, token, never).ended
      if (revoked > 0) return ended
      await sleep(50)
    }
  }
  const staying = stay()
  await sleep(on.choose.between(500, 2000))
  await insist(async () => {
    const asked = now()
    await apiKeys.revoke(id)
    revoked = asked
  })
  return { revoked: now(), ended: (await staying).to }
}

/** Revokes keys while they follow the feed, one after the other. */
export const runRevoked = async (scene: Scene): Promise<ReadonlyArray<Revocation>> => {
  const revocations: Array<Revocation> = []
  const run = (follow: Follow) => {
    const on = actor(scene, `revoked/${follow.name}`)
    return repeat(on, async () => revocations.push(await revoke(on, follow)), 3000, 9000)
  }
  await Promise.all(transports.map(run))
  return revocations
}

/** What asks for a project's feed by each transport. */
const requests = {
  stream: (hostname: string, projectId: string, token: string): ReadonlyArray<string | Buffer> => [
    `GET /v2/projects/${projectId}/events?after=start HTTP/1.1\r\nHost: ${hostname}\r\n` +
      `Accept: text/event-stream\r\nAuthorization: Bearer ${token}\r\n\r\n`,
  ],
  webSocket: (hostname: string, projectId: string, token: string) => [
    handshake(hostname, token),
    text(JSON.stringify({ type: "subscribe", project: projectId, after: "start" })),
  ],
}

/** A client that hardly reads. */
interface Lazy {
  readonly key: string
  readonly by: keyof typeof requests
  readonly reads: "nothing" | "bytes"
}

export const lazyReaders: ReadonlyArray<Lazy> = [
  { key: "lazy0", by: "stream", reads: "nothing" },
  { key: "lazy1", by: "stream", reads: "bytes" },
  { key: "lazy2", by: "webSocket", reads: "nothing" },
  { key: "lazy3", by: "webSocket", reads: "bytes" },
]

/** Follows the feed, but reads nothing, or a byte each second. */
export const runLazyReader = async (scene: Scene, { by, key, reads }: Lazy): Promise<void> => {
  const { choose, isOver, world } = actor(scene, key)
  while (!isOver()) {
    const { hostname, port } = new URL(world.servers.get(choose.pick(places.servers))?.url ?? "")
    const socket = connect({ host: hostname, port: Number(port) })
    socket.on("error", () => {})
    socket.pause()
    const token = world.tokens[key] ?? ""
    for (const part of requests[by](hostname, choose.pick(places.projects), token)) {
      socket.write(part)
    }
    const until = now() + choose.between(1000, 6000)
    while (!isOver() && now() < until && !socket.destroyed) {
      if (reads === "bytes") socket.read(1)
      await sleep(200)
    }
    socket.destroy()
  }
}
