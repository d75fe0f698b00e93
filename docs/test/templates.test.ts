/** The programs that `tenure init` writes are those that the documentation shows. */

import { readFileSync, readdirSync } from "node:fs"
import { glob } from "node:fs/promises"
import { expect, it } from "vitest"
import { root } from "./examples.ts"

const templates = `${root}/packages/cli/templates`

const pages: Array<string> = []
for await (const page of glob(["README.md", "docs/**/*.md"], { cwd: root })) {
  pages.push(readFileSync(`${root}/${page}`, "utf8"))
}

it.each(readdirSync(templates).filter((name) => name.endsWith(".ts")))(
  "the template %s is on a page",
  (name) => {
    expect(pages.join("\n")).toContain(`\n${readFileSync(`${templates}/${name}`, "utf8")}\`\`\`\n`)
  },
)
