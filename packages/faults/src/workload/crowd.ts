/** Clients that strain connections: too many at once, revoked ones, and some that hardly read. */

import { connect } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { now } from "../clock.ts"
import type { Connection, Revocation } from "../history.ts"
import { random, type Random } from "../random.ts"
import { places, type World } from "../world/World.ts"
import { type Ended, listen } from "./eventStream.ts"

/** Opens a stream at any server. */
const open = (world: World, choose: Random, token: string, signal: AbortSignal) => {
  const process = choose.pick(places.servers)
  const path = `/v2/projects/${choose.pick(places.projects)}/events`
  const url = world.servers.get(process)?.url ?? ""
  const subscription = { url, path, token, cursor: "start", signal, onMessage: () => {} }
  return { process, ...listen(subscription) }
}

/** Opens more connections than a key may have, again and again, until it is told to stop. */
export const runCrowd = async (
  world: World,
  seed: number,
  key: string,
  isOver: () => boolean,
): Promise<ReadonlyArray<Connection>> => {
  const choose = random(seed, key)
  const connections: Array<Connection> = []
  while (!isOver()) {
    const ending = new AbortController()
    const token = world.tokens[key] ?? ""
    const crowd = Array.from({ length: 24 }, () => open(world, choose, token, ending.signal))
    await Promise.race([Promise.all(crowd.map(({ answered }) => answered)), sleep(2000)])
    ending.abort()
    for (const { ended, process } of crowd) {
      const { from, status, to } = await ended
      if (status === 200) connections.push({ key, process, from, to })
    }
    await sleep(choose.between(500, 2000))
  }
  return connections
}

/** Revokes a key while it follows the feed. Returns when, and when its connection has ended. */
export const runRevoked = async (world: World, seed: number): Promise<Revocation> => {
  const choose = random(seed, "revoked")
  const { id, token } = await world.tenure.apiKeys.issue({ projects: places.projects })
  const isRevoked = { at: 0 }
  const never = new AbortController().signal
  /** Follows until the key is revoked. */
  const stay = async (): Promise<Ended> => {
    for (;;) {
      const ended = await open(world, choose, token, never).ended
      if (isRevoked.at > 0) return ended
      await sleep(50)
    }
  }
  const staying = stay()
  await sleep(choose.between(500, 2000))
  for (;;) {
    const asked = now()
    try {
      await world.tenure.apiKeys.revoke(id)
      isRevoked.at = asked
      break
    } catch {
      // The database is away.
      await sleep(100)
    }
  }
  return { revoked: now(), ended: (await staying).to }
}

/** Follows the feed, but reads nothing, or a byte each second, until it is told to stop. */
export const runLazyReader = async (
  world: World,
  seed: number,
  key: string,
  reads: "nothing" | "bytes",
  isOver: () => boolean,
): Promise<void> => {
  const choose = random(seed, key)
  while (!isOver()) {
    const { hostname, port } = new URL(world.servers.get(choose.pick(places.servers))?.url ?? "")
    const socket = connect({ host: hostname, port: Number(port) })
    socket.on("error", () => {})
    socket.pause()
    const path = `/v2/projects/${choose.pick(places.projects)}/events?after=start`
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nAccept: text/event-stream\r\n` +
        `Authorization: Bearer ${world.tokens[key] ?? ""}\r\n\r\n`,
    )
    const until = now() + choose.between(1000, 6000)
    while (!isOver() && now() < until && !socket.destroyed) {
      if (reads === "bytes") socket.read(1)
      await sleep(200)
    }
    socket.destroy()
  }
}
