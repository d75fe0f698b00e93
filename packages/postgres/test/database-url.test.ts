import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import { databaseUrlOption, toClientConfig } from "../src/connection/url.ts"

const configOf = (url: string) => Effect.runPromise(toClientConfig(url, "url"))

const problemOf = (url: string): string | undefined => {
  const result = databaseUrlOption.read(url, "url")
  return Result.isFailure(result) ? result.failure.message : undefined
}

describe("connections are encrypted", () => {
  it.each([
    "postgres://user:hidden@db.example/app",
    "postgresql://db.example",
    "postgres://10.0.0.1/app",
    "postgres://[fd00::1]/app",
    "postgres://localhost.example/app",
    "postgres://127.0.0.1.example/app",
    "postgres:///app?host=db.example",
    "postgres://user:with,comma@db.example/app,b",
    "postgres://localhost/app?host=db.example",
    "postgres://localhost/app?sslmode=require",
    "postgres://localhost/app?sslmode=verify-ca",
    "postgres://localhost/app?sslmode=verify-full",
  ])("to %s", async (url) => {
    const config = await configOf(url)
    expect(config.ssl).toBe(true)
    expect(config.url && Redacted.value(config.url)).toBe(url)
  })

  it.each([
    "postgres://user:hidden@db.example/app?sslmode=disable",
    "postgres://localhost/app",
    "postgres://127.0.0.1:5433/app?application_name=mine",
    "postgres://127.1.2.3/app",
    "postgres://[::1]/app",
    "postgres:///app",
    "postgres:///app?host=/run/postgresql",
    "postgres://%2Frun%2Fpostgresql/app",
  ])("not to %s", async (url) => {
    expect(await configOf(url)).toMatchObject({ ssl: false })
  })
})

describe("a URL is refused, and not shown,", () => {
  it.each([
    ["postgres://user:hidden@host/app?sslmode=prefer", /sslmode=require/],
    ["postgres://user:hidden@host/app?sslmode=allow", /sslmode=require/],
    ["postgres://user:hidden@host/app?sslmode=", /sslmode=require/],
    ["postgres://user:hidden@host/app?sslmode=disable&sslrootcert=a", /no sslrootcert/],
    ["postgres://user:hidden@host/app?sslmod=require", /no other parameters/],
    ["postgres://user:hidden@host/app?sslcert=a", /no other parameters/],
    ["postgres://user:hidden@host/app?sslmode=disable&sslmode=require", /each parameter once/],
    ["postgres://user:1?hidden@host/app", /no other parameters/],
    ["postgres://user:hid/den@host/app", /valid URL/],
    ["postgres://user:hid#den@host/app", /valid URL/],
    ["postgres://user:hidden@one:5432,other:5432/app", /one host/],
    ["postgres://one,other/app?target_session_attrs=read-write", /one host/],
    ["postgres:///app?host=one,other", /one host/],
    ["mysql://user:hidden@host/app", /PostgreSQL URL/],
    ["", /PostgreSQL URL/],
  ])("that is %s", (url, problem) => {
    expect(problemOf(url)).toMatch(problem)
    expect(problemOf(url)).not.toMatch(/hid|den/)
  })

  it("whose certificates cannot be read", async () => {
    const url = "postgres://user:hidden@host/app?sslrootcert=/does/not/exist.pem"
    expect(problemOf(url)).toBeUndefined()
    const error = await Effect.runPromise(Effect.flip(toClientConfig(url, "url")))
    expect(error.message).toMatch(/^url has an sslrootcert .*ENOENT.*exist\.pem/)
    expect(error.message).not.toContain("hidden")
  })
})
