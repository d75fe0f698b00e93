import { createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import fastify from "fastify"
import { expect, it } from "vitest"
import { membershipPlugin } from "../src/index.ts"

it.each([
  ['{"useFastifyIP":true}', "useFastifyIP"],
  ['{"useFastifyIp":"yes"}', "useFastifyIp"],
  ['{"authenticate":true}', "authenticate"],
])("the options %s are refused by name", async (options, field) => {
  const tenure = await createTenure({ stores: memory() })
  const app = fastify()
  const ready = app.register(membershipPlugin, { ...JSON.parse(options), tenure }).after()
  await expect(ready).rejects.toMatchObject({ _tag: "InvalidInput", field })
  await app.close()
  await tenure.close()
})

it("the options of register are Fastify's own", async () => {
  const tenure = await createTenure({ stores: memory() })
  const app = fastify()
  const own = { prefix: "/members", logLevel: "warn", logSerializers: {} } as const
  await app.register(membershipPlugin, { ...own, tenure })
  await app.close()
  await tenure.close()
})

it("a missing await is a clear error", async () => {
  const tenure = createTenure({ stores: memory() })
  const app = fastify()
  // @ts-expect-error: plain JavaScript does not notice.
  await expect(app.register(membershipPlugin, { tenure }).after()).rejects.toThrow(
    "tenure is a promise: write `await createTenure(…)`",
  )
  await app.close()
  await (await tenure).close()
})
