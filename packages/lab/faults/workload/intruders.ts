/** Clients that send what is no frame, which must disturb nobody else. */

import { connect } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { now } from "../clock.ts"
import type { Intrusion } from "../history.ts"
import type { Random } from "../random.ts"
import { places } from "../world/world.ts"
import { frame, handshake, header, opcodes, text } from "./frames.ts"
import { type Actor, type Scene, actor, repeat } from "./recorder.ts"

export const intruderKey = "intruder"

/** What an intruder sends. */
interface Manner {
  readonly sent: string
  readonly bytes: (choose: Random) => Buffer
  /** Whether the client half-closes the connection afterwards. Default: `false`. */
  readonly isHalfClosed?: boolean
  /** Whether the server waits for more, until it has waited for a subscription for too long. Default: `false`. */
  readonly isTolerated?: boolean
}

const noise = (choose: Random, length: number): Buffer =>
  Buffer.from(Array.from({ length }, () => choose.below(256)))

const many = (count: number, one: Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, () => one))

const subscription = text(JSON.stringify({ type: "subscribe", project: places.projects[0] }))

// A frame's first byte, with all reserved bits.
const reserved = Buffer.from([0xff])

// The most that a frame may hold, and more.
const tooLong = 2 ** 20

const intruders: ReadonlyArray<Manner> = [
  { sent: "noise", bytes: (choose) => Buffer.concat([reserved, noise(choose, 1000)]) },
  { sent: "a binary frame", bytes: (choose) => frame(opcodes.binary, noise(choose, 1000)) },
  { sent: "a text that is no JSON", bytes: () => text("{") },
  { sent: "a text that is not UTF-8", bytes: () => frame(opcodes.text, Buffer.from([0xc0, 0x80])) },
  { sent: "a frame of a megabyte", bytes: () => frame(opcodes.text, Buffer.alloc(tooLong)) },
  { sent: "the header of a frame of a terabyte", bytes: () => header(opcodes.text, 2 ** 40) },
  {
    sent: "fragments without an end",
    bytes: () =>
      Buffer.concat([
        frame(opcodes.text, Buffer.from(" "), { isLast: false }),
        many(20_000, frame(opcodes.continuation, Buffer.from(" "), { isLast: false })),
      ]),
  },
  {
    sent: "a frame without a mask",
    bytes: () => frame(opcodes.text, Buffer.from("{}"), { isMasked: false }),
  },
  { sent: "a flood of frames", bytes: () => many(10_000, text(JSON.stringify({ type: "pong" }))) },
  {
    sent: "a flood of pings",
    bytes: () => many(10_000, frame(opcodes.ping, Buffer.alloc(125))),
    isTolerated: true,
  },
  {
    sent: "half a frame",
    bytes: () => header(opcodes.text, 100),
    isTolerated: true,
  },
  {
    sent: "a subscription and the end of its half of the connection",
    bytes: () => subscription,
    isHalfClosed: true,
  },
]

// Longer than a server takes.
const patienceMillis = 20_000

/** Connects, sends what is no frame, and waits for the end. */
const intrude = async (
  { choose, isOver, recorder, world }: Actor,
  { bytes, isHalfClosed = false, isTolerated = false, sent }: Manner,
): Promise<Intrusion | undefined> => {
  const process = choose.pick(places.servers)
  const projectId = places.projects[0]
  const { hostname, port } = new URL(world.servers.get(process)?.url ?? "")
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: isHalfClosed })
  socket.on("error", () => {})
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()))
  const status = new Promise<number>((resolve) => {
    socket.once("data", (answer) => resolve(Number(String(answer).split(" ")[1])))
    // A socket that may be half closed stays open when the server ends the connection.
    socket.once("end", () => resolve(0))
    void closed.then(() => resolve(0))
  })
  const asked = { action: "subscribe", process, projectId, key: intruderKey } as const
  socket.write(handshake(hostname, world.tokens[intruderKey] ?? ""))
  await recorder.record({ ...asked, expected: [101] }, async () => ({ status: await status }))
  const isAdmitted = (await status) === 101
  socket.resume()
  const at = now()
  socket.write(bytes(choose))
  if (isHalfClosed) socket.end()
  const until = at + (isTolerated ? choose.between(500, 4000) : patienceMillis)
  while (!isOver() && now() < until && !socket.closed) await Promise.race([closed, sleep(100)])
  const ended = now()
  socket.destroy()
  return isAdmitted && !isTolerated ? { sent, at, ended } : undefined
}

/** Has one client with each manner at work. */
export const runIntruders = async (scene: Scene): Promise<ReadonlyArray<Intrusion>> => {
  const intrusions: Array<Intrusion> = []
  const run = (manner: Manner) => {
    const on = actor(scene, manner.sent)
    const step = async () => {
      const intrusion = await intrude(on, manner)
      if (intrusion !== undefined) intrusions.push(intrusion)
    }
    return repeat(on, step, 1000, 6000)
  }
  await Promise.all(intruders.map(run))
  return intrusions
}
