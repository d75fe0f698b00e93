/** The command as a process: its output, its exit codes, and signals. */

import { type StdioOptions, spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, openSync } from "node:fs"
import { createServer, request } from "node:http"
import { text } from "node:stream/consumers"
import { setTimeout } from "node:timers/promises"
import { freePort } from "@tenure/testing/conformance"
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest"
import { tenureWith } from "./in-process.ts"
import { bareEnvironment, command } from "./programs.ts"
import { type Server, startServer, token } from "./server.ts"

let server: Server
let environment: Readonly<Record<string, string>>

beforeAll(async () => {
  server = await startServer()
  environment = { TENURE_URL: server.url, TENURE_TOKEN: token, TENURE_PROJECT: "p" }
  await tenureWith(environment)("projects", "create", "p")
  await tenureWith(environment)("members", "grant", "1", "2098-01-01")
})

afterAll(() => server.stop())

const start = (words: string, stdout: number | "pipe" = "pipe") => {
  const [node = "", ...rest] = command(...words.split(" "))
  const stdio: StdioOptions = ["ignore", stdout, "pipe"]
  const child = spawn(node, rest, { env: { ...bareEnvironment, ...environment }, stdio })
  onTestFinished(() => void child.kill("SIGKILL"))
  if (child.stderr === null) expect.fail("no standard error")
  const stderr = text(child.stderr)
  const ended = once(child, "close").then(async ([code]) => ({ code, stderr: await stderr }))
  return { child, ended }
}

it.each(["members list --json", "members export"])(
  "%s ends without a word when nobody reads it",
  async (words) => {
    const { child, ended } = start(words)
    child.stdout?.destroy()
    expect(await ended).toEqual({ code: 0, stderr: "" })
  },
)

it.each(["members list", "members export"])("%s fails if it cannot print", async (words) => {
  const full = openSync("/dev/full", "w")
  onTestFinished(() => closeSync(full))
  expect(await start(words, full).ended).toEqual({
    code: 1,
    stderr: expect.stringContaining("ENOSPC"),
  })
})

it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
  "listen ends on %s, and says where to go on",
  async (signal) => {
    const { child, ended } = start("listen")
    await once(child.stderr ?? expect.fail("no standard error"), "data")
    child.kill(signal)
    expect(await ended).toEqual({
      code: 130,
      stderr: expect.stringMatching(/To go on from here: --after \S+\n$/),
    })
  },
)

it("ends at once on a second Ctrl+C, and not when npm repeats the first one", async () => {
  // A server that never answers a change: the command waits, to undo it afterwards.
  let hasAsked = false
  const silent = createServer(({ headers, method = "", url: path = "" }, response) => {
    if (method !== "GET") return void (hasAsked = true)
    const onward = request(new URL(path, server.url), { headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(response)
    })
    onward.end()
  })
  onTestFinished(() => {
    silent.closeAllConnections()
    silent.close()
  })
  const port = await freePort()
  await new Promise<void>((resolve) => silent.listen(port, "127.0.0.1", resolve))
  const before = environment
  environment = { ...before, TENURE_URL: `http://127.0.0.1:${port}` }
  const { child, ended } = start("trigger membership.granted")
  environment = before
  await expect.poll(() => hasAsked).toBe(true)
  child.kill("SIGINT")
  await setTimeout(50)
  child.kill("SIGINT")
  await setTimeout(700)
  expect(child.exitCode).toBe(null)
  child.kill("SIGINT")
  expect(await Promise.race([ended, setTimeout(5000, "waits")])).toMatchObject({ code: 130 })
})
