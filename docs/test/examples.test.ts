import { execFile } from "node:child_process"
import { mkdir, rm, writeFile } from "node:fs/promises"
import { promisify } from "node:util"
import * as Tenure from "@tenure/core/Tenure"
import { memory } from "@tenure/memory"
import { serve } from "@tenure/node-http"
import { freePort, send } from "@tenure/testing"
import { beforeAll, describe, expect, inject, it, vi } from "vitest"
import { type Example, findExamples, root } from "./examples.ts"
import { freshDatabase, run, start } from "./programs.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

const folder = `${root}/docs/.examples`

const tsconfig = {
  extends: "../../tsconfig.base.json",
  compilerOptions: {
    lib: ["ES2023"],
    types: ["node"],
    composite: false,
    declaration: false,
    declarationMap: false,
    noEmit: true,
    // What an example declares is for its reader.
    noUnusedLocals: false,
  },
}

let examples: ReadonlyArray<Example>

beforeAll(async () => {
  examples = await findExamples()
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder)
  const files = examples.map(({ name }) => `${name}.ts`)
  await writeFile(`${folder}/tsconfig.json`, JSON.stringify({ ...tsconfig, files }))
  await Promise.all(examples.map(({ code, name }) => writeFile(`${folder}/${name}.ts`, code)))
})

describe("the examples of the documentation", () => {
  it("are there", () => {
    expect(examples.length).toBeGreaterThan(10)
  })

  it("are type-correct", async () => {
    const tsc = promisify(execFile)(`${root}/node_modules/.bin/tsc`, ["-p", folder])
    const faults = await tsc.then(() => "").catch(({ stdout }) => String(stdout))
    expect(faults).toBe("")
  })
})

const extendAll = (token: string, mount = "") => ({
  method: "PATCH",
  path: `${mount}/v2/projects/p1/memberships/extend`,
  headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
  body: JSON.stringify({ extend: "2099-01-01T00:00:00.000Z" }),
})

describe("the example of a README works as pasted:", () => {
  it.each([
    { name: "README.md", mount: "", ownStatus: 200 },
    { name: "packages-express-README.md", mount: "/members", ownStatus: 200 },
    { name: "packages-fastify-README.md", mount: "/members", ownStatus: 200 },
    { name: "packages-node-http-README.md", mount: "", ownStatus: 404 },
  ])("$name", async ({ mount, name, ownStatus }) => {
    const port = await freePort()
    const { stop, token } = await start(`${folder}/${name}-1.ts`, port)
    try {
      const url = `http://127.0.0.1:${port}`
      expect((await send(url, extendAll(token, mount))).body).toMatchObject({
        ok: true,
      })
      expect((await fetch(url)).status).toBe(ownStatus)
    } finally {
      stop()
    }
  })

  it("packages-fetch-README.md", async () => {
    vi.spyOn(console, "log").mockReturnValue()
    const { default: app } = await import(`${folder}/packages-fetch-README.md-1.ts`)
    const { path, ...init } = extendAll("nobody's")
    expect((await app.fetch(new Request(`http://localhost${path}`, init))).status).toBe(401)
    expect(await (await app.fetch(new Request("http://localhost/"))).text()).toContain("backend")
  })

  it("packages-client-README.md", async () => {
    const port = await freePort()
    const { stop, token } = await start(`${folder}/README.md-1.ts`, port)
    try {
      const printed = await run(`${folder}/packages-client-README.md-1.ts`, {
        TENURE_URL: `http://127.0.0.1:${port}`,
        TENURE_TOKEN: token,
      })
      expect(printed).toBe("extended until 2099-01-01T00:00:00.000Z\n")
    } finally {
      stop()
    }
  })

  it("packages-client-README.md, its list and its import of a CSV file", async () => {
    const tenure = await Tenure.make({ stores: memory() })
    await tenure.memberships.createProject("p1")
    const { token } = await tenure.apiKeys.issue({ projects: ["p1"], role: "operator" })
    const server = await serve(tenure)
    const variables = { TENURE_URL: server.url, TENURE_TOKEN: token }
    const rows = ["1001,2001-01-01T00:00:00.000Z", "1002,2099-01-01T00:00:00.000Z"]
    const file = `${folder}/members.csv`
    try {
      await writeFile(file, ["user_id,end_date", ...rows, ""].join("\r\n"))
      const program = `import { importCsv } from "./packages-client-README.md-3.ts"
        await importCsv("${file}", "p1")
        await importCsv("${file}", "p1")`
      await writeFile(`${folder}/importing.ts`, program)
      await run(`${folder}/importing.ts`, variables)
      expect(await tenure.memberships.history({ projectId: "p1" })).toHaveLength(2)
      const printed = await run(`${folder}/packages-client-README.md-2.ts`, variables)
      expect(printed).toBe("1001 ended 2001-01-01T00:00:00.000Z\n")
    } finally {
      await server.close()
      await tenure.close()
    }
  })

  it.each(["packages-core-README.md", "packages-memory-README.md"])("%s", async (name) => {
    expect(await run(`${folder}/${name}-1.ts`)).not.toBe("")
  })

  it("packages-postgres-README.md", async () => {
    const DATABASE_URL = await freshDatabase(inject("databaseUrl"), "readme")
    expect(await run(`${folder}/packages-postgres-README.md-1.ts`, { DATABASE_URL })).toBe("[]\n")
  })
})
