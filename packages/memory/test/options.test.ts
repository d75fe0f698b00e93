import { createTenure } from "@tenure/core"
import { expect, it } from "vitest"
import { memory } from "../src/index.ts"

it.each([
  ['{"histroy":5}', "histroy"],
  ['{"history":0}', "history"],
  ['{"maxBuckets":1.5}', "maxBuckets"],
  ["null", "options"],
])("the options %s are refused by name", async (options, field) => {
  const made = createTenure({ stores: memory(JSON.parse(options)) })
  await expect(made).rejects.toMatchObject({ _tag: "InvalidInput", field })
})
