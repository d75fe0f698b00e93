import { execFile, spawn } from "node:child_process"
import { mkdir, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:net"
import { createInterface } from "node:readline"
import { promisify } from "node:util"
import { send } from "@tenure/testing"
import { beforeAll, describe, expect, it } from "vitest"
import { type Example, findExamples, root } from "./examples.ts"

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

const freePort = async (): Promise<string> => {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve))
  const address = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  return String(typeof address === "object" ? address?.port : "")
}

describe("the examples of the documentation", () => {
  it("are there", () => {
    expect(examples.length).toBeGreaterThan(10)
  })

  it("are type-correct", { timeout: 120_000 }, async () => {
    const tsc = promisify(execFile)(`${root}/node_modules/.bin/tsc`, ["-p", folder])
    const faults = await tsc.then(() => "").catch(({ stdout }) => String(stdout))
    expect(faults).toBe("")
  })

  it("include one in the README that works as pasted", async () => {
    const PORT = await freePort()
    const program = spawn(process.execPath, ["-C", "@tenure/source", `${folder}/README.md-1.ts`], {
      env: { PATH: process.env["PATH"], PORT },
      stdio: ["ignore", "pipe", "inherit"],
    })
    try {
      const token = await new Promise<string>((resolve) => {
        createInterface(program.stdout).on("line", (line) => {
          const [found] = /tnr_[A-Za-z0-9_-]+/.exec(line) ?? []
          if (found !== undefined) resolve(found)
        })
      })
      const url = `http://127.0.0.1:${PORT}`
      const extended = await send(url, {
        method: "PATCH",
        path: "/v2/projects/p1/memberships/1001/extend",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify({ extend: "2099-01-01T00:00:00.000Z" }),
      })
      expect(extended.body).toMatchObject({ ok: true, total: 1 })
      expect((await fetch(url)).status).toBe(200)
    } finally {
      program.kill()
    }
  })
})
