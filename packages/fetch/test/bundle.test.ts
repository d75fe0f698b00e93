import { fileURLToPath } from "node:url"
import * as Vm from "node:vm"
import { build } from "esbuild"
import { describe, expect, it } from "vitest"

const program = `
  import { createTenure } from "@tenure/core"
  import { fetchHandler } from "@tenure/fetch"
  import { memory } from "@tenure/memory"

  const list = async () => {
    const tenure = await createTenure({ stores: memory() })
    await tenure.memberships.createProject("p1")
    const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
    const url = "https://worker.example/v2/projects/p1/integrations/webhooks"
    const headers = { authorization: "Bearer " + token }
    const response = await fetchHandler(tenure)(new Request(url, { headers }))
    return response.text()
  }
  done(list())
`

/** Bundles the program for a runtime other than Node or a browser. Importing from `node:` fails. */
const bundle = () =>
  build({
    bundle: true,
    conditions: ["@tenure/source"],
    format: "iife",
    metafile: true,
    platform: "neutral",
    stdin: { contents: program, resolveDir: fileURLToPath(new URL(".", import.meta.url)) },
    target: "es2023",
    write: false,
  })

/** A worker runtime's globals. */
const workerGlobals = {
  AbortController,
  AbortSignal,
  Headers,
  Request,
  Response,
  TextDecoder,
  TextEncoder,
  URL,
  atob,
  btoa,
  clearTimeout,
  console,
  crypto,
  fetch,
  performance,
  queueMicrotask,
  setTimeout,
}

describe("a bundle of core, memory and fetch for a worker", () => {
  it("imports nothing", async () => {
    const { metafile, warnings } = await bundle()
    expect(warnings).toEqual([])
    expect(Object.values(metafile.outputs).flatMap(({ imports }) => imports)).toEqual([])
    const files = Object.keys(metafile.inputs).join("\n")
    expect(files).toContain("packages/core/src/http/handler.ts")
    expect(files).not.toContain("node-http")
  })

  it("runs without the globals of Node", async () => {
    const { outputFiles } = await bundle()
    const body = await new Promise((resolve) => {
      Vm.runInNewContext(outputFiles[0]?.text ?? "", { ...workerGlobals, done: resolve })
    })
    expect(JSON.parse(String(body))).toMatchObject({ ok: true, total: 0, data: [] })
  })
})
