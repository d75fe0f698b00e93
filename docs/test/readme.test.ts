/** The first program in README.md, as pasted: it serves the API. */

import { freePort, send } from "@tenure/testing/conformance"
import { expect, it, onTestFinished } from "vitest"
import { examplesIn, writeExamples } from "./examples.ts"
import { start } from "./programs.ts"

it("extends all memberships with the token that it prints", async () => {
  const folder = await writeExamples("readme", examplesIn("README.md"))
  const port = await freePort()
  const { stop, token } = await start(`${folder}/README.md-1.ts`, port)
  onTestFinished(stop)
  const url = `http://127.0.0.1:${port}`
  expect((await fetch(url)).status).toBe(200)
  const { body } = await send(url, {
    method: "PATCH",
    path: "/v2/projects/p1/memberships/extend",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ extend: "2099-01-01T00:00:00.000Z" }),
  })
  expect(body).toMatchObject({ ok: true })
})
