/** What an operator reads when the database cannot be used. */

import http from "node:http"
import net from "node:net"
import { inspect } from "node:util"
import { createTenure } from "@tenure/core"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { describe, expect, inject, it } from "vitest"
import { explain } from "../src/connection/errors.ts"
import { placeOf } from "../src/connection/url.ts"
import { postgres } from "../src/index.ts"

/** Returns the error for a database that cannot be used, which must be brief and not show the password. */
const errorAt = async (url: string): Promise<string> => {
  const error: unknown = await createTenure({ stores: postgres({ url }) }).catch(
    (reason: unknown) => reason,
  )
  expect(error).toMatchObject({ _tag: "DatabaseUnusable" })
  expect(String(error)).toContain(`The database at ${placeOf(url)} cannot be used: `)
  expect(String(error)).not.toContain("hidden")
  const printed = inspect(error)
  expect(printed).not.toMatch(/effect/i)
  expect(printed.split("\n").length).toBeLessThan(30)
  return String(error)
}

describe("the error of a database that cannot be used says why, without the password:", () => {
  it.each([
    [
      "a wrong password",
      { password: "hidden" },
      /password authentication failed .* \(correct the user and password in the URL\)$/,
    ],
    ["no password", { password: "" }, /password.*\(correct the user and password in the URL\)$/],
    [
      "no such database",
      { pathname: "/nothing" },
      /database "nothing" does not exist \(create the database, or correct its name in the URL\)$/,
    ],
    ["no server", { port: "1" }, /ECONNREFUSED .*:1 \(start PostgreSQL there, or/],
    [
      "no such host",
      { host: "no-such-host.invalid" },
      /no-such-host\.invalid \(correct the host in the URL\)$/,
    ],
  ])("%s", async (_name, change, message) => {
    const url = Object.assign(new URL(inject("databaseUrl")), change)
    expect(await errorAt(String(url))).toMatch(message)
  })

  it.each([
    ["speaks HTTP", () => http.createServer()],
    ["closes connections", () => net.createServer((socket) => socket.end())],
    ["speaks first", () => net.createServer((socket) => socket.write("220 a.example ESMTP\r\n"))],
  ])("a program that %s", async (_name, make) => {
    const server = make()
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const address = server.address()
    const port = typeof address === "object" ? address?.port : undefined
    const error = await errorAt(`postgres://user:hidden@127.0.0.1:${port}/app`)
    server.close()
    expect(error).toContain("may not be PostgreSQL: check the host and port in the URL)")
  })
})

describe("an explanation", () => {
  const coded = (message: string, code: string) => Object.assign(new Error(message), { code })

  it.each([
    [coded("certificate has expired", "CERT_HAS_EXPIRED"), "certificate has expired"],
    [
      coded("unable to verify the first certificate", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
      /^unable to verify the first certificate \(.*sslrootcert.*\)$/,
    ],
    [
      new AggregateError([new Error("connect ECONNREFUSED ::1:1"), new Error("connect EPERM")]),
      "connect ECONNREFUSED ::1:1, connect EPERM",
    ],
    [new Error("outer", { cause: new Error("inner") }), "inner"],
    [
      coded("no pg_hba.conf entry for host", "28000"),
      /\(correct the user in the URL, or permit it/,
    ],
    [coded("connect EHOSTUNREACH 10.0.0.1:5432", "EHOSTUNREACH"), /firewall/],
    [new Error("Connection timed out"), /firewall/],
    ["text", "text"],
  ])("of %s", (cause, expected) => {
    const reason = new ConnectionError({ cause, message: "Failed to connect" })
    expect(explain(new SqlError({ reason }))).toMatch(expected)
  })
})
