/** The code on pages for hosts too large for every installation, on the real hosts. */

import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdir, readFile, rm, writeFile } from "node:fs/promises"
import { dirname } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { freePort, send } from "@tenure/testing/conformance"
import { build } from "esbuild"
import { Miniflare } from "miniflare"
import { beforeAll, describe, expect, it } from "vitest"
import { examplesIn, root } from "../../test/examples.ts"
import { listen } from "../../test/programs.ts"
import { binaries } from "./remote.ts"

const folder = fileURLToPath(new URL(".pages", import.meta.url))

/** Writes a page's example to a file, and returns the path. */
const write = async (page: string, example: number, more = ""): Promise<string> => {
  const file = `${folder}/${page}-${example}.ts`
  const { code } = examplesIn(`docs/hosts/${page}.md`)[example - 1] ?? { code: "" }
  await writeFile(file, withKey(code) + more)
  return file
}

/** Compiles a program with decorators, which Node does not run. */
const compile = async (file: string): Promise<string> => {
  const outfile = file.replace(/ts$/, "mjs")
  const tsconfigRaw = { compilerOptions: { experimentalDecorators: true } }
  await build({ entryPoints: [file], outfile, format: "esm", target: "node22", tsconfigRaw })
  return outfile
}

const extendAll = "/members/v2/projects/p1/memberships/extend"

const token = "a-token-of-the-test"

/** Makes example code create a project and a key, too. */
const withKey = (code: string): string =>
  `${code.replace(/createTenure\((\{[^]*?\})\)/, "prepare(createTenure($1))")}
  async function prepare(making) {
    const tenure = await making
    await tenure.memberships.createProject("p1")
    await tenure.apiKeys.issue({ projects: ["p1"], role: "operator", token: "${token}" })
    return tenure
  }`

/** Expects a stream to send an event published while it is open. */
const expectStream = async (port: number): Promise<void> => {
  const events = `http://127.0.0.1:${port}/members/v2/projects/p1/events`
  const authorization = `Bearer ${token}`
  const ending = new AbortController()
  const { body, headers } = await fetch(events, {
    headers: { authorization, accept: "text/event-stream" },
    signal: ending.signal,
  })
  expect(headers.get("content-type")).toBe("text/event-stream")
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
  expect((await reader?.read())?.value).toMatch(/^retry: \d+\n\nid: /)
  const published = await fetch(events, {
    method: "POST",
    headers: { authorization, "content-type": "application/json" },
    body: JSON.stringify({ type: "a.b", data: {} }),
  })
  expect(published.status).toBe(200)
  expect((await reader?.read())?.value).toContain("event: a.b\n")
  ending.abort()
}

/** Expects a server to answer for the API and for the host. */
const expectBoth = async (port: number): Promise<void> => {
  const url = `http://127.0.0.1:${port}`
  const headers = { "content-type": "application/json" }
  const refused = await send(url, { method: "PATCH", path: extendAll, headers, body: "{" })
  expect(refused).toMatchObject({ status: 401, body: { ok: false, code: 401, path: extendAll } })
  expect(await (await fetch(url)).text()).toContain("the rest of your backend")
  await expectStream(port)
}

const onServer = async (
  file: string,
  test: (port: number) => Promise<void>,
  command?: ReadonlyArray<string>,
): Promise<void> => {
  const port = await freePort()
  const { stop } = await listen(file, port, {}, command)
  try {
    await test(port)
  } finally {
    stop()
  }
}

beforeAll(async () => {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder)
})

