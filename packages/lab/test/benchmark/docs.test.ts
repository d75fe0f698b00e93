import { readFile, readdir } from "node:fs/promises"
import { assert, it } from "@effect/vitest"
import { comparisonsOf, unansweredOf } from "../../benchmark/comparisons.ts"
import {
  figuresPage,
  pictures,
  picturesOf,
  userPage,
  withComparisons,
  withFigures,
} from "../../benchmark/pages.ts"
import { readResults, rowsIn, shown } from "../../benchmark/results.ts"

// `npm run benchmark -- --docs` writes it all.
const results = await readResults(shown)
const text = await readFile(userPage, "utf8")

it("the pages have the figures of the results", async () => {
  const figures = await readFile(figuresPage, "utf8")
  assert.strictEqual(withFigures(figures, results), figures)
  assert.strictEqual(withComparisons(text, results), text)
})

it("the page for users shows the pictures of the results, and no others", async () => {
  const drawn = picturesOf(results)
  for (const { file, svg } of drawn) {
    assert.strictEqual(await readFile(new URL(file, pictures), "utf8"), svg, file)
    assert.include(text, `performance/${file}"`)
  }
  assert.sameMembers(
    await readdir(pictures),
    drawn.map(({ file }) => file),
  )
})

it("docs/performance.md answers all five questions in at most 500 words", () => {
  const rows = rowsIn(results)
  assert.deepStrictEqual(unansweredOf(rows), [])
  assert.lengthOf(comparisonsOf(rows), 5)
  assert.isAtMost(text.split(/\s+/).filter((word) => /\w/.test(word)).length, 500)
})
