import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { expect, it } from "vitest"
import { makeFiles } from "./bundle.ts"

const path = fileURLToPath(new URL("../src/files.ts", import.meta.url))

it("the package has the page as its sources are, in at most 60 kB", async () => {
  const { files, html } = await makeFiles()
  const text = `/**
 * The page, bundled so that hosts need not build it. \`npm run generate\` writes this module.
 */

import type { File } from "./responses.ts"

/** The files that the page loads. */
export const files = ${JSON.stringify(files, null, 2)} as const satisfies Readonly<Record<string, File>>

/** The page itself. */
export const html = ${JSON.stringify(html)}
`
  await expect(text).toMatchFileSnapshot(path)
  const all = [html, ...Object.values(files).map((file) => file.text)]
  const size = all.reduce((sum, one) => sum + gzipSync(one).length, 0)
  expect(size).toBeLessThan(60_000)
})
