/** The npm commands that pages name: their scripts exist, and what READMEs install is enough. */

import { existsSync } from "node:fs"
import { isBuiltin } from "node:module"
import { dirname, join } from "node:path"
import { describe, expect, it } from "vitest"
import { filesOf, read, root } from "./examples.ts"

const scriptsOf = (folder: string): ReadonlyArray<string> => {
  const path = `${folder}/package.json`
  return existsSync(`${root}/${path}`) ? Object.keys(JSON.parse(read(path)).scripts ?? {}) : []
}

const scripts = scriptsOf(".")

/** A script, and the folder that has it. npm's own need no `run`. */
const call =
  /\bnpm (?:run (?:--silent )?([\w:-]+)|(start|test)\b)[^\n`|]*?(?:--prefix ([\w./-]+)|$|[\n`|])/gm
const prefixed = /\bnpm run --silent --prefix ([\w./-]+) ([\w:-]+)/g

const pages = await filesOf(
  "*.md",
  "docs/{,hosts/,internals/}*.md",
  "examples/*/README.md",
  "packages/**/*.md",
  ".github/**/*.{md,yml}",
)
const readmes = await filesOf("packages/*/README.md")
const programs = await filesOf(".ci/*", "package.json", "packages/lab/**/*.ts", "docs/test/*.ts")

describe("every script of a page exists:", () => {
  it.each(pages)("%s", (page) => {
    const called = [...read(page).matchAll(call)].map(([, run, own, folder = "."]) => ({
      name: run ?? own ?? "",
      folder,
    }))
    expect(called.filter(({ folder, name }) => !scriptsOf(folder).includes(name))).toEqual([])
  })
})

it("has no script that nothing names", () => {
  const text = [...pages, ...programs].map(read).join("\n")
  const named = new Set([
    ...[...text.matchAll(call)].map(([, run, own]) => run ?? own),
    ...[...text.matchAll(prefixed)].map(([, , name]) => name),
  ])
  // npm runs those before and after the others.
  const isBeside = (name: string): boolean => {
    const [, other = ""] = /^(?:pre|post)(.+)$/.exec(name) ?? []
    return scripts.includes(other)
  }
  expect(scripts.filter((name) => !named.has(name) && !isBeside(name))).toEqual([])
})

/** The module that a script runs, if it is one of the repository: that of a scenario, if the script names one. */
const moduleOf = (name: string): string | undefined => {
  const { scripts: lines } = JSON.parse(read("package.json"))
  const [, module, scenario] = /(packages\/\S+\.ts)(?: ([\w-]+))?/.exec(lines[name]) ?? []
  if (module === undefined || scenario === undefined) return module
  const imported = new RegExp(`\\b${scenario}: \\(\\) => import\\("([^"]+)"`).exec(
    read(module),
  )?.[1]
  return imported === undefined ? module : join(dirname(module), imported)
}

it("passes only flags that a script has", () => {
  const calls = pages.map(read).join("\n")
  const wrong = [...calls.matchAll(/npm run ([\w:-]+) -- ([^`\n#|]*)/g)].flatMap(
    ([, name = "", args = ""]) => {
      const module = moduleOf(name)
      const source = module === undefined ? "" : read(module)
      const flags = [...args.matchAll(/--(?:no-)?([a-z][\w-]*)/g)].map(([, flag = ""]) => flag)
      return flags
        .filter((flag) => !new RegExp(`\\b${flag}"?: \\{`).test(source))
        .map((flag) => `${name} --${flag}`)
    },
  )
  expect(wrong).toEqual([])
})

/** An import's package, unless the runtime has it. */
const packageOf = (path: string): ReadonlyArray<string> => {
  if (isBuiltin(path) || path.startsWith(".")) return []
  const [, name = path] = /^((?:@[^/]+\/)?[^/]+)/.exec(path) ?? []
  return [name]
}

describe("a README installs what its first example imports:", () => {
  it.each(readmes)("%s", (page) => {
    const [, install = ""] = /^npm install (.*)$/m.exec(read(page)) ?? []
    const names = install.split(" ").map((name) => name.replace(/(?<=.)@.*$/, ""))
    const installed = new Set(names)
    const [, example = ""] = /^```ts\n(.*?)^```$/ms.exec(read(page)) ?? []
    const imported = [...example.matchAll(/ from "([^"]+)"/g)].flatMap(([, path = ""]) =>
      packageOf(path),
    )
    expect(imported.filter((name) => !installed.has(name))).toEqual([])
  })
})
