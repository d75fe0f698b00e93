import { describe, expect, it } from "vitest"
import { pathOf, queryOf } from "../../src/http/request.ts"

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
    // Anything but a plain authority is not removed.
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

describe("the query of a request target", () => {
  it.each([
    ["/a", ""],
    ["/a?", ""],
    ["/a?b=%20c", "b=%20c"],
    ["/a?b?c", "b?c"],
    ["/a?b#c", "b"],
    ["/a#b?c", ""],
    ["http://host?a", "a"],
    ["", ""],
  ])("of %j is %j", (target, query) => {
    expect(queryOf(target)).toBe(query)
  })
})
