import { pathOf } from "@tenure/core/ApiRequest"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import * as Route from "../src/internal/route.ts"

const methodsOf = (path: string, basePath = ""): ReadonlyArray<string> | undefined => {
  const route = Route.match(path, basePath)
  return route && Object.keys(route.operations)
}

describe("a path of the API", () => {
  it.each([
    ["/v2/projects/p1/memberships/1001/extend", ["PATCH"], "p1", "1001"],
    ["/v2/projects/p1/memberships/extend", ["PATCH"], "p1", ""],
    ["/v2/projects/p1/memberships/extend/extend", ["PATCH"], "p1", "extend"],
    ["/v2/projects/p1/integrations/webhooks", ["GET", "POST"], "p1", ""],
    ["/v2/projects/p1/integrations/webhooks/w", ["DELETE"], "p1", "w"],
    ["/v2/projects/a%2Fb/memberships/%zz/extend", ["PATCH"], "a%2Fb", "%zz"],
    [
      "/v2/projects/__proto__/memberships/constructor/extend",
      ["PATCH"],
      "__proto__",
      "constructor",
    ],
  ])("is %s", (path, methods, projectId, id) => {
    expect(methodsOf(path)).toEqual(methods)
    expect(Route.match(path, "")).toMatchObject({ projectId, id })
  })

  it.each([
    "",
    "/",
    "/v2",
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
    "/v2/%70rojects/p1/memberships/extend",
    "/v2/projects/p1/../p1/memberships/extend",
    "/v2/projects/../memberships/extend",
    "/v2/projects/%2e%2E/memberships/extend",
    "/v2/projects/p1/integrations/webhooks/.",
  ])("is not %s", (path) => {
    expect(methodsOf(path)).toBeUndefined()
  })

  it("comes after the base path, where there is one", () => {
    const path = "/v2/projects/p1/memberships/extend"
    expect(methodsOf(`/api/x${path}`, "/api/x")).toEqual(["PATCH"])
    expect(methodsOf(path, "/api/x")).toBeUndefined()
    expect(methodsOf(`/api${path}`, "/api/x")).toBeUndefined()
    expect(methodsOf(`/api/xy${path}`, "/api/x")).toBeUndefined()
  })

  it("is found or not in any text whatever, and nothing throws", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.webPath(), (text, path) => {
        Route.match(text, "")
        Route.match(`/v2/projects${path}`, "")
      }),
    )
  })
})

describe("the path of a request target", () => {
  it.each([
    ["/a/b", "/a/b"],
    ["/a/b?c=/d", "/a/b"],
    ["/a?b?c", "/a"],
    ["/a#b", "/a"],
    ["/?", "/"],
    ["http://host:80/a/b?c", "/a/b"],
    ["http://host", "/"],
    ["http://host?a", "/"],
    ["HTTPS://host/a", "/a"],
    ["http://[::1]:80/a", "/a"],
    // What is no plain authority is no path either.
    ["http://user@host/a", "http://user@host/a"],
    ["http://x;/a", "http://x;/a"],
    ["http://x'/a", "http://x'/a"],
    ["http://x:y:z/a", "http://x:y:z/a"],
    ["javascript://x/a", "javascript://x/a"],
    ["//host/a", "//host/a"],
    ["*", "*"],
    ["host:443", "host:443"],
    ["", "/"],
  ])("of %j is %j", (target, path) => {
    expect(pathOf(target)).toBe(path)
  })
})
