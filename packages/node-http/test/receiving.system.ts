/** The receivers from the examples and the documentation, as processes. */

import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFile } from "node:fs/promises"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { secretFromBytes, signMessage } from "@tenure/core/signature"
import { freePort, send, startReceiver } from "@tenure/testing/conformance"
import { describe, expect, it, vi } from "vitest"
import { connect, lines } from "./support.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))
const secret = secretFromBytes(new Uint8Array(32))

/** The documented receiver's code, changed to another port. */
const documentedReceiver = async (port: number): Promise<string> => {
  const page = await readFile(`${root}/docs/webhooks.md`, "utf8")
  const [, code = ""] = /^```ts\n(.*?)^```$/ms.exec(page) ?? []
  return code.replace("listen(4000", `listen(${port}`)
}

const ofExamples = `${root}/examples/webhook-receiver/src/main.ts`

const programs: ReadonlyArray<
  readonly [string, string, (port: number) => Promise<ReadonlyArray<string>>]
> = [
  ["of the examples", "/", async () => [ofExamples]],
  [
    "of the documentation",
    "/hooks",
    async (port) => ["--input-type=module-typescript", "-e", await documentedReceiver(port)],
  ],
]

const { NODE_COMPILE_CACHE } = process.env

/** Starts a receiver. */
const start = (args: ReadonlyArray<string>, environment: Readonly<Record<string, string>>) =>
  spawn(process.execPath, ["-C", "@tenure/source", ...args], {
    // Where the packages are that the documentation imports.
    cwd: `${root}/docs`,
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE, ...environment },
    stdio: ["ignore", "ignore", "pipe"],
  })

/** Waits until a server listens. */
const listening = (url: string): Promise<void> =>
  vi.waitFor(async () => void (await connect(url)).destroy(), { timeout: 60_000, interval: 20 })

/** Resets a connection within a request, once the receiver waits for the rest. */
const breakOff = async (url: string, path: string): Promise<void> => {
  const socket = await connect(url)
  socket.write(
    lines(`POST ${path} HTTP/1.1`, "Host: a", "Content-Length: 10", "Expect: 100-continue") +
      "half",
  )
  await once(socket, "data")
  socket.resetAndDestroy()
}

const body = '{"type":"a.b","data":{}}'

const notification = () => {
  const timestamp = Math.floor(Date.now() / 1000)
  return {
    "webhook-id": "evt_1",
    "webhook-timestamp": timestamp,
    "webhook-signature": signMessage({ id: "evt_1", timestamp, body }, secret),
  }
}

describe.each(programs)("the receiver %s", (_name, path, programOn) => {
  it("survives a request that ends early, and verifies notifications", async () => {
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    const environment = { PORT: String(port), WEBHOOK_SECRET: secret }
    const program = start(await programOn(port), environment)
    try {
      await listening(url)
      await breakOff(url, path)
      const request = { method: "POST", path, body }
      expect((await send(url, { ...request, headers: notification() })).status).toBe(204)
      expect((await send(url, request)).status).toBe(400)
    } finally {
      program.kill()
    }
  })
})

it.each([{}, { WEBHOOK_SECRET: "whsec_x" }])(
  "the receiver of the examples does not start without a valid secret: %o",
  async (environment) => {
    const program = start([ofExamples], environment)
    const [reason, [code]] = await Promise.all([text(program.stderr), once(program, "close")])
    expect([code, reason]).toEqual([1, expect.stringMatching(/^WEBHOOK_SECRET .*\n$/)])
  },
)

describe("startReceiver", () => {
  it("survives a request that ends early", async () => {
    const receiver = await startReceiver()
    await breakOff(receiver.url, "/")
    await send(receiver.url, { method: "POST", path: "/", body: "{}" })
    expect(receiver.received).toHaveLength(1)
    receiver.close()
  })
})
