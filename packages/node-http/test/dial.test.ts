/** Dials: names with several addresses. */

import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { once } from "node:events"
import * as Net from "node:net"
import { Worker } from "node:worker_threads"
import { hasProperty } from "effect/Predicate"
import fc from "fast-check"
import { describe, expect, it, onTestFinished } from "vitest"
import { alternateFamilies, mainFault, makeDial } from "../src/dial.ts"
import { gate } from "./sending.ts"

/** Listens on an address. Returns the port. */
const listen = async (address: string, onConnection = (_: Net.Socket) => {}): Promise<number> => {
  const server = Net.createServer(onConnection).listen(0, address)
  onTestFinished(() => void server.close())
  await once(server, "listening")
  const bound = server.address()
  return typeof bound === "object" ? (bound?.port ?? 0) : 0
}

/**
 * Listens on an address without accepting: after two connections, the system answers no more. Returns a
 * function to accept them; clients repeat their packets after a second.
 */
const listenDeaf = async (address: string, port: number): Promise<() => void> => {
  const flag = new Int32Array(new SharedArrayBuffer(4))
  const program = `
    const { parentPort, workerData: { address, flag, port } } = require("node:worker_threads")
    const server = require("node:net").createServer(() => {})
    server.listen({ host: address, port, backlog: 1 }, () => {
      parentPort.postMessage("listening")
      setImmediate(() => Atomics.wait(flag, 0, 0))
    })`
  const worker = new Worker(program, { eval: true, workerData: { address, flag, port } })
  const accept = (): void => {
    Atomics.store(flag, 0, 1)
    Atomics.notify(flag, 0)
  }
  const fillers: Array<Net.Socket> = []
  onTestFinished(async () => {
    accept()
    for (const socket of fillers) socket.destroy()
    await worker.terminate()
  })
  await once(worker, "message")
  for (let count = 0; count < 2; count++) {
    const socket = Net.connect(port, address)
    fillers.push(socket)
    await once(socket, "connect")
  }
  return accept
}

/** Collects the sockets that are opened, and calls a function with each. */
const watchSockets = (onSocket = (_: Net.Socket) => {}): ReadonlyArray<Net.Socket> => {
  const sockets: Array<Net.Socket> = []
  const channel = "net.client.socket"
  const collect = (message: unknown): void => {
    if (!hasProperty(message, "socket") || !(message.socket instanceof Net.Socket)) return
    sockets.push(message.socket)
    onSocket(message.socket)
  }
  subscribe(channel, collect)
  onTestFinished(() => void unsubscribe(channel, collect))
  return sockets
}

/** A dial for a name with these addresses. */
const dialTo = (...addresses: ReadonlyArray<string>) =>
  makeDial((_, callback) =>
    callback(
      null,
      addresses.map((address) => ({ address, family: Net.isIP(address) })),
    ),
  )

/** Returns the address that a dial connects to, or the error's code. */
const outcomeOf = (dial: ReturnType<typeof makeDial>, port: number): Promise<string | undefined> =>
  new Promise((resolve) =>
    dial("name.example", port, (error, socket) => {
      resolve(hasProperty(error, "code") ? String(error.code) : socket?.remoteAddress)
      socket?.destroy()
    }),
  )

describe("a name with several addresses", () => {
  it("is reached at the next one if the first does not answer, and the first is closed", async () => {
    const port = await listen("127.0.0.1")
    await listenDeaf("127.0.0.2", port)
    const sockets = watchSockets()
    expect(await outcomeOf(dialTo("127.0.0.2", "127.0.0.1"), port)).toBe("127.0.0.1")
    expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true, true])
  })

  it("is reached at the first one although it is slow, and the next ones fail", async () => {
    const port = await listen("127.0.0.1")
    const accept = await listenDeaf("127.0.0.2", port)
    const sockets = watchSockets((socket) => socket.on("error", accept))
    const outcome = await outcomeOf(dialTo("127.0.0.2", "127.0.0.3", "127.0.0.4"), port)
    expect(outcome).toBe("127.0.0.2")
    expect(sockets).toHaveLength(3)
  })

  it("is reached at the last one at once if the others fail", async () => {
    const port = await listen("127.0.0.1")
    const addresses = ["127.0.0.2", "::1", "127.0.0.3", "127.0.0.1"]
    expect(await outcomeOf(dialTo(...addresses), port)).toBe("127.0.0.1")
  })

  it("fails once if all fail", async () => {
    const port = await listen("127.0.0.1")
    expect(await outcomeOf(dialTo("127.0.0.2", "::1", "127.0.0.3"), port)).toBe("ECONNREFUSED")
  })

  it("closes all its connections if it is given up", async () => {
    const port = await listen("127.0.0.1")
    for (const address of ["127.0.0.2", "127.0.0.3"]) await listenDeaf(address, port)
    const { open, opened } = gate()
    const sockets = watchSockets(() => sockets.length === 2 && open())
    const giveUp = dialTo("127.0.0.2", "127.0.0.3", "127.0.0.1")("name.example", port, () =>
      expect.fail("it has connected"),
    )
    await opened
    giveUp()
    expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true, true])
  })
})

it("a dial that is given up before its name is resolved connects to nothing", () => {
  const sockets = watchSockets()
  let answer: () => void = () => {}
  const dial = makeDial((_, callback) => {
    answer = () => callback(null, [{ address: "127.0.0.1", family: 4 }])
  })
  dial("name.example", 1, () => expect.fail("it has connected"))()
  answer()
  expect(sockets).toEqual([])
})

describe("the order of addresses", () => {
  const address = fc.record({ address: fc.string(), family: fc.constantFrom(4, 6) })

  it("has all of them, each family in its order, in turns as long as there are both", () => {
    fc.assert(
      fc.property(fc.array(address), (given) => {
        const ordered = alternateFamilies(given)
        for (const family of [4, 6]) {
          const ofFamily = (one: { readonly family: number }) => one.family === family
          expect(ordered.filter(ofFamily)).toEqual(given.filter(ofFamily))
        }
        expect(ordered[0]).toEqual(given[0])
        const both = 2 * Math.min(...[4, 6].map((f) => given.filter((a) => a.family === f).length))
        const turns = ordered.slice(0, both).map(({ family }) => family)
        expect(turns.every((family, index) => index === 0 || family !== turns[index - 1])).toBe(
          true,
        )
      }),
    )
  })
})

it("a fault of a receiver is reported rather than a missing route", () => {
  const [noRoute, refused, timedOut] = ["ENETUNREACH", "ECONNREFUSED", "ETIMEDOUT"].map((code) =>
    Object.assign(new Error(code), { code }),
  )
  if (!noRoute || !refused || !timedOut) expect.fail()
  expect(mainFault([noRoute, refused, timedOut])).toBe(refused)
  expect(mainFault([noRoute])).toBe(noRoute)
})
