/** `tenure dev`: its port, and its profiles. */

import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { freePort } from "@tenure/testing/conformance"
import { expect, it } from "vitest"
import { temporaryFolder, tenureWith } from "./in-process.ts"

it("listens on the port of the environment, and refuses what is none", async () => {
  const port = String(await freePort())
  const home = { XDG_CONFIG_HOME: temporaryFolder() }
  const { run, start } = tenureWith({ ...home, PORT: port })
  const { printed } = start`dev`
  await expect.poll(() => printed.stdout).toContain(`http://127.0.0.1:${port} `)
  for (const wrong of ["http", "-1", "65536", "1.5"])
    expect(await tenureWith({ ...home, PORT: wrong }).run`dev`).toMatchObject({
      code: 2,
      stderr: "PORT must be a port, from 0 to 65535.\n",
    })
  expect(await run`dev --port 65536`).toMatchObject({ code: 2 })
})

it("has a profile of its own beside others that run, and runs without one", async () => {
  const home = temporaryFolder()
  const { run, start } = tenureWith({ XDG_CONFIG_HOME: home })
  const startHere = async () => {
    const running = start`dev --port 0`
    await expect.poll(() => running.printed.stdout).toContain("Webhooks that have arrived")
    return running
  }
  const keyBy = async (profile: string) => {
    const { code, stdout } = await run`keys list --json --profile ${profile}`
    return code === 0 ? JSON.parse(stdout).id : code
  }
  const first = await startHere()
  const firstKey = await keyBy("tenure-dev")
  const second = await startHere()
  expect(second.printed.stdout).toContain("--profile tenure-dev-2\n")
  expect(await keyBy("tenure-dev")).toBe(firstKey)
  expect(await keyBy("tenure-dev-2")).not.toBe(firstKey)
  await first.interrupt()
  expect(await keyBy("tenure-dev")).toBe(2)
  expect(await keyBy("tenure-dev-2")).toMatch(/-/)
  await second.interrupt()
  expect(await keyBy("tenure-dev-2")).toBe(2)

  const profiles = join(home, "tenure", "profiles.json")
  const left = { url: "http://127.0.0.1:9", token: "of-one-that-was-killed" }
  writeFileSync(profiles, JSON.stringify({ "tenure-dev": left }), { mode: 0o600 })
  const third = await startHere()
  expect(third.printed.stdout).toContain("--profile tenure-dev\n")
  await third.interrupt()
  writeFileSync(profiles, "{", { mode: 0o600 })
  expect((await startHere()).printed.stderr).toContain("mend it, or remove it")
})
