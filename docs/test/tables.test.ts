/** Tables on pages have what the sources have. */

import { createClient } from "@tenure/client"
import {
  type ApiErrorTag,
  type ApiFailure,
  apiErrors,
  describeApiError,
  routes,
} from "@tenure/core/internal"
import { maxWebhookUrlLength } from "@tenure/core/transport"
import { describe, expect, it } from "vitest"
import { read } from "./examples.ts"

/** The cells in a page's table rows that start like `start`, without backticks. */
const rowsOf = (page: string, start: RegExp): ReadonlyArray<ReadonlyArray<string>> =>
  read(`docs/${page}`)
    .split("\n")
    .filter((line) => start.test(line))
    .map((line) =>
      line
        .replaceAll("`", "")
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )

/** The header fields for errors whose fields depend on the error. */
const variable: Partial<Record<ApiErrorTag, ApiFailure>> = {
  MethodNotAllowed: describeApiError({ _tag: "MethodNotAllowed", allow: ["GET"] }),
  RateLimited: describeApiError({ _tag: "RateLimited", retryAfter: 1 }),
}

describe("the tables of the documentation", () => {
  it("list the errors of the API with their header fields", () => {
    const documented = rowsOf("http-api.md", /^\| \d{3} /).map((row) => row.slice(0, 3))
    const entries: Readonly<Record<string, { status: number; code: string; headers?: object }>> = {
      ...apiErrors,
      ...variable,
    }
    const errors = Object.values(entries).map(({ code, headers = {}, status }) => [
      String(status),
      code,
      Object.keys(headers).join(", "),
    ])
    const table = "the table of errors in docs/http-api.md has those of core/src/api/errors.ts"
    expect(new Set(documented.map(String)), table).toEqual(new Set(errors.map(String)))
    expect(new Set(documented.map(String)).size).toBe(documented.length)
  })

  it("list the routes of the API", () => {
    const documented = rowsOf("http-api.md", /^\| `[A-Z]+` /)
    const ownRoutes = Object.values(routes).map(({ method, pattern }) => [method, pattern])
    const table = "the table of routes in docs/http-api.md has the order of core/src/api"
    expect(documented, table).toEqual(ownRoutes)
  })
})

it("the README of the client has calls that the client has", () => {
  const client = createClient({ baseUrl: "http://localhost" })
  const readme = read("packages/client/README.md")
  const calls = [...readme.matchAll(/\bclient\.([a-z]\w*)\.(\w+)\(/g)].map(([, ...path]) => path)
  expect(calls.length).toBeGreaterThan(30)
  for (const path of calls) expect(client).toHaveProperty(path, expect.any(Function))
})

it("the page of webhooks has the maximum length of a URL", () => {
  const page = read("docs/webhooks.md")
  expect(page).toContain(`at most ${maxWebhookUrlLength.toLocaleString("en")} characters`)
})
