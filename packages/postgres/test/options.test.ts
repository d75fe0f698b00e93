import { PgClient } from "@effect/sql-pg"
import { createTenure } from "@tenure/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { expect, inject, it } from "vitest"
import { type ConnectionOptions, migrate, postgres, postgresLayer } from "../src/index.ts"

const url = inject("databaseUrl")

/** Options as a program in JavaScript may pass them. */
const untyped = (options: object): ConnectionOptions => JSON.parse(JSON.stringify(options))

it.each([
  [{ url: "" }, "url"],
  [{}, "url"],
  [{ url: "localhost/secret" }, "url"],
  [{ url, maxConnections: 0 }, "maxConnections"],
  [{ url, schema: "a b" }, "schema"],
  [{ url, migrate: "no" }, "migrate"],
  [{ url, failedRetention: "for ever" }, "failedRetention"],
  [{ url, auditRetention: "1 hour" }, "auditRetention"],
  [{ url, shema: "mine" }, "shema"],
])("an invalid option fails with InvalidInput and its name: %o", async (options, field) => {
  const refusal = await createTenure({ stores: postgres(untyped(options)) }).catch(
    (reason: unknown) => reason,
  )
  expect(refusal).toMatchObject({ _tag: "InvalidInput", field })
  expect(String(refusal)).not.toContain("secret")
})

it("no options at all are a clear error", async () => {
  // @ts-expect-error: plain JavaScript does not notice.
  const stores = postgres()
  await expect(createTenure({ stores })).rejects.toMatchObject({
    _tag: "InvalidInput",
    field: "url",
    message: expect.stringContaining("postgres://user:password@host:5432/database"),
  })
})

it("unknown options on a client of the host's are refused by name", async () => {
  const shema = JSON.parse('{ "shema": "mine" }')
  const client = PgClient.layer({ url: Redacted.make(url) })
  const failures = Effect.all([
    Effect.flip(migrate(shema)),
    Effect.flip(Effect.scoped(Layer.build(postgresLayer(shema)))),
  ])
  for (const failure of await Effect.runPromise(Effect.provide(failures, client))) {
    expect(failure).toMatchObject({ _tag: "InvalidInput", field: "shema" })
  }
})
