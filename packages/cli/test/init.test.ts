/** The command `init`: what it writes, what it says, and what it leaves as it is. */

import { existsSync, lstatSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { refused, tenureWith } from "./in-process.ts"
import { extend, folderWith, initIn, writeServer } from "./programs.ts"

describe("in a program with Next.js", () => {
  it.each([
    { files: {}, path: "app/v2/[...path]/route.js" },
    { files: { "tsconfig.json": {} }, path: "app/v2/[...path]/route.ts" },
    { files: { "src/app/page.js": "" }, path: "src/app/v2/[...path]/route.js" },
  ])("the handlers of $path answer, and start Tenure once", async ({ files, path }) => {
    const folder = folderWith({
      ...files,
      "package.json": { type: "module", dependencies: { next: "*" } },
    })
    expect(await writeServer(folder)).toContain(`Wrote ${path}, `)
    const printed = vi.spyOn(console, "log").mockReturnValue()
    vi.stubGlobal("membershipApi", undefined)
    onTestFinished(() => void vi.unstubAllGlobals())

    const route = await import(join(folder, path))
    expect(printed).not.toHaveBeenCalled()

    expect((await route.GET(new Request("http://127.0.0.1:3000/v2/none"))).status).toBe(404)
    const [, token = ""] = /Bearer (\S+)/.exec(String(printed.mock.calls)) ?? []
    const reloaded = await import(`${join(folder, path)}?reloaded`)
    const answer = await reloaded.PATCH(extend("http://127.0.0.1:3000", token))
    expect(await answer.json()).toMatchObject({ ok: true })
    expect(printed).toHaveBeenCalledOnce()
  })
})

describe("init", () => {
  it("never overwrites a file", async () => {
    const folder = folderWith({ "package.json": { type: "module" }, "tenure.js": "mine" })
    expect(await initIn(folder)).toMatchObject(refused(1, "tenure.js exists, and stays as it is."))
    expect(readFileSync(join(folder, "tenure.js"), "utf8")).toBe("mine")
  })

  it("says which packages to install, of those that are not there", async () => {
    const hono = folderWith({ "package.json": { dependencies: { hono: "*" } } })
    expect(await writeServer(hono)).toContain("npm install tenure @hono/node-server\n")
    const installed = folderWith({ "package.json": { devDependencies: { tenure: "*" } } })
    expect(await writeServer(installed)).not.toContain("npm install")
  })

  it("works without a package.json, and refuses one that is not JSON", async () => {
    expect(await writeServer(folderWith({}))).toContain("Wrote tenure.mjs, ")
    const broken = folderWith({ "package.json": "{" })
    expect(await initIn(broken)).toMatchObject(refused(1, "package.json is not valid JSON."))
  })
})

describe("init --agents", () => {
  const guide = async (folder: string) => {
    const { code, stderr, stdout } = await initIn(folder, "--agents")
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    return { stdout, text: readFileSync(join(folder, "AGENTS.md"), "utf8") }
  }

  it("writes AGENTS.md, and no server, and changes nothing the second time", async () => {
    const folder = folderWith({ "package.json": {} })
    const { stdout, text } = await guide(folder)
    expect(stdout).toBe("Wrote the section about Tenure in AGENTS.md.\n")
    expect(text).toMatch(/^<!-- tenure: begin.*## Tenure.*<!-- tenure: end -->\n$/s)
    expect(existsSync(join(folder, "tenure.mjs"))).toBe(false)
    const upToDate = "The section about Tenure in AGENTS.md is up to date.\n"
    expect(await guide(folder)).toEqual({ stdout: upToDate, text })
  })

  it("keeps all other text, and replaces an earlier section", async () => {
    const folder = folderWith({ "AGENTS.md": "# Shop\n\nUse tabs.\n" })
    const { text } = await guide(folder)
    expect(text).toMatch(/^# Shop\n\nUse tabs\.\n\n<!-- tenure: begin/)
    const edited = `${text.replace("## Tenure", "## Old")}\nThe end, without a line break`
    writeFileSync(join(folder, "AGENTS.md"), edited)
    expect((await guide(folder)).text).toBe(`${text}\nThe end, without a line break`)
  })

  it("writes through a link", async () => {
    const folder = folderWith({ "CLAUDE.md": "mine\n" })
    symlinkSync("CLAUDE.md", join(folder, "AGENTS.md"))
    await guide(folder)
    expect(lstatSync(join(folder, "AGENTS.md")).isSymbolicLink()).toBe(true)
    expect(readFileSync(join(folder, "CLAUDE.md"), "utf8")).toMatch(/^mine\n\n<!-- tenure: begin/)
  })

  it.each([
    "<!-- tenure: end -->\n",
    "<!-- tenure: begin; tenure init --agents writes what follows anew -->\n",
  ])("leaves a file with only the mark %s", async (text) => {
    const folder = folderWith({ "AGENTS.md": text })
    expect(await initIn(folder, "--agents")).toMatchObject(refused(1, "restore or remove both"))
    expect(readFileSync(join(folder, "AGENTS.md"), "utf8")).toBe(text)
  })

  it("explains a file that it cannot use", async () => {
    const folder = folderWith({ "AGENTS.md/file": "" })
    const told = "The file AGENTS.md cannot be used"
    expect(await initIn(folder, "--agents")).toMatchObject(refused(1, told))
  })

  it("names commands and pages that exist", async () => {
    const { text } = await guide(folderWith({}))
    const commands = [...text.matchAll(/^- `npx tenure ([a-z ]*)/gm)].map(([, one = ""]) => one)
    expect(commands).toHaveLength(5)
    for (const one of commands) {
      const words = one.trim() === "" ? [] : one.trim().split(" ")
      await tenureWith({}).print`${words} --help`
    }
    const pages = [...text.matchAll(/blob\/main\/([\w./-]+)\)/g)].map(([, path = ""]) => path)
    expect(pages.length).toBeGreaterThan(4)
    for (const page of pages)
      expect(existsSync(new URL(`../../../${page}`, import.meta.url)), page).toBe(true)
  })
})
