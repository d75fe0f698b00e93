import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { makePathTree } from "../../src/http/routes.ts"

const noParams = { project: "", user: "", webhook: "", event: "" }

const patterns = [
  "/projects",
  "/projects/:project",
  "/projects/:project/members",
  "/projects/:project/members/import",
  "/projects/:project/members/:user",
  "/projects/:project/members/extend",
  "/projects/:project/members/:user/extend",
  "/projects/:project/webhooks/:webhook/deliveries/:event/replay",
  "/keys",
  "/:project/keys/newest",
]

const find = makePathTree(
  patterns.map((pattern) => [pattern, pattern] as const),
  noParams,
)

/** Pairs of a pattern and its parameters. */
const requests = fc.record({
  pattern: fc.constantFrom(...patterns),
  params: fc.record({
    project: fc.stringMatching(/^\w{1,9}$/),
    user: fc.stringMatching(/^[\d.]{1,9}\d$/),
    webhook: fc.uuid(),
    event: fc.uuid(),
  }),
})

const fill = (pattern: string, params: Readonly<Record<string, string>>): string =>
  pattern.replaceAll(/:(\w+)/g, (_, name: string) => params[name] ?? "")

describe("the pattern of a path", () => {
  it("is found with its parameters, and those it does not have are empty", () => {
    fc.assert(
      fc.property(requests, ({ params, pattern }) => {
        const found = find(fill(pattern, params), 0)
        expect(found?.value).toBe(pattern)
        for (const [name, value] of Object.entries(params)) {
          expect(found?.params).toHaveProperty(name, pattern.includes(`:${name}`) ? value : "")
        }
      }),
    )
  })

  it.each([
    ["/projects/p/members/import", "/projects/:project/members/import"],
    ["/projects/p/members/7", "/projects/:project/members/:user"],
    ["/projects/p/members/extend", "/projects/:project/members/extend"],
    // The literal leads to no pattern here.
    ["/projects/p/members/extend/extend", "/projects/:project/members/:user/extend"],
    ["/projects/p/members/import/extend", "/projects/:project/members/:user/extend"],
    ["/keys", "/keys"],
    ["/projects/keys/newest", "/:project/keys/newest"],
    ["/keys/keys/newest", "/:project/keys/newest"],
  ])("of %s is %s: a literal segment wins over a parameter", (path, pattern) => {
    expect(find(path, 0)?.value).toBe(pattern)
  })

  it.each([
    "",
    "/",
    "projects",
    "//projects",
    "/projects/",
    "/projects//members",
    "/projects/p/members/",
    "/projects/p/members/7/",
    "/projects/p/members/7/extend/more",
    "/projects/p/webhooks/w/deliveries/e",
    "/Projects",
    "/projects/.",
    "/projects/../members",
    "/projects/%2e/members",
    "/projects/%2E./members",
  ])("does not exist for %j", (path) => {
    expect(find(path, 0)).toBeUndefined()
  })

  it("is looked for from the given index", () => {
    expect(find("/api/keys", "/api".length)?.value).toBe("/keys")
    expect(find("/api/keys", 0)).toBeUndefined()
    expect(find("/keys", "/keys".length)).toBeUndefined()
  })

  it("is found or not in any text, and nothing throws", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.webPath(), (text, path) => {
        expect([undefined, ...patterns]).toContain(find(text, 0)?.value)
        expect([undefined, ...patterns]).toContain(find(path, 0)?.value)
      }),
    )
  })
})
