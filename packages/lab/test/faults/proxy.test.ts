import { once } from "node:events"
import { type Socket, connect, createServer } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { afterEach, describe, expect, it } from "vitest"
import { listen } from "../../faults/world/ports.ts"
import { type Link, openLink } from "../../faults/world/proxy.ts"

const opened: Array<() => unknown> = []
afterEach(async () => {
  for (const close of opened.splice(0)) await close()
})

/** Starts a server that sends everything back, and opens a link to it. */
const startLink = async (): Promise<Link> => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => {}).pipe(socket)
  })
  const link = await openLink(await listen(server))
  opened.push(link.close, () => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return link
}

const open = async ({ port }: Link): Promise<Socket> => {
  const socket = connect(port, "127.0.0.1")
  opened.push(() => socket.destroy())
  await once(socket, "connect")
  return socket
}

/** Opens a connection over a new link, and sees that it works. */
const connected = async () => {
  const link = await startLink()
  const socket = await open(link)
  await echo(socket)
  return { link, socket }
}

/** Sends text and waits for it to come back. Returns how long that took, in milliseconds. */
const echo = async (socket: Socket, text = "hello"): Promise<number> => {
  const begin = performance.now()
  let back = ""
  socket.on("data", (chunk) => (back += String(chunk)))
  socket.write(text)
  while (back.length < text.length) await once(socket, "data")
  socket.removeAllListeners("data")
  expect(back).toBe(text)
  return performance.now() - begin
}

describe("a link", () => {
  it("carries bytes both ways", async () => {
    const { socket } = await connected()
    await echo(socket, "x".repeat(3 * 2 ** 20))
  })

  it("resets connections", async () => {
    const { link, socket } = await connected()
    link.reset()
    await expect(once(socket, "close")).rejects.toThrow("ECONNRESET")
    await echo(await open(link))
  })

  it("refuses connections until it accepts them again", async () => {
    const link = await startLink()
    await link.refuse()
    await expect(open(link)).rejects.toThrow("ECONNREFUSED")
    await link.accept()
    await echo(await open(link))
  })

  it("lets connections die in silence", async () => {
    const { link, socket } = await connected()
    link.silence()
    let heard = ""
    socket.on("data", (chunk) => (heard += String(chunk)))
    socket.on("close", () => (heard += "closed"))
    socket.write("hello")
    await echo(await open(link))
    expect(heard).toBe("")
  })

  it("holds bytes back while it is stalled, and loses none", async () => {
    const { link, socket } = await connected()
    link.change({ isStalled: true })
    const coming = echo(socket)
    const isEarly = await Promise.race([coming.then(() => true), sleep(20, false)])
    expect(isEarly).toBe(false)
    link.change({ isStalled: false })
    await coming
  })

  it("delays bytes in both directions, and carries no more of them a second than it may", async () => {
    const { link, socket } = await connected()
    link.change({ delayMillis: 30 })
    expect(await echo(socket)).toBeGreaterThanOrEqual(59)
    link.change({ delayMillis: 0, bytesPerSecond: 100_000 })
    expect(await echo(socket, "x".repeat(5000))).toBeGreaterThanOrEqual(49)
  })
})
