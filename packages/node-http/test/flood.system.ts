/** A server with a small heap, in its own process, which floods do not end. */

import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { send } from "@tenure/testing/conformance"
import { expect, it } from "vitest"
import { connect, lines } from "./support.ts"

const connections = 40
const bytes = 4_000_000

/** Starts a server with a small heap. */
const start = async () => {
  const program = fileURLToPath(new URL("flooded.ts", import.meta.url))
  const child = spawn(
    process.execPath,
    ["-C", "@tenure/source", "--max-old-space-size=96", program],
    { stdio: ["ignore", "pipe", "ignore"] },
  )
  const [url] = await once(child.stdout, "data")
  return { child, url: String(url).trim() }
}

/** Opens a connection that pipelines tiny requests, and returns a function that ends it. */
const flood = async (url: string, isRead: boolean): Promise<() => void> => {
  const socket = await connect(url)
  if (isRead) socket.resume()
  const request = lines("GET / HTTP/1.1", "Host:")
  socket.write(request.repeat(bytes / request.length))
  return () => socket.destroy()
}

it.each([
  ["reads its responses", true],
  ["reads nothing", false],
])(
  "a client that pipelines millions of bytes of requests and %s neither stops the server nor starves others",
  async (_name, isRead) => {
    const { child, url } = await start()
    const ends = await Promise.all(Array.from({ length: connections }, () => flood(url, isRead)))
    for (let count = 0; count < 20; count++) {
      expect([404, 429]).toContain((await send(url, { path: "/" })).status)
    }
    expect(child.exitCode).toBe(null)
    for (const end of ends) end()
    child.kill("SIGKILL")
    await once(child, "close")
  },
)
