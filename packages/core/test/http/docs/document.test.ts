import { fileURLToPath } from "node:url"
import { expect, it } from "vitest"
import { openApi } from "../../../src/openapi/document.ts"

const path = fileURLToPath(new URL("../../../src/http/docs/document.ts", import.meta.url))

it("the document that servers show is the one of the schemas", async () => {
  const text = `/**
 * The OpenAPI document, printed so that servers need not load schemas to show it. \`npm run generate\`
 * writes this module.
 */

import type { Document } from "./OpenApi.ts"

/** The OpenAPI document of the whole API, for a server that has it at its root. */
export const document: Document = ${JSON.stringify(openApi(), null, 2)}
`
  await expect(text).toMatchFileSnapshot(path)
})
