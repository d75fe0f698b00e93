import { describe, expect, it } from "vitest"
import { routes } from "../../src/http/routes.ts"
import { document } from "../../src/openapi/document.generated.ts"
import { printHtml } from "../../src/openapi/html.ts"

const page = printHtml(document)

const all = (text: string, pattern: RegExp): ReadonlyArray<string> =>
  Array.from(text.matchAll(pattern), ([, name = ""]) => name)

const ids = all(page, / id=([\w.-]+)/g)

describe("the page of the documentation", () => {
  it("has every operation and every event, in a size that loads at once", () => {
    expect(ids).toEqual(expect.arrayContaining(Object.keys(routes)))
    expect(ids).toEqual(
      expect.arrayContaining(Object.keys(document.webhooks).map((type) => `on.${type}`)),
    )
    // In characters. It is 106,000 long: raise this if the API has grown, and not if the page repeats itself.
    expect(page.length).toBeLessThan(107_000)
  })

  it("has a target for each link, and no id twice", () => {
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([])
    expect(all(page, /href=#([^>]+)>/g).filter((id) => !ids.includes(id))).toEqual([])
  })

  it("has groups with plain names, none of them empty", () => {
    for (const { name } of document.tags) {
      expect(name).toMatch(/^[A-Z][A-Za-z ]+$/)
      expect(page).toContain(`>${name}</a><ul><li>`)
    }
  })
})
