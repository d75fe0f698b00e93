import * as Tenure from "@tenure/core/Tenure"
import { type ConnectionOptions, postgres } from "@tenure/postgres"
import { expect, inject, it } from "vitest"

const url = inject("databaseUrl")

/** Options as plain JavaScript may have them. */
const untyped = (options: object): ConnectionOptions => JSON.parse(JSON.stringify(options))

it.each([
  [{ url: "" }, "url"],
  [{}, "url"],
  [{ url: "localhost/secret" }, "url"],
  [{ url, maxConnections: 0 }, "maxConnections"],
  [{ url, schema: "a b" }, "schema"],
  [{ url, migrate: "no" }, "migrate"],
  [{ url, retention: "for ever" }, "retention"],
  [{ url, shema: "mine" }, "shema"],
])("options that are wrong are refused by name: %o", async (options, field) => {
  const refusal = await Tenure.make({ stores: postgres(untyped(options)) }).catch(
    (reason: unknown) => reason,
  )
  expect(refusal).toMatchObject({ _tag: "InvalidInput", field })
  expect(String(refusal)).not.toContain("secret")
})
