import { gzipSync } from "node:zlib"
import { expect, it } from "vitest"
import { files, html } from "../src/files.generated.ts"

it("the page has at most 60 kB", () => {
  const all = [html, ...Object.values(files).map(({ text }) => text)]
  const size = all.reduce((sum, one) => sum + gzipSync(one).length, 0)
  expect(size).toBeLessThan(60_000)
})
