/** The command as a process: its output, its exit codes, signals, and questions on a terminal. */

import { spawn } from "node:child_process"
import { once } from "node:events"
import { setTimeout } from "node:timers/promises"
import { beforeAll, expect, it } from "vitest"
import { type Environment, tenureWith } from "./in-process.ts"
import { bareEnvironment, binary, shell, startCommand } from "./programs.ts"
import { startProxy, useServer } from "./server.ts"

const server = useServer()
let environment: Environment

beforeAll(async () => {
  const begun = await server.begin()
  environment = begun.environment
  await begun.print`members grant 1 2098-01-01`
})

it.each(["members list --json", "members export"])(
  "%s ends without a word when nobody reads it",
  async (words) => {
    const { child, ended } = startCommand(environment, ...words.split(" "))
    child.stdout.destroy()
    expect(await ended).toMatchObject({ code: 0, stderr: "" })
  },
)

it.each(["members list", "members export"])("%s fails if it cannot print", async (words) => {
  expect(await shell(`tenure ${words} > /dev/full`, environment)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("ENOSPC"),
  })
})

it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
  "listen ends on %s, and says where to go on",
  async (signal) => {
    const { child, ended } = startCommand(environment, "listen")
    await once(child.stderr, "data")
    child.kill(signal)
    expect(await ended).toMatchObject({
      code: 130,
      stderr: expect.stringMatching(/To go on from here: --after \S+\n$/),
    })
  },
)

it("ends at once on a second Ctrl+C, and not when npm repeats the first one", async () => {
  // A server that never answers a change: the command waits, to undo it afterwards.
  let hasAsked = false
  const silent = await startProxy(server.url(), ({ method }) => {
    if (method === "GET") return "passed"
    hasAsked = true
    return "kept"
  })
  const atSilent = { ...environment, TENURE_URL: silent }
  const { child, ended } = startCommand(atSilent, "trigger", "membership.granted")
  await expect.poll(() => hasAsked).toBe(true)
  child.kill("SIGINT")
  await setTimeout(50)
  child.kill("SIGINT")
  await setTimeout(700)
  expect(child.exitCode).toBe(null)
  child.kill("SIGINT")
  expect(await Promise.race([ended, setTimeout(20_000, "waits")])).toMatchObject({ code: 130 })
})

it("warns of TENURE_ variables that are misspelled", async () => {
  const warning = "There is no variable TENURE_PROJCT. Did you mean TENURE_PROJECT?"
  const given = { ...environment, TENURE_PROJCT: "p", TENURE_PORT: "tcp://x" }
  expect((await shell("tenure --version", given)).stderr).toBe(`${warning}\n`)
  const asJson = await shell("tenure profiles list --json", given)
  expect(asJson.stderr).toBe(`{"warning":{"message":"${warning}"}}\n`)
})

it("ends with its exit code", async () => {
  expect(await shell("tenure projects get none --json", environment)).toMatchObject({ code: 3 })
  expect(await shell("tenure nothing", environment)).toMatchObject({ code: 2 })
})

it("prints completions", async () => {
  const { stdout } = await shell("tenure --completions bash", environment)
  expect(stdout).toContain("extend-all")
})

it.runIf(process.platform === "linux")("asks on a terminal", async () => {
  const { print } = tenureWith(environment)
  await print`projects create terminal`
  await print`members grant 1 2098-01-01 -p terminal`
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
