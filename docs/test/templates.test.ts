/** The programs that `tenure init` writes are those that the documentation shows. */

import { expect, it } from "vitest"
import { filesOf, read } from "./examples.ts"

const pages = (await filesOf("README.md", "docs/**/*.md")).map(read)

it.each(await filesOf("packages/cli/templates/*.ts"))("the template %s is on a page", (file) => {
  expect(pages.join("\n")).toContain(`\n${read(file)}\`\`\`\n`)
})