describe("the code of a page runs:", () => {
  it("bun", async () => {
    const file = await write("bun", 1)
    await onServer(file, expectBoth, [binaries.bun, file])
  })

  it("bun, with serve, which answers a request under way before it closes", async () => {
    const port = await freePort()
    const file = await write("bun", 2)
    const program = spawn(binaries.bun, ["--conditions=@tenure/source", file], {
      env: { ...process.env, PORT: String(port) },
      stdio: ["ignore", "ignore", "inherit"],
    })
    const exited = once(program, "exit")
    const poll = (query: string) =>
      fetch(`http://127.0.0.1:${port}/v2/projects/p1/events${query}`, {
        headers: { authorization: `Bearer ${token}` },
      })
    try {
      await expect
        .poll(() =>
          poll("").then(
            ({ status }) => status,
            () => 0,
          ),
        )
        .toBe(200)
      const waiting = poll("?wait=20")
      await expect.poll(async () => (await poll("")).status).toBe(200)
      program.kill("SIGTERM")
      expect((await waiting).status).toBe(200)
      expect(await exited).toEqual([0, null])
    } finally {
      program.kill("SIGKILL")
    }
  })

  it("deno", async () => {
    const file = await write("deno", 1)
    const args = ["run", "--allow-all", file]
    await onServer(file, expectBoth, [binaries.deno, ...args])
  })

  it("h3", async () => {
    await onServer(await write("h3", 1), expectBoth)
  })

  it.each([1, 2])("nest (example %i)", async (example) => {
    await onServer(await compile(await write("nest", example)), expectBoth)
  })

  it.each([
    ["members", 401],
    ["members/*path", 404],
  ])("nest, in a module for the route %s, is answered %i", async (route, status) => {
    const file = await write("nest", 1)
    const { code } = examplesIn("docs/hosts/nest.md")[0] ?? { code: "" }
    const inModule = code
      .replace(/^const tenure = .*$/m, "")
      .replace(/^app\.use.*$/m, "")
      .replace(
        "@Module(",
        "const tenure = await createTenure({ stores: memory(), transport: nodeTransport })\n@Module(",
      )
      .replace(
        "class AppModule {}",
        `class AppModule {
          configure(consumer) {
            consumer.apply(membershipMiddleware(tenure)).forRoutes("${route}")
          }
        }`,
      )
    await writeFile(file, inModule)
    await onServer(await compile(file), async (port) => {
      const url = `http://127.0.0.1:${port}`
      const response = await send(url, { method: "PATCH", path: extendAll })
      expect(response.status).toBe(status)
    })
  })

  it("next", { timeout: 600_000 }, async () => {
    const app = `${folder}/next`
    const [lib, route] = examplesIn("docs/hosts/next.md")
    const layout = "export default ({ children }) => <html><body>{children}</body></html>"
    const files = {
      "package.json": JSON.stringify({ private: true, type: "module" }),
      "next.config.mjs": `export default { turbopack: { root: ${JSON.stringify(root)} } }`,
      "app/layout.jsx": layout,
      "app/page.jsx": "export default () => <p>the rest of your backend</p>",
      "lib/tenure.ts": withKey(lib?.code ?? ""),
      "app/members/[...path]/route.ts": route?.code ?? "",
    }
    for (const [name, content] of Object.entries(files)) {
      await mkdir(dirname(`${app}/${name}`), { recursive: true })
      await writeFile(`${app}/${name}`, content)
    }
    const next = fileURLToPath(new URL("node_modules/next/dist/bin/next", import.meta.url))
    const env = { ...process.env, NEXT_TELEMETRY_DISABLED: "1" }
    await promisify(execFile)(process.execPath, [next, "build", app], { env })
    await onServer(app, expectBoth, [process.execPath, next, "start", app])
  })

  it("testing, with Jest", async () => {
    const page = await readFile(`${root}/docs/testing.md`, "utf8")
    const [, ofNode = ""] = /^## With node:test\n\n```ts\n(.*?)^```$/ms.exec(page) ?? []
    const code = ofNode
      .replace('"node:test"', '"@jest/globals"')
      .replace("(context)", "()")
      .replace("context.after(close)", "")
    const cwd = `${folder}/jest`
    await mkdir(cwd)
    await writeFile(`${cwd}/package.json`, '{ "type": "module", "jest": { "transform": {} } }')
    await writeFile(`${cwd}/member.test.js`, code)
    const jest = fileURLToPath(new URL("node_modules/jest/bin/jest.js", import.meta.url))
    const args = ["--experimental-vm-modules", jest]
    const { stderr } = await promisify(execFile)(process.execPath, args, { cwd })
    expect(stderr).toContain("Tests:       1 passed, 1 total")
  })

  it("workers", async () => {
    const outfile = `${folder}/worker.mjs`
    await build({
      entryPoints: [await write("workers", 1)],
      outfile,
      bundle: true,
      format: "esm",
      conditions: ["workerd"],
    })
    const worker = new Miniflare({
      modules: true,
      scriptPath: outfile,
      compatibilityDate: "2026-07-01",
    })
    try {
      const call = (path: string, init: object = {}) =>
        worker.dispatchFetch(`http://worker.example${path}`, init)
      for (let n = 0; n < 3; n++) {
        const refused = await call(extendAll, { method: "PATCH", body: "{" })
        expect(await refused.json()).toMatchObject({ ok: false, code: 401, path: extendAll })
      }
      expect(await (await call("/")).text()).toBe("the rest of your backend")
    } finally {
      await worker.dispose()
    }
  })
})
