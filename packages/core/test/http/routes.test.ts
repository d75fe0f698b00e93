import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { makePathTree } from "../../src/http/path-tree.ts"
import { makeRoutes, routes } from "../../src/http/routes.ts"

const all = makeRoutes("all")
const contract = makeRoutes("contract")

describe("the table of routes", () => {
  it("has a path of its own for each pattern: each operation is found with all its parameters", () => {
    for (const [operation, { method, pattern }] of Object.entries(routes)) {
      const found = all.match(pattern, "")
      expect(found?.value.get(method)).toBe(operation)
      // Each parameter has its segment's name as value.
      const params = Object.entries(found?.params ?? {}).filter(([, value]) => value !== "")
      const names = pattern.split("/").filter((segment) => segment.startsWith(":"))
      expect(params).toEqual(expect.arrayContaining(names.map((name) => [name.slice(1), name])))
      expect(params).toHaveLength(names.length)
    }
  })

  it("lists each pattern once, so that a router that takes the first match finds each path", () => {
    const matches = (pattern: string, path: string): boolean =>
      new RegExp(`^${pattern.replaceAll(/:\w+/g, "[^/]+")}$`).test(path)
    expect(new Set(all.patterns).size).toBe(all.patterns.length)
    for (const { pattern } of Object.values(routes)) {
      expect(all.patterns.find((listed) => matches(listed, pattern))).toBe(pattern)
    }
  })
})

describe("a path of the API", () => {
  const allowedAt = (path: string, basePath = ""): ReadonlyArray<string> | undefined => {
    const found = contract.match(path, basePath)
    return found && [...found.value.keys()]
  }

  it.each([
    ["memberships/1001/extend", ["PATCH"], { user_id: "1001" }],
    ["memberships/extend", ["PATCH"], {}],
    ["memberships/extend/extend", ["PATCH"], { user_id: "extend" }],
    ["integrations/webhooks", ["GET", "POST"], {}],
    ["integrations/webhooks/w", ["DELETE"], { webhook_id: "w" }],
    ["memberships/%zz/extend", ["PATCH"], { user_id: "%zz" }],
    ["memberships/constructor/extend", ["PATCH"], { user_id: "constructor" }],
  ])("is %s of any project", (rest, methods, params) => {
    for (const project_id of ["p1", "a%2Fb", "__proto__"]) {
      const path = `/v2/projects/${project_id}/${rest}`
      expect(allowedAt(path)).toEqual(methods)
      const found = Object.entries(all.match(path, "")?.params ?? {})
      // Parameters missing in the pattern are empty.
      const present = Object.fromEntries(found.filter(([, value]) => value !== ""))
      expect(present).toEqual({ project_id, ...params })
    }
  })

  it.each([
    "",
    "/",
    "/v2",
    "/v2/",
    "/v2/projects",
    "/v2/projects/p1",
    "/v2/projects/p1/memberships",
    "/v2/projects/p1/memberships/1001",
    "/v2/projects/p1/integrations",
    "/V2/projects/p1/memberships/extend",
    "/v1/projects/p1/memberships/extend",
    "/v2/%70rojects/p1/memberships/extend",
    "/v2/projects/p1/../p1/memberships/extend",
  ])("is not %j", (path) => {
    expect(allowedAt(path)).toBeUndefined()
  })

  it("follows the base path, if there is one", () => {
    const path = "/v2/projects/p1/memberships/extend"
    expect(allowedAt(`/api/x${path}`, "/api/x")).toEqual(["PATCH"])
    for (const base of ["", "/api", "/api/xy"]) {
      expect(allowedAt(`${base}${path}`, "/api/x")).toBeUndefined()
    }
  })
})

describe("the pattern of a path", () => {
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
    { project: "", user: "", webhook: "", event: "" },
  )

  it("is found with its parameters, and those it does not have are empty", () => {
    const anyParams = fc.record({
      project: fc.stringMatching(/^\w{1,9}$/),
      user: fc.stringMatching(/^[\d.]{1,9}\d$/),
      webhook: fc.uuid(),
      event: fc.uuid(),
    })
    fc.assert(
      fc.property(fc.constantFrom(...patterns), anyParams, (pattern, params) => {
        const values = new Map(Object.entries(params))
        const path = pattern.replaceAll(/:(\w+)/g, (_, name: string) => values.get(name) ?? "")
        const found = find(path, 0)
        expect(found?.value).toBe(pattern)
        for (const [name, value] of values) {
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
    "/projects/%2e%2E/members",
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
      fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.webPath()), (text) => {
        expect([undefined, ...patterns]).toContain(find(text, 0)?.value)
      }),
    )
  })
})
