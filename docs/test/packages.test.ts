/** The published packages' manifests and READMEs. */

import { existsSync } from "node:fs"
import { dirname } from "node:path"
import { describe, expect, it } from "vitest"
import { filesOf, read, root } from "./examples.ts"

const manifestOf = (folder: string) => JSON.parse(read(`${folder}/package.json`))

const repository = manifestOf(".")
const url = repository.homepage?.replace("#readme", "")

const published = (await filesOf("packages/*/package.json"))
  .map((path) => dirname(path))
  .filter((folder) => manifestOf(folder).private !== true)

const changesets = (await filesOf(".changeset/*.md")).map(read)

describe.each(published)("%s", (folder) => {
  const manifest = manifestOf(folder)
  const readme = read(`${folder}/README.md`)

  it("says in its manifest what it is and where it comes from", () => {
    expect(manifest).toMatchObject({
      description: expect.stringMatching(/\.$/),
      keywords: expect.arrayContaining(["membership"]),
      homepage: `${url}/tree/main/${folder}#readme`,
      bugs: repository.bugs,
      license: repository.license,
      repository: { ...repository.repository, directory: folder },
      engines: repository.engines,
    })
  })

  it("has the licence of the repository", () => {
    expect(read(`${folder}/LICENSE`)).toBe(read("LICENSE"))
  })

  it("has a README that says how to install it, shows an example, and names what it requires", () => {
    expect(readme.startsWith(`# ${manifest.name}\n`)).toBe(true)
    expect(readme).toMatch(new RegExp(`^npm install .*${manifest.name}( |$)`, "m"))
    expect(readme).toContain("```ts\n")
    expect(readme).toContain("(../../docs/start.md#requirements)")
  })

  it("has the changes of its version written down, or those of the next one", () => {
    const path = `${folder}/CHANGELOG.md`
    const isReleased =
      existsSync(`${root}/${path}`) && read(path).includes(`\n## ${manifest.version}\n`)
    expect(isReleased || changesets.some((one) => one.includes(`"${manifest.name}":`))).toBe(true)
  })

  it("is in the table of import paths, and can be chosen in the form for bugs", () => {
    expect(read("docs/hosts.md")).toContain(`[\`${manifest.name}\`](../${folder})`)
    expect(read(".github/ISSUE_TEMPLATE/bug.yml")).toContain(`- "${manifest.name}"\n`)
  })
})

it("has every change in the changelog of `tenure`", () => {
  expect(changesets.filter((one) => !one.includes('"tenure":'))).toEqual([])
})
