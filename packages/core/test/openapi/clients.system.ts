/** Clients generated from the document compile, have the operations' types, and work with a server. */

import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createClient } from "@hey-api/openapi-ts"
import { createTenure } from "@tenure/core"
import { openApi } from "@tenure/core/openapi"
import { memory } from "@tenure/memory"
import { nodeTransport, serve } from "@tenure/node-http"
import openapiTypescript from "openapi-typescript"
import { astToString } from "openapi-typescript"
import { type Options, generate } from "orval"
import ts from "typescript"
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest"

/** Copies the document for each generator, because some change it. */
const copy = () => JSON.parse(JSON.stringify(openApi()))

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tenure-clients-"))
})

afterAll(() => rm(folder, { recursive: true }))

/** Compiles a program, and returns the errors in it and its imports. */
const problemsOf = async (
  program: string,
  path = join(folder, "program.ts"),
): Promise<ReadonlyArray<string>> => {
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
      export const endOf = (of: components["schemas"]["Membership"]): string | null => of.end_date
      // @ts-expect-error – the date is no date
      export const wrong: typeof body = { extend: false }
    `),
  ).toEqual([])
})

/** Starts a server, and returns its URL and an admin's token. */
const start = async () => {
  const tenure = await createTenure({ stores: memory(), transport: nodeTransport })
  const server = await serve(tenure, { port: 0 })
  onTestFinished(async () => {
    await server.close()
    await tenure.close()
  })
  const { token } = await tenure.apiKeys.issue({ projects: "all", role: "admin" })
  return { url: server.url, token }
}

/** A program's expected results. It creates a project, whose id needs encoding, and two members in it. */
const found = {
  created: "shop/1",
  granted: "2098-01-01T00:00:00.000Z",
  extended: "2099-01-01T00:00:00.000Z",
  imported: 1,
  listed: ["1001", "a+b@shop.example"],
  secret: expect.stringMatching(/^whsec_/),
  deleted: 200,
  missing: [404, "MEMBERSHIP_NOT_FOUND"],
  invalid: 422,
  refused: [401, "UNAUTHORIZED"],
}

const names = { project: "shop/1", user: "1001" }

/** Import lines for a user id that needs encoding. */
const lines = '{"user_id":"a+b@shop.example","end_date":"2099-01-01T00:00:00.000Z"}\n'

const run = async (path: string): Promise<unknown> => {
  const { url, token } = await start()
  const program: { readonly main: (...given: ReadonlyArray<unknown>) => Promise<unknown> } =
    await import(/* @vite-ignore */ path)
  return program.main(url, token, names, lines)
}

// orval writes every body as JSON; a text with lines is one already.
const mutator = `
  export const sendLines = async <Response>(path: string, init: RequestInit): Promise<Response> => {
    const response = await fetch(path, { ...init, body: JSON.parse(String(init.body)) })
    const { status, headers } = response
    return { status, headers, data: await response.json() } as Response
  }
`

it("of orval", async () => {
  const target = join(folder, "orval.ts")
  await writeFile(join(folder, "lines.ts"), mutator)
  const options: Options = {
    input: { target: copy() },
    output: {
      target,
      client: "fetch",
      urlEncodeParameters: true,
      override: {
        operations: {
          "memberships.import": { mutator: { path: join(folder, "lines.ts"), name: "sendLines" } },
        },
      },
    },
  }
  await generate(options, undefined, { logLevel: "error" })
  const path = join(folder, "orval-program.ts")
  expect(
    await problemsOf(
      `
      import * as api from "./orval"
      export const main = async (
        url: string,
        token: string,
        { project, user }: { project: string; user: string },
        lines: string,
      ) => {
        const send = globalThis.fetch
        globalThis.fetch = (path, init) => send(url + String(path), init)
        const options = { headers: { authorization: "Bearer " + token } }
        try {
          const created = await api.projectsCreate(project, options)
          const granted = await api.membershipsGrant(
            project,
            user,
            { end_date: "2098-01-01T00:00:00.000Z" },
            options,
          )
          const extended = await api.membershipsExtend(
            project,
            user,
            { extend_by: "P1Y" },
            { headers: { ...options.headers, "Idempotency-Key": "a-year" } },
          )
          const imported = await api.membershipsImport(project, lines, {}, options)
          const first = await api.membershipsList(project, { limit: 1 }, options)
          const after = first.status === 200 ? (first.data.next ?? "") : ""
          const second = await api.membershipsList(project, { after }, options)
          const hook = await api.webhooksCreate(project, { url: "https://receiver.example/" }, options)
          const id = hook.status === 200 ? hook.data.data.id : ""
          const deleted = await api.webhooksDelete(project, id, options)
          const missing = await api.membershipsGet(project, "404", options)
          const invalid = await api.membershipsExtend(project, user, { extend: 0 }, options)
          const refused = await api.projectsList()
          return {
            created: created.status === 200 && created.data.data.id,
            granted: granted.status === 200 && granted.data.data.end_date,
            extended: extended.status === 200 && extended.data.data.new_end_date,
            imported: imported.status === 200 && imported.data.total,
            listed: [first, second].flatMap((page) =>
              page.status === 200 ? page.data.data.map((one) => one.user_id) : [],
            ),
            secret: hook.status === 200 && hook.data.data.secret,
            deleted: deleted.status,
            missing: missing.status === 404 && [404, missing.data.error.error_code],
            invalid: invalid.status,
            refused: refused.status === 401 && [401, refused.data.error.error_code],
          }
        } finally {
          globalThis.fetch = send
        }
      }
      // @ts-expect-error – the date is no date
      export const wrong = () => api.membershipsExtend("demo", "1001", { extend: false })
    `,
      path,
    ),
  ).toEqual([])
  expect(await run(path)).toEqual(found)
})

it("of Hey API", async () => {
  const output = join(folder, "hey-api")
  await createClient({ input: copy(), output, logs: { level: "silent", file: false } })
  const path = join(folder, "hey-api-program.ts")
  expect(
    await problemsOf(
      `
      import * as api from "./hey-api"
      import { createClient, createConfig } from "./hey-api/client"
      export const main = async (
        url: string,
        token: string,
        { project, user }: { project: string; user: string },
        lines: string,
      ) => {
        const client = createClient(createConfig({ baseUrl: url, auth: token }))
        const of = { client, path: { project_id: project } }
        const member = { client, path: { project_id: project, user_id: user } }
        const created = await api.projectsCreate(of)
        const granted = await api.membershipsGrant({
          ...member,
          body: { end_date: "2098-01-01T00:00:00.000Z" },
        })
        const extended = await api.membershipsExtend({
          ...member,
          body: { extend_by: "P1Y" },
          headers: { "Idempotency-Key": "a-year" },
        })
        // Hey API writes every body as JSON; a text with lines is one already.
        const imported = await api.membershipsImport({ ...of, body: lines, bodySerializer: null })
        const first = await api.membershipsList({ ...of, query: { limit: 1 } })
        const after = first.data?.next ?? ""
        const second = await api.membershipsList({ ...of, query: { after } })
        const hook = await api.webhooksCreate({ ...of, body: { url: "https://receiver.example/" } })
        const webhook_id = hook.data?.data.id ?? ""
        const deleted = await api.webhooksDelete({ client, path: { project_id: project, webhook_id } })
        const missing = await api.membershipsGet({ client, path: { ...member.path, user_id: "404" } })
        const invalid = await api.membershipsExtend({ ...member, body: { extend: 0 } })
        const refused = await api.projectsList({
          client: createClient(createConfig({ baseUrl: url })),
        })
        const codeOf = (error: typeof missing.error | typeof refused.error) =>
          error && "error" in error && "error_code" in error.error
            ? error.error.error_code
            : undefined
        return {
          created: created.data?.data.id,
          granted: granted.data?.data.end_date,
          extended: extended.data?.data.new_end_date,
          imported: imported.data?.total,
          listed: [first, second].flatMap(({ data }) => data?.data.map((one) => one.user_id) ?? []),
          secret: hook.data?.data.secret,
          deleted: deleted.response?.status,
          missing: [missing.response?.status, codeOf(missing.error)],
          invalid: invalid.response?.status,
          refused: [refused.response?.status, codeOf(refused.error)],
        }
      }
      // @ts-expect-error – the date is no date
      export const wrong = () => api.membershipsExtend({ path: { project_id: "p", user_id: "1" }, body: { extend: false } })
    `,
      path,
    ),
  ).toEqual([])
  expect(await run(path)).toEqual(found)
})
