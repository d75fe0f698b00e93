import { expect, it } from "vitest"
import { root } from "./examples.ts"
import { allOptions, type Entry, optionsPage } from "./options.ts"

const flatten = (entries: ReadonlyArray<Entry>): ReadonlyArray<Entry> =>
  entries.flatMap((entry) => [entry, ...flatten(entry.entries)])

it("the page of options is what their definitions say", async () => {
  await expect(await optionsPage()).toMatchFileSnapshot(`${root}/docs/options.md`)
})

it("the doc comment of every option describes it and tells its default", async () => {
  const entries = (await allOptions()).flatMap((section) => flatten(section.entries))
  for (const { default: value, name, text } of entries) {
    expect(text, name).toMatch(/^[A-Z].*\.$/)
    const [, told] = / Default: `(.*)`\.$/.exec(text) ?? []
    expect(told, name).toBe(value)
  }
})
