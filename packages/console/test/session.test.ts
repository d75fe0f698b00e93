/** What the page says when it cannot sign in. */

import { afterEach, beforeAll, expect, it, vi } from "vitest"

let signIn: (token: string) => Promise<void>

beforeAll(async () => {
  const script = { src: "http://127.0.0.1/console/app.js" }
  vi.stubGlobal("document", { querySelector: () => script })
  ;({ signIn } = await import("../page/lib/api.ts"))
})

afterEach(() => void vi.unstubAllGlobals())

/** Signs in at a server, and returns what is said. */
const said = (answer: () => Promise<Response>): Promise<unknown> => {
  vi.stubGlobal("fetch", answer)
  return signIn("token").then(
    () => "signed in",
    (fault: unknown) => (fault instanceof Error ? fault.message : fault),
  )
}

const html = "<html><h1>502 Bad Gateway</h1></html>"

it.each([
  { status: 502, body: html },
  { status: 405, body: "The method is not allowed.\n" },
  { status: 503, body: "" },
  { status: 500, body: `"no object"` },
  // A page that asks for a password, from whoever is between.
  { status: 200, body: html },
])("names the status of an answer that is not the console's: $status", async ({ body, status }) => {
  const sentence = await said(async () => new Response(body, { status }))
  expect(sentence).toContain(`The answer with status ${status} is not the console's.`)
  expect(sentence).toContain("try again")
})

it("says that the server cannot be reached", async () => {
  expect(await said(() => Promise.reject(new TypeError("fetch failed")))).toMatch(
    /^The server cannot be reached\. /,
  )
})

it("says what the console says, and nothing if it admits the user", async () => {
  const refusal = JSON.stringify({ ok: false, error: { message: "Only operators." } })
  expect(await said(async () => new Response(refusal, { status: 403 }))).toBe("Only operators.")
  expect(await said(async () => new Response("{}"))).toBe("signed in")
})
