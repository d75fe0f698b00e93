import { readFile, readdir } from "node:fs/promises"
import { assert, describe, it } from "@effect/vitest"
import { comparisonsOf, unansweredOf } from "../../benchmark/charts/alternatives.ts"
import { drawAll, drawAlternatives } from "../../benchmark/charts/files.ts"
import { withComparisons, withFigures } from "../../benchmark/docs/pages.ts"
import { figuresPage, pictures, shown, userPage } from "../../benchmark/docs/publish.ts"
import { foundIn, readResults } from "../../benchmark/results.ts"

// `npm run benchmark -- --docs` writes all of it.
const results = await readResults(shown)

describe.each([
  {
    page: figuresPage,
    folder: shown,
    name: "figures",
    drawn: await drawAll(results),
    change: withFigures,
  },
  {
    page: userPage,
    folder: pictures,
    name: "performance",
    drawn: await drawAlternatives(results),
    change: withComparisons,
  },
])("the page with the charts in $name", async ({ change, drawn, folder, name, page }) => {
  const text = await readFile(page, "utf8")

  it("has the figures of its results", () => {
    assert.strictEqual(change(text, results), text)
  })

  it("shows the charts of its results, and no others", async () => {
    for (const { file, svg } of drawn) {
      assert.strictEqual(await readFile(new URL(file, folder), "utf8"), svg, file)
      assert.include(text, `${name}/${file}"`)
      // A text that is too long would make the chart wider.
      assert.include(svg, ` width="830" `, file)
    }
    assert.sameMembers(
      (await readdir(folder)).filter((file) => file.endsWith(".svg")),
      drawn.map(({ file }) => file),
    )
  })
})

describe("docs/performance.md", async () => {
  const { rows } = foundIn(results)
  const text = await readFile(userPage, "utf8")

  it("answers all five questions in at most 500 words", () => {
    assert.deepStrictEqual(unansweredOf(rows), [])
    assert.lengthOf(comparisonsOf(rows), 5)
    assert.isAtMost(text.split(/\s+/).filter((word) => /\w/.test(word)).length, 500)
  })
})
