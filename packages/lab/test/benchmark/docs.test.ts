import { readFile, readdir } from "node:fs/promises"
import { assert, describe, it } from "@effect/vitest"
import { drawAll } from "../../benchmark/charts/files.ts"
import { page, shown } from "../../benchmark/docs/publish.ts"
import { withTargets } from "../../benchmark/docs/targets.ts"
import { readResults } from "../../benchmark/results.ts"

// `npm run benchmark -- --docs` writes all of it.
describe("docs/performance.md", async () => {
  const results = await readResults(shown)
  const text = await readFile(page, "utf8")

  it("has the targets and figures of its results", () => {
    assert.strictEqual(withTargets(text, results), text)
  })

  it("shows the charts of its results, and no others", async () => {
    const drawn = await drawAll(results)
    for (const { file, svg } of drawn) {
      assert.strictEqual(await readFile(new URL(file, shown), "utf8"), svg, file)
      assert.include(text, `performance/${file}"`)
      // A text that is too long would make the chart wider.
      assert.include(svg, ` width="830" `, file)
    }
    assert.sameMembers(
      (await readdir(shown)).filter((file) => file.endsWith(".svg")),
      drawn.map(({ file }) => file),
    )
  })
})
