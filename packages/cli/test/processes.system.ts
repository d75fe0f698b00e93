/** The command as a process: its output, its exit codes, signals, and questions on a terminal. */

import { type StdioOptions, execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, openSync } from "node:fs"
import { text } from "node:stream/consumers"
import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest"
import { tenureWith } from "./in-process.ts"
import { bareEnvironment, binary, command } from "./programs.ts"
import { startProxy } from "./proxy.ts"
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
  const silent = await startProxy(server.url, ({ method }) => {
    if (method === "GET") return "passed"
    hasAsked = true
    return "kept"
  })
  const before = environment
  environment = { ...before, TENURE_URL: silent }
  const { child, ended } = start("trigger membership.granted")
  environment = before
  await expect.poll(() => hasAsked).toBe(true)
  child.kill("SIGINT")
  await setTimeout(50)
  child.kill("SIGINT")
  await setTimeout(700)
  expect(child.exitCode).toBe(null)
  child.kill("SIGINT")
  expect(await Promise.race([ended, setTimeout(20_000, "waits")])).toMatchObject({ code: 130 })
})

const run = (line: string): Promise<string> =>
  new Promise((resolve) => {
    execFile(
      "/bin/sh",
      ["-c", line],
      { env: { ...bareEnvironment, ...environment } },
      (_, stdout, stderr) => resolve(stdout + stderr),
    )
  })

it("warns of TENURE_ variables that are misspelled", async () => {
  const warning = "There is no variable TENURE_PROJCT. Did you mean TENURE_PROJECT?"
  const errorsOf = (rest: string) =>
    run(`TENURE_PROJCT=p TENURE_PORT=tcp://x ${binary} ${rest} 2>&1 >/dev/null`)
  expect(await errorsOf("--version")).toBe(`${warning}\n`)
  expect(await errorsOf("profiles list --json")).toBe(`{"warning":{"message":"${warning}"}}\n`)
})

it("ends with its exit code", async () => {
  expect(await run(`${binary} projects get none --json; echo "code $?"`)).toContain("code 3")
  expect(await run(`${binary} nothing; echo "code $?"`)).toContain("code 2")
})

it("prints completions", async () => {
  expect(await run(`${binary} --completions bash`)).toContain("extend-all")
})

it.runIf(process.platform === "linux")("asks on a terminal", async () => {
  await tenureWith(environment)("projects", "create", "terminal")
  await tenureWith(environment)("members", "grant", "1", "2098-01-01", "-p", "terminal")
  const extend = `${binary} extend-all terminal 2097-01-01`
  const child = spawn("script", ["-qefc", extend, "/dev/null"], {
    env: { ...bareEnvironment, ...environment },
  })
  let shown = ""
  child.stdout.on("data", (chunk) => {
    if (!shown.includes("shortened") && String(chunk).includes("shortened")) child.stdin.write("y")
    shown += String(chunk)
  })
  expect(await new Promise((resolve) => child.once("close", resolve))).toBe(0)
  expect(shown).toContain("new end date")
})
