import { expect, it } from "vitest"
import { root } from "./examples.ts"
import { variablesPage } from "./variables.ts"

it("the page of variables is what their definitions say", async () => {
  await expect(await variablesPage()).toMatchFileSnapshot(`${root}/docs/variables.md`)
})
