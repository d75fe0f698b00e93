/** The documented examples have no type errors, and work as pasted. */

import { execFile } from "node:child_process"
import { once } from "node:events"
import { writeFile } from "node:fs/promises"
import * as Http2 from "node:http2"
import { get } from "node:https"
import { text } from "node:stream/consumers"
import { promisify } from "node:util"
import { createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { serve } from "@tenure/node-http"
import { testTenure } from "@tenure/testing"
import { freePort, send } from "@tenure/testing/conformance"
import { beforeAll, describe, expect, inject, it, onTestFinished, vi } from "vitest"
import { makeAuthority } from "../../packages/postgres/test/certificates.ts"
import { findExamples, read, root, writeExamples } from "./examples.ts"
import { freshDatabase, listen, run, start } from "./programs.ts"

const examples = await findExamples()
const folder = await writeExamples("examples", examples)

const tsconfig = {
  extends: "../../tsconfig.base.json",
  compilerOptions: {
    lib: ["ES2023"],
    types: ["node"],
    composite: false,
    declaration: false,
    noEmit: true,
    // What an example declares is for its reader.
    noUnusedLocals: false,
  },
}

beforeAll(async () => {
  const files = examples.map(({ name }) => `${name}.ts`)
  await writeFile(`${folder}/tsconfig.json`, JSON.stringify({ ...tsconfig, files }))
})

describe("the examples of the documentation", () => {
  it("are there", () => {
    expect(examples.length).toBeGreaterThan(10)
  })

  it("are type-correct", async () => {
    // Several threads would do much work twice.
    const options = ["--singleThreaded", "-p", folder]
    const tsc = promisify(execFile)(`${root}/node_modules/.bin/tsc`, options)
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

/** Starts an example until the test has ended. */
const startExample = async (name: string) => {
  const port = await freePort()
  const { stop, token } = await start(`${folder}/${name}.ts`, port)
  onTestFinished(stop)
  return { token, url: `http://127.0.0.1:${port}` }
}

describe("the example of a README works as pasted:", () => {
  it.each([
    { name: "packages-express-README.md", mount: "/members", ownStatus: 200 },
    { name: "packages-fastify-README.md", mount: "/members", ownStatus: 200 },
    { name: "packages-node-http-README.md", mount: "", ownStatus: 404 },
  ])("$name", async ({ mount, name, ownStatus }) => {
    const { token, url } = await startExample(`${name}-1`)
    expect((await send(url, extendAll(token, mount))).body).toMatchObject({ ok: true })
    expect((await fetch(url)).status).toBe(ownStatus)
  })

  it("packages-fetch-README.md", async () => {
    vi.spyOn(console, "log").mockReturnValue()
    const { default: app } = await import(`${folder}/packages-fetch-README.md-1.ts`)
    const { path, ...init } = extendAll("nobody's")
    expect((await app.fetch(new Request(`http://localhost${path}`, init))).status).toBe(401)
    expect(await (await app.fetch(new Request("http://localhost/"))).text()).toContain("backend")
  })

  it("packages-client-README.md", async () => {
    const { token, url } = await startExample("README.md-1")
    const variables = { TENURE_URL: url, TENURE_TOKEN: token }
    const printed = await run(`${folder}/packages-client-README.md-1.ts`, variables)
    expect(printed).toBe("extended until 2099-01-01T00:00:00.000Z\n")
  })

  it("packages-client-README.md, its list and its import of a CSV file", async () => {
    const tenure = await createTenure({ stores: memory() })
    await tenure.memberships.createProject("p1")
    const { token } = await tenure.apiKeys.issue({ projects: ["p1"], role: "operator" })
    const server = await serve(tenure)
    onTestFinished(async () => {
      await server.close()
      await tenure.close()
    })
    const variables = { TENURE_URL: server.url, TENURE_TOKEN: token }
    const rows = ["1001,2001-01-01T00:00:00.000Z", "1002,2099-01-01T00:00:00.000Z"]
    const file = `${folder}/members.csv`
    await writeFile(file, ["user_id,end_date", ...rows, ""].join("\r\n"))
    const program = `import { importCsv } from "./packages-client-README.md-3.ts"
      await importCsv("${file}", "p1")
      await importCsv("${file}", "p1")`
    await writeFile(`${folder}/importing.ts`, program)
    await run(`${folder}/importing.ts`, variables)
    expect(await tenure.memberships.history({ projectId: "p1" })).toHaveLength(2)
    const printed = await run(`${folder}/packages-client-README.md-2.ts`, variables)
    expect(printed).toBe("1001 ended 2001-01-01T00:00:00.000Z\n")
  })

  it.each([
    ["packages-core-README.md-1", /./],
    ["packages-memory-README.md-1", /./],
    ["packages-testing-README.md-1", /^1001\n$/],
    ["docs-testing.md-2", /^\{ amount: 5 \}\n$/],
    ["docs-testing.md-3", /^. pass 1$/m],
  ])("%s", async (name, printed) => {
    expect(await run(`${folder}/${name}.ts`)).toMatch(printed)
  })

  it("docs-index.md: an extension, its event and its verified webhook", async () => {
    const { close, tenure, webhooks } = await testTenure()
    onTestFinished(close)
    const { secret } = await webhooks.register("shop")
    const endDate = "2030-02-01T00:00:00.000Z"
    await tenure.memberships.grant({ projectId: "shop", userId: "1001", endDate })
    vi.stubEnv("SECRET", secret)
    onTestFinished(() => void vi.unstubAllEnvs())
    const { paid } = await import(`${folder}/docs-index.md-1.ts`)
    const { POST } = await import(`${folder}/docs-index.md-2.ts`)

    await paid(tenure)
    await paid(tenure)
    const { body, headers, sentAt } = await webhooks.next("membership.extended")
    const page = read("docs/index.md")
    expect(JSON.parse(/^```json\n(.*?)^```$/ms.exec(page)?.[1] ?? "")).toEqual(JSON.parse(body))

    vi.spyOn(Date, "now").mockReturnValue(sentAt)
    const log = vi.spyOn(console, "log").mockReturnValue()
    const sent = (content: string) =>
      new Request("https://receiver.example/", { method: "POST", headers, body: content })
    expect((await POST(sent(body))).status).toBe(204)
    expect(log.mock.calls).toEqual([["membership.extended", JSON.parse(body).data]])
    await expect(POST(sent(`${body} `))).rejects.toThrow("signature")
  })

  it("docs-testing.md, with vitest", async () => {
    const config = `${folder}/vitest.config.js`
    const settings = {
      resolve: { conditions: ["@tenure/source"] },
      ssr: { resolve: { conditions: ["@tenure/source"] } },
      test: { include: ["docs-testing.md-1.ts", "docs-testing.md-5.ts"] },
    }
    await writeFile(config, `export default ${JSON.stringify(settings)}`)
    const vitest = `${root}/node_modules/vitest/vitest.mjs`
    const options = ["run", "--root", folder, "--config", config]
    const environment = { env: { PATH: process.env["PATH"], NO_COLOR: "1" } }
    const command = [vitest, ...options]
    const { stdout } = await promisify(execFile)(process.execPath, command, environment)
    expect(stdout).toMatch(/Tests +2 passed/)
  })

  it("packages-postgres-README.md", async () => {
    const DATABASE_URL = await freshDatabase(inject("databaseUrl"), "readme")
    expect(await run(`${folder}/packages-postgres-README.md-1.ts`, { DATABASE_URL })).toBe("[]\n")
  })
})

/** Starts a page's server, by its example's number, until the test has ended. */
const startPage = async (page: string, example: number, variables = {}): Promise<number> => {
  const port = await freePort()
  const { stop } = await listen(`${folder}/docs-hosts-${page}.md-${example}.ts`, port, variables)
  onTestFinished(stop)
  return port
}

describe("the server of a host's page answers for the API and for the host:", () => {
  it.each([
    { page: "express", mount: "/members" },
    { page: "fastify", mount: "" },
    { page: "hono", mount: "" },
    { page: "koa", mount: "/members" },
    { page: "node-http", mount: "" },
    { page: "effect", mount: "/members" },
  ])("$page", async ({ mount, page }) => {
    const url = `http://127.0.0.1:${await startPage(page, 1)}`
    const refused = await send(url, { ...extendAll("nobody's", mount), body: "{" })
    expect(refused).toMatchObject({ status: 401, body: { ok: false } })
    expect(await (await fetch(url)).text()).toContain("the rest of your backend")
  })

  it("node-http, over TLS with HTTP/2 and HTTP/1.1", async () => {
    const { certificate: ca, issue } = makeAuthority()
    const { certificate, key } = issue(["127.0.0.1"])
    const files = { TLS_KEY: `${folder}/key.pem`, TLS_CERT: `${folder}/cert.pem` }
    await writeFile(files.TLS_KEY, key)
    await writeFile(files.TLS_CERT, certificate)
    const port = await startPage("node-http", 2, files)
    const client = Http2.connect(`https://127.0.0.1:${port}`, { ca })
    const { body, headers, method, path } = extendAll("nobody's")
    const stream = client.request({ ":method": method, ":path": path, ...headers })
    stream.end(body)
    expect(JSON.parse(await text(stream))).toMatchObject({ code: 401, method: "PATCH" })
    client.close()
    const [response] = await once(get({ host: "127.0.0.1", port, ca }), "response")
    expect(await text(response)).toContain("the rest of your backend")
  })

  it("lambda", async () => {
    const { handler } = await import(`${folder}/docs-hosts-lambda.md-1.ts`)
    const context = { getRemainingTimeInMillis: () => 30_000 }
    const call = (rawPath: string, method: string) =>
      handler(
        {
          version: "2.0",
          routeKey: "$default",
          rawPath,
          rawQueryString: "",
          headers: { host: "example.com", "content-type": "application/json" },
          requestContext: { http: { method, path: rawPath, sourceIp: "203.0.113.7" } },
          ...(method !== "GET" && { body: "{}" }),
          isBase64Encoded: false,
        },
        context,
      )
    const refused = await call("/members/v2/projects/p1/memberships/extend", "PATCH")
    expect(refused).toMatchObject({ statusCode: 401 })
    expect(JSON.parse(refused.body)).toMatchObject({ ok: false, code: 401 })
    expect((await call("/", "GET")).body).toContain("the rest of your backend")
  })
})
