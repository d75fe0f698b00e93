/** The options page, and the doc comments behind it. */

import { expect, it } from "vitest"
import { root } from "./examples.ts"
import { allOptions, flatten, optionsPart } from "./options.ts"
import { serverOptions, variablesPart } from "./variables.ts"

it("the page of options and variables is what their definitions say", async () => {
  const page = `${await optionsPart()}\n${await variablesPart()}`
  await expect(page).toMatchFileSnapshot(`${root}/docs/options.md`)
})

it("the doc comment of every option describes it and tells its default", async () => {
  const sections = [...(await allOptions()), await serverOptions()]
  const entries = sections.flatMap((section) => flatten(section.entries))
  for (const { default: value, name, text } of entries) {
    expect(text, name).toMatch(/^[A-Z].*\.$/)
    const [, told] = / Default: `(.*)`\.$/.exec(text) ?? []
    expect(told, name).toBe(value)
  }
})
