import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import * as Setting from "../../src/base/setting.ts"
import { pageQuery, readQuery, ticketQuery } from "../../src/http/operation.ts"

const parameters = {
  ...pageQuery,
  state: Setting.optional(Setting.oneOf(["active", "expired"])),
  ticket: ticketQuery,
}

const read = (query?: string) => Effect.runSync(Effect.result(readQuery({ query }, parameters)))

const problemOf = (query: string) => {
  const result = read(query)
  return result._tag === "Failure" ? result.failure.message : undefined
}

describe("the query of a request", () => {
  it("has defaults for what is not sent", () => {
    const values = { limit: 100, after: undefined, state: undefined, ticket: undefined }
    expect(read()).toMatchObject({ success: values })
    expect(read("")).toMatchObject({ success: values })
  })

  it("is decoded", () => {
    expect(read("after=a%20b+c&limit=1000&state=expired&ticket=tkt_%2B")).toMatchObject({
      success: { limit: 1000, after: "a b c", state: "expired", ticket: "tkt_+" },
    })
  })

  it.each([
    ["limit=0", /^limit must be a whole number from 1 to 1,000/],
    ["limit=1001", /^limit /],
    ["limit=1e2", /^limit /],
    ["limit=", /^limit /],
    ["state=gone", /^state must be one of "active", "expired"/],
    ["state=active&state=active", /^state was sent more than once/],
    ["offset=1", /^offset is unknown/],
    ["__proto__=1", /^__proto__ is unknown/],
    ["constructor", /^constructor is unknown/],
  ])("is refused as %s, naming the parameter", (query, message) => {
    expect(problemOf(query)).toMatch(message)
  })
})
