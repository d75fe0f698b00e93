import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { assert, it } from "@effect/vitest"
import { type Measured, addResults, latest, readResults } from "../../benchmark/results.ts"

const section = (name: string, at: string): Measured => ({ name, at, on: "Node", rows: [] })

it("returns the latest results of each section that there is, in order", () => {
  const older = { sections: [section("a", "2026-01-02"), section("b", "2026-01-02")] }
  const newer = { sections: [section("b", "2026-01-03"), section("gone", "2026-01-03")] }
  const stale = { sections: [section("a", "2026-01-01")] }
  assert.deepStrictEqual(latest([older, newer, stale], ["b", "a", "never measured"]), {
    sections: [section("b", "2026-01-03"), section("a", "2026-01-02")],
  })
})

it("keeps the results of sections that were measured in other runs", async () => {
  const path = await mkdtemp(join(tmpdir(), "results-"))
  const folder = pathToFileURL(`${path}/`)
  assert.deepStrictEqual(await readResults(folder), { sections: [] })
  await addResults(folder, section("a", "2026-01-01"))
  await addResults(folder, section("b", "2026-01-01"))
  await addResults(folder, section("a", "2026-01-02"))
  assert.deepStrictEqual(await readResults(folder), {
    sections: [section("b", "2026-01-01"), section("a", "2026-01-02")],
  })
  await rm(path, { recursive: true })
})
