import * as Tenure from "@tenure/core/Tenure"
import { memory } from "@tenure/memory"
import { expect, it } from "vitest"

it.each([
  ['{"histroy":5}', "histroy"],
  ['{"history":0}', "history"],
  ['{"maxBuckets":1.5}', "maxBuckets"],
  ["null", "options"],
])("the options %s are refused by name", async (options, field) => {
  const made = Tenure.make({ stores: memory(JSON.parse(options)) })
  await expect(made).rejects.toMatchObject({ _tag: "InvalidInput", field })
})
