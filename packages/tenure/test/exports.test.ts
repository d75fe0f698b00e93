/** What is imported from `tenure` is what the packages export, at run time and in types. */

import { glob } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import type { Node } from "typescript/unstable/ast"
import { isExportDeclaration } from "typescript/unstable/ast/is"
import { API } from "typescript/unstable/sync"
import { afterAll, describe, expect, it } from "vitest"
import { modules, sourceOf, sources } from "./modules.ts"

describe("a module contains nothing but a re-export:", () => {
  it.each(modules)("$here", async (module) => {
    await expect(`export * from "${module.original}"\n`).toMatchFileSnapshot(sourceOf(module))
  })

  it("and there are no others", async () => {
    const found: Array<string> = []
    for await (const path of glob("**/*.ts", { cwd: sources, exclude: ["bin"] }))
      found.push(`${sources}/${path}`)
    expect(found.toSorted()).toEqual(modules.map(sourceOf).toSorted())
  })
})

describe("at run time, the exports are the same:", () => {
  it.each(modules)("$here", async ({ here, original }) => {
    const theirs = await import(original)
    const ours = await import(here)
    expect(Object.keys(ours)).toEqual(Object.keys(theirs))
    for (const name of Object.keys(theirs)) expect(ours[name], name).toBe(theirs[name])
  })
})

describe("in types, the exports are the same:", () => {
  const config = fileURLToPath(new URL("../tsconfig.json", import.meta.url))
  const api = new API()
  const { checker, program } = api.updateSnapshot({ openProjects: [config] }).getProjects()[0] ?? {}
  afterAll(() => api.close())

  /** The names that the module at a node exports, each with the symbol that declares it. */
  const exportsOf = (node: Node | undefined) => {
    const module = node && checker?.getSymbolAtLocation(node)
    const exported = module === undefined ? [] : checker?.getExportsOfModule(module)
    return exported?.map(({ id, name }) => ({ id, name }))
  }

  it.each(modules)("$here", (module) => {
    const source = program?.getSourceFile(sourceOf(module))
    const [statement] = source?.statements ?? []
    if (statement === undefined || !isExportDeclaration(statement)) expect.fail("no re-export")
    const ours = exportsOf(source)
    expect(ours).not.toEqual([])
    expect(ours).toEqual(exportsOf(statement.moduleSpecifier))
  })
})
