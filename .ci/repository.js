/** What checks need to know of the repository. */

import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("..", import.meta.url))

const read = (path) => readFileSync(join(root, path), "utf8")

/** The packages that are published, each with its folder in `packages` and its manifest. */
export const packages = readdirSync(join(root, "packages"))
  .filter((folder) => existsSync(join(root, "packages", folder, "package.json")))
  .map((folder) => ({ folder, manifest: JSON.parse(read(`packages/${folder}/package.json`)) }))
  .filter(({ manifest }) => manifest.private !== true)

/** Returns the first example of a Markdown file in a language. */
export const exampleOf = (path, language = "ts") => {
  const fence = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "ms")
  const [, example] = fence.exec(read(path)) ?? []
  if (example === undefined) throw new Error(`${path} has no example in ${language}`)
  return example
}

/** Returns the paths of the test files of both suites, also of those that are not committed. */
export const testFiles = () => {
  const listing = ["ls-files", "--cached", "--others", "--exclude-standard"]
  const files = execFileSync("git", [...listing, "*.test.*", "*.system.*"], { cwd: root })
  return (
    String(files)
      .trim()
      .split("\n")
      .filter((path) => existsSync(join(root, path)))
      // They run outside the repository: `npm run hosts`.
      .filter((path) => !path.startsWith("docs/hosts/"))
  )
}
