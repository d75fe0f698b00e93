import { describe, expect, it } from "vitest"
import { makeRoutes, routes } from "../../src/http/routes.ts"

const all = makeRoutes("all")
const contract = makeRoutes("contract")

const allowedAt = (path: string, basePath = ""): ReadonlyArray<string> | undefined => {
  const found = contract.match(path, basePath)
  return found && [...found.value.keys()]
}

const matches = (pattern: string, path: string): boolean =>
  new RegExp(`^${pattern.replaceAll(/:\w+/g, "[^/]+")}$`).test(path)

describe("the table of routes", () => {
  it("has a path of its own for each pattern: each operation is found with all its parameters", () => {
    for (const [operation, { method, pattern }] of Object.entries(routes)) {
      const found = all.match(pattern, "")
      expect(found?.value.get(method)).toBe(operation)
      // Each parameter has the name of its segment as a value.
      const params = Object.entries(found?.params ?? {}).filter(([, value]) => value !== "")
      const names = pattern.split("/").filter((segment) => segment.startsWith(":"))
      expect(params).toEqual(expect.arrayContaining(names.map((name) => [name.slice(1), name])))
      expect(params).toHaveLength(names.length)
    }
  })

  it("lists each pattern once, so that a router that takes the first match finds each path", () => {
    expect(new Set(all.patterns).size).toBe(all.patterns.length)
    for (const { pattern } of Object.values(routes)) {
      expect(all.patterns.find((listed) => matches(listed, pattern))).toBe(pattern)
    }
  })
})

describe("a path of the API", () => {
  it.each([
    ["/v2/projects/p1/memberships/1001/extend", ["PATCH"], { project_id: "p1", user_id: "1001" }],
    ["/v2/projects/p1/memberships/extend", ["PATCH"], { project_id: "p1" }],
    [
      "/v2/projects/p1/memberships/extend/extend",
      ["PATCH"],
      { project_id: "p1", user_id: "extend" },
    ],
    ["/v2/projects/p1/integrations/webhooks", ["GET", "POST"], { project_id: "p1" }],
    ["/v2/projects/p1/integrations/webhooks/w", ["DELETE"], { project_id: "p1", webhook_id: "w" }],
    [
      "/v2/projects/a%2Fb/memberships/%zz/extend",
      ["PATCH"],
      { project_id: "a%2Fb", user_id: "%zz" },
    ],
    [
      "/v2/projects/__proto__/memberships/constructor/extend",
      ["PATCH"],
      { project_id: "__proto__", user_id: "constructor" },
    ],
  ])("is %s", (path, methods, params) => {
    expect(allowedAt(path)).toEqual(methods)
    const found = Object.entries(all.match(path, "")?.params ?? {})
    // Those that the pattern does not have are empty.
    expect(Object.fromEntries(found.filter(([, value]) => value !== ""))).toEqual(params)
  })

  it.each([
    "",
    "/",
    "/v2",
    "/v2/",
    "/v2/projects",
    "/v2/projects/",
    "/v2/projects/p1",
    "/v2/projects/p1/memberships",
    "/v2/projects/p1/memberships/1001",
    "/v2/projects/p1/memberships/extend/",
    "/v2/projects/p1/memberships//extend",
    "/v2/projects//memberships/extend",
    "/v2/projects/p1/memberships/1/2/extend",
    "/v2/projects/p1/integrations/webhooks/",
    "/v2/projects/p1/integrations/webhooks/a/b",
    "/v2/projects/p1/integrations",
    "/V2/projects/p1/memberships/extend",
    "/v1/projects/p1/memberships/extend",
    "//v2/projects/p1/memberships/extend",
    "/v2//projects/p1/memberships/extend",
    "/v2/%70rojects/p1/memberships/extend",
    "/v2/projects/p1/../p1/memberships/extend",
    "/v2/projects/../memberships/extend",
    "/v2/projects/%2e%2E/memberships/extend",
    "/v2/projects/p1/integrations/webhooks/.",
  ])("is not %j", (path) => {
    expect(allowedAt(path)).toBeUndefined()
  })

  it("follows the base path, if there is one", () => {
    const path = "/v2/projects/p1/memberships/extend"
    expect(allowedAt(`/api/x${path}`, "/api/x")).toEqual(["PATCH"])
    expect(allowedAt(path, "/api/x")).toBeUndefined()
    expect(allowedAt(`/api${path}`, "/api/x")).toBeUndefined()
    expect(allowedAt(`/api/xy${path}`, "/api/x")).toBeUndefined()
  })
})
