import { createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { expect, it } from "vitest"
import { fetchHandler } from "../src/index.ts"

it.each([
  ['{"authentication":true}', "authentication"],
  ['{"authenticate":true}', "authenticate"],
  ["null", "options"],
])("the options %s are refused by name", async (options, field) => {
  const tenure = await createTenure({ stores: memory() })
  expect(() => fetchHandler(tenure, JSON.parse(options))).toThrow(
    expect.objectContaining({ _tag: "InvalidInput", field }),
  )
  await tenure.close()
})

it("a missing await is a clear error", async () => {
  const tenure = createTenure({ stores: memory() })
  // @ts-expect-error: plain JavaScript does not notice.
  expect(() => fetchHandler(tenure)).toThrow(
    new TypeError("tenure is a promise: write `await createTenure(…)`"),
  )
  // @ts-expect-error: plain JavaScript does not notice.
  expect(() => fetchHandler()).toThrow(TypeError)
  await (await tenure).close()
})
