/** Database URLs. */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import { databaseUrlOption, placeOf, toClientConfig } from "../src/connection/url.ts"

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
    // As providers print them.
    "postgresql://u:p@ep-a-pooler.eu.aws.neon.tech/neondb?sslmode=require&channel_binding=require",
    "postgresql://postgres.ref:p@aws-0-eu.pooler.supabase.com:6543/postgres?pgbouncer=true",
    "postgres://postgres.ref:p@aws-0-eu.pooler.supabase.com:6543/postgres?sslmode=require&supa=base-pooler.x",
    "postgres://default:p@ep-a.vercel-storage.com/v?pgbouncer=true&connect_timeout=15&sslmode=require",
    "postgres://u:p@a.horizon.psdb.cloud:6432/p?sslnegotiation=direct&sslmode=verify-full&sslrootcert=system",
    "postgresql://u:p@a.cockroachlabs.cloud:26257/d?sslmode=verify-full&options=--cluster%3Da-1",
    "postgres://tsdbadmin:p@a.b.tsdb.cloud.timescale.com:33339/tsdb?sslmode=require",
    "postgresql://doadmin:p@a.db.ondigitalocean.com:25060/defaultdb?sslmode=require",
    "postgres://u%40server:p@server.postgres.database.azure.com:5432/postgres?sslmode=require",
    "postgres://u:p@db.example/app?ssl=true&target_session_attrs=read-write&gssencmode=disable",
    "postgres://localhost/app?ssl=true",
  ])("to %s", async (url) => {
    const config = await configOf(url)
    expect(config).toMatchObject({ ssl: true, applicationName: "tenure" })
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
    "postgres://u:p@localhost/app?host=/cloudsql/p:r:i&sslmode=require",
    "postgres://u:p@localhost/app?host=/cloudsql/p:r:i&sslmode=verify-full&sslrootcert=/a.pem",
  ])("not to %s", async (url) => {
    expect(await configOf(url)).toMatchObject({ ssl: false })
  })
})

it.each([
  [
    "postgresql://u:p@/app?host=/cloudsql/p:r:i",
    "postgresql://u:p@localhost/app?host=/cloudsql/p:r:i",
  ],
  ["postgres://u:p@?host=/run", "postgres://u:p@localhost?host=/run"],
  ["postgres://u@:6000/app", "postgres://u@localhost:6000/app"],
  ["postgres://:6000/app", "postgres://localhost:6000/app"],
  ["postgres:///app", "postgres:///app"],
])("the host is this machine if there is none, in %s", async (url, withHost) => {
  const config = await configOf(url)
  expect(config.ssl).toBe(false)
  expect(config.url && Redacted.value(config.url)).toBe(withHost)
  expect(Result.isSuccess(databaseUrlOption.read(url, "url"))).toBe(true)
})

it("a URL may name the program, and say how long a connection may take to open", async () => {
  const url = "postgres://localhost/app?connect_timeout=3&fallback_application_name="
  expect(await configOf(`${url}shop`)).toMatchObject({
    applicationName: "shop",
    connectTimeout: Duration.seconds(3),
  })
  expect(await configOf(`${url}shop&application_name=mine`)).toMatchObject({
    applicationName: "mine",
  })
})

it.each([
  ["postgres://user:hidden@db/app", "db:5432"],
  ["postgres://user:hidden@[::1]:6000/app", "[::1]:6000"],
  ["postgres:///app?host=/run/postgresql", "/run/postgresql"],
  ["postgres:///app?host=db&port=6000", "db:6000"],
])("the place of the database is shown without the rest of %s", (url, place) => {
  expect(placeOf(url)).toBe(place)
})

describe("a URL is refused, and not shown,", () => {
  it.each([
    ["postgres://user:hidden@host/app?sslmode=prefer", /sslmode=require/],
    ["postgres://user:hidden@host/app?sslmode=allow", /sslmode=require/],
    ["postgres://user:hidden@host/app?sslmode=", /sslmode=require/],
    ["postgres://user:hidden@host/app?sslmode=disable&sslrootcert=a", /no sslrootcert/],
    ["postgres://user:hidden@host/app?sslmod=require", /no parameter sslmod,.*remove it/],
    ["postgres://user:hidden@host/app?sslcert=a", /no parameter sslcert:.*log in with a password/],
    ["postgres://user:hidden@host/app?schema=public", /no parameter schema:.*option schema/],
    ["postgres://user:hidden@host/app?connection_limit=1", /connection_limit:.*maxConnections/],
    ["postgres://user:hidden@host/app?uselibpqcompat=true", /uselibpqcompat:.*sslrootcert/],
    ["postgres://user:hidden@host/app?pool=true", /no parameter pool,.*remove it/],
    ["postgres://user:hidden@host/app?ssl=false", /ssl with this value:.*sslmode=disable/],
    [
      "postgres://user:hidden@host/app?target_session_attrs=standby",
      /target_session_attrs with this value/,
    ],
    ["postgres://user:hidden@host/app?sslaccept=accept_invalid_certs", /sslaccept with this value/],
    ["postgres://user:hidden@host/app?gssencmode=require", /gssencmode with this value/],
    ["postgres://user:hidden@host/app?connect_timeout=soon", /connect_timeout with this value/],
    ["postgres://user:hidden@host/app?channel_binding=requires", /channel_binding with this value/],
    ["postgres://u@host/app?channel_binding=require&sslmode=disable", /no channel_binding=require/],
    ["postgres://user:hidden@host/app?sslmode=no-verify", /sslmode=require/],
    ["postgres://user:hidden@host/app?sslmode=disable&sslmode=require", /each parameter once/],
    ["postgres://user:1?hidden@host/app", /no other parameters.*%3F/],
    ["postgres://user:100%hidden@host/app", /valid URL/],
    ["postgres://ho%st/app", /valid URL/],
    ["postgresql+psycopg://user:hidden@host/app", /begins with postgresql\+psycopg:\/\/$/],
    ["jdbc:postgresql://host/app?user=u&password=hidden", /begins with jdbc:postgresql:\/\/$/],
    ["prisma+postgres://accelerate/?api_key=hidden", /begins with prisma\+postgres:\/\/$/],
    ["host=db user=u password=hidden", /PostgreSQL URL.*another text/],
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
