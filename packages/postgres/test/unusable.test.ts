/** What an operator reads when the database cannot be used. */

import { createTenure } from "@tenure/core"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { describe, expect, inject, it } from "vitest"
import { explain } from "../src/connection/errors.ts"
import { postgres } from "../src/index.ts"

const changed = (change: (url: URL) => void): string => {
  const url = new URL(inject("databaseUrl"))
  change(url)
  return String(url)
}

describe("the error of a database that cannot be used says why, without the password:", () => {
  it.each([
    ["a wrong password", (url: URL) => (url.password = "hidden"), /password authentication failed/],
    [
      "no such database",
      (url: URL) => (url.pathname = "/nothing"),
      /database "nothing" does not exist/,
    ],
    ["no password", (url: URL) => (url.password = ""), /password/],
    ["no server", (url: URL) => (url.port = "1"), /ECONNREFUSED .*:1$/],
    ["no such host", (url: URL) => (url.host = "no-such-host.invalid"), /no-such-host\.invalid/],
  ])("%s", async (_name, change, message) => {
    const url = changed(change)
    const error: unknown = await createTenure({ stores: postgres({ url }) }).catch(
      (reason: unknown) => reason,
    )
    expect(error).toMatchObject({ _tag: "DatabaseUnusable" })
    expect(String(error)).toMatch(/: The database cannot be used: /)
    expect(String(error)).toMatch(message)
    expect(String(error)).not.toContain("hidden")
  })
})

describe("an explanation", () => {
  const errorOf = (cause: unknown) =>
    new SqlError({ reason: new ConnectionError({ cause, message: "Failed to connect" }) })
  const coded = (message: string, code: string) => Object.assign(new Error(message), { code })

  it.each([
    [coded("certificate has expired", "CERT_HAS_EXPIRED"), "certificate has expired"],
    [
      coded("unable to verify the first certificate", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
      /^unable to verify the first certificate \(.*sslrootcert.*\)$/,
    ],
    [
      new AggregateError([
        coded("connect ECONNREFUSED ::1:1", ""),
        coded("connect ECONNREFUSED 127.0.0.1:1", ""),
      ]),
      "connect ECONNREFUSED ::1:1, connect ECONNREFUSED 127.0.0.1:1",
    ],
    [new Error("outer", { cause: new Error("inner") }), "inner"],
    ["text", "text"],
  ])("of %s", (cause, expected) => {
    expect(explain(errorOf(cause))).toMatch(expected)
  })
})
