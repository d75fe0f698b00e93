/** Clients that are generated from the document compile, and know the types of operations. */

import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createClient } from "@hey-api/openapi-ts"
import { openApi } from "@tenure/core/openapi"
import openapiTypescript from "openapi-typescript"
import { astToString } from "openapi-typescript"
import { type Options, generate } from "orval"
import ts from "typescript"
import { afterAll, beforeAll, expect, it } from "vitest"

/** The document as the generators get it; some of them change it. */
const copy = () => JSON.parse(JSON.stringify(openApi()))

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tenure-clients-"))
})

afterAll(() => rm(folder, { recursive: true }))

/** Compiles a program, and returns what is wrong with it and with what it imports. */
const problemsOf = async (program: string): Promise<ReadonlyArray<string>> => {
  const path = join(folder, "program.ts")
  await writeFile(path, program)
  const compiled = ts.createProgram([path], {
    target: ts.ScriptTarget.ES2023,
    lib: ["lib.es2023.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
    types: [],
    module: ts.ModuleKind.Preserve,
    strict: true,
    noUncheckedIndexedAccess: true,
    skipDefaultLibCheck: true,
    noEmit: true,
  })
  return ts
    .getPreEmitDiagnostics(compiled)
    .map(({ file, messageText }) =>
      [file?.fileName, ts.flattenDiagnosticMessageText(messageText, "\n")].join(": "),
    )
}

it("of openapi-typescript", async () => {
  await writeFile(join(folder, "types.ts"), astToString(await openapiTypescript(copy())))
  expect(
    await problemsOf(`
      import type { components, operations } from "./types"
      type Extend = operations["memberships.extend"]
      export const body: Extend["requestBody"]["content"]["application/json"] = { extend: 0 }
      export const endOf = (of: components["schemas"]["Membership"]): string => of.end_date
      // @ts-expect-error – the date is no date
      export const wrong: typeof body = { extend: false }
    `),
  ).toEqual([])
})

it("of orval", async () => {
  const target = join(folder, "orval.ts")
  const options: Options = { input: { target: copy() }, output: { target, client: "fetch" } }
  await generate(options, undefined, { logLevel: "error" })
  expect(
    await problemsOf(`
      import { membershipsExtend } from "./orval"
      export const extend = async (): Promise<string | undefined> => {
        const { data } = await membershipsExtend("demo", "1001", { extend: 0 })
        return "data" in data ? data.data.new_end_date : undefined
      }
      // @ts-expect-error – the date is no date
      export const wrong = () => membershipsExtend("demo", "1001", { extend: false })
    `),
  ).toEqual([])
})

it("of Hey API", async () => {
  const path = join(folder, "hey-api")
  await createClient({ input: copy(), output: path, logs: { level: "silent", file: false } })
  expect(
    await problemsOf(`
      import { membershipsExtend } from "./hey-api"
      const path = { project_id: "demo", user_id: "1001" }
      export const extend = async (): Promise<string | undefined> => {
        const { data } = await membershipsExtend({ path, body: { extend: 0 } })
        return data?.data.new_end_date
      }
      // @ts-expect-error – the date is no date
      export const wrong = () => membershipsExtend({ path, body: { extend: false } })
    `),
  ).toEqual([])
})
