import { fileURLToPath } from "node:url"
import { openApi } from "@tenure/core/openapi"
import { expect, it } from "vitest"
import { printOperations } from "./printer.ts"

it("the operations are what the OpenAPI document says", async () => {
  const document = JSON.parse(JSON.stringify(openApi()))
  const path = fileURLToPath(new URL("../src/operations.ts", import.meta.url))
  await expect(await printOperations(document)).toMatchFileSnapshot(path)
})
