/** Options that are refused by name. */

import { PgClient } from "@effect/sql-pg"
import { createTenure } from "@tenure/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { expect, inject, it } from "vitest"
import { type ConnectionOptions, migrate, postgres, postgresLayer } from "../src/index.ts"

const url = inject("databaseUrl")

/** Options as a program in JavaScript may pass them. */
const untyped = (options?: object): ConnectionOptions =>
  JSON.parse(JSON.stringify({ options })).options

it.each([
  [undefined, "url", "postgres://user:password@host:5432/database"],
  [{}, "url"],
  [{ url: "" }, "url"],
  [{ url: "localhost/secret" }, "url"],
  [{ url, maxConnections: 0 }, "maxConnections"],
  [{ url, schema: "a b" }, "schema"],
  [{ url, migrate: "no" }, "migrate"],
  [{ url, failedRetention: "for ever" }, "failedRetention"],
  [{ url, auditRetention: "1 hour" }, "auditRetention"],
  [{ url, shema: "mine" }, "shema"],
] satisfies ReadonlyArray<readonly [object | undefined, string, string?]>)(
  "%o is refused with the name of the option",
  async (options, field, message = "") => {
    const refusal: unknown = await createTenure({ stores: postgres(untyped(options)) }).catch(
      (reason: unknown) => reason,
    )
    expect(refusal).toMatchObject({
      _tag: "InvalidInput",
      field,
      message: expect.stringContaining(message),
    })
    expect(String(refusal)).not.toContain("secret")
  },
)

it("unknown options on a client of the host's are refused, too", async () => {
  const shema = JSON.parse('{ "shema": "mine" }')
  const failures = Effect.all([
    Effect.flip(migrate(shema)),
    Effect.flip(Effect.scoped(Layer.build(postgresLayer(shema)))),
  ]).pipe(Effect.provide(PgClient.layer({ url: Redacted.make(url) })))
  for (const failure of await Effect.runPromise(failures))
    expect(failure).toMatchObject({ _tag: "InvalidInput", field: "shema" })
})
