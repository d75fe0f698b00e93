/** An import whose process is killed, against the bundled server on PostgreSQL. */

import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync, writeFileSync } from "node:fs"
import { expect, inject, it, onTestFinished } from "vitest"
import { bareEnvironment, command } from "./programs.ts"
import { startProjects } from "./projects.ts"
import { startProxy } from "./proxy.ts"

it("40,000 members arrive once, though the command is killed in the middle, and are exported", async () => {
  const { begin, stop, url } = await startProjects({
    DATABASE_URL: inject("databaseUrl"),
    DATABASE_SCHEMA: "imports",
  })
  onTestFinished(stop)
  const { environment, pathOf, tenure } = await begin()
  const total = 40_000
  const members = Array.from(
    { length: total },
    (_, index) => `${100_000 + index},2098-01-01T00:00:00.000Z`,
  )
  const path = pathOf("large.csv")
  writeFileSync(path, ["user_id,end_date", ...members].join("\n"))
  let left = 2
  const proxy = await startProxy(url, () => (left-- > 0 ? "passed" : "lost"))
  const [node = "", ...args] = command("members", "import", path)
  const child = spawn(node, args, {
    env: { ...bareEnvironment, ...environment, TENURE_URL: proxy },
    stdio: "ignore",
  })
  const ended = once(child, "close")
  // The third part has been applied, and its answer was lost.
  await expect.poll(() => left).toBeLessThan(0)
  child.kill("SIGKILL")
  await ended

  const { code, stdout } = await tenure("members", "import", path, "--json")
  expect(code).toBe(0)
  const result = JSON.parse(stdout)
  expect(result).toMatchObject({ members: total, refused: 0 })
  expect(result.repeated).toBeGreaterThanOrEqual(20_000)
  const history = (await tenure("members", "history", "100000", "--json")).stdout
  expect(history.trim().split("\n")).toHaveLength(1)

  const output = pathOf("exported.csv")
  expect(await tenure("members", "export", "-o", output)).toMatchObject({ code: 0 })
  const exported = [
    "user_id,end_date,state,metadata",
    ...members.map((line) => `${line},active,`),
    "",
  ]
  expect(readFileSync(output, "utf8") === exported.join("\n")).toBe(true)
})
