/** The command `init`: what it writes, what it says, and what it leaves as it is. */

import { existsSync, lstatSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { tenureWith } from "./in-process.ts"
import { extend, folderWith, tenureIn, writeServer } from "./programs.ts"

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
    const { code, stderr } = await tenureIn(folder, "init")
    expect(code).toBe(1)
    expect(stderr).toContain("tenure.js exists, and stays as it is.")
    expect(readFileSync(join(folder, "tenure.js"), "utf8")).toBe("mine")
  })

  it("says which packages to install", async () => {
    const folder = folderWith({ "package.json": { dependencies: { hono: "*" } } })
    expect(await writeServer(folder)).toContain("npm install tenure @hono/node-server\n")
  })

  it("installs nothing that is there", async () => {
    const folder = folderWith({ "package.json": { devDependencies: { tenure: "*" } } })
    expect(await writeServer(folder)).not.toContain("npm install")
  })

  it("works without a package.json", async () => {
    expect(await writeServer(folderWith({}))).toContain("Wrote tenure.mjs, ")
  })

  it("refuses a package.json that is not JSON", async () => {
    const folder = folderWith({})
    writeFileSync(join(folder, "package.json"), "{")
    const { code, stderr } = await tenureIn(folder, "init")
    expect(code).toBe(1)
    expect(stderr).toContain("package.json is not valid JSON.")
  })
})

describe("init --agents", () => {
  const guide = async (folder: string) => {
    const { code, stderr, stdout } = await tenureIn(folder, "init", "--agents")
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    return { stdout, text: readFileSync(join(folder, "AGENTS.md"), "utf8") }
  }

  it("writes AGENTS.md, and no server", async () => {
    const folder = folderWith({ "package.json": {} })
    const { stdout, text } = await guide(folder)
    expect(stdout).toBe("Wrote the section about Tenure in AGENTS.md.\n")
    expect(text).toMatch(/^<!-- tenure: begin.*## Tenure.*<!-- tenure: end -->\n$/s)
    expect(existsSync(join(folder, "tenure.mjs"))).toBe(false)
  })

  it("changes nothing the second time", async () => {
    const folder = folderWith({})
    const { text } = await guide(folder)
    const again = await guide(folder)
    expect(again).toEqual({
      stdout: "The section about Tenure in AGENTS.md is up to date.\n",
      text,
    })
  })

  it("keeps all other text, and replaces an earlier section", async () => {
    const folder = folderWith({ "AGENTS.md": "# Shop\n\nUse tabs.\n" })
    const { text } = await guide(folder)
    expect(text).toMatch(/^# Shop\n\nUse tabs\.\n\n<!-- tenure: begin/)
    const edited = `${text.replace("## Tenure", "## Old")}\nThe end, without a line break`
    writeFileSync(join(folder, "AGENTS.md"), edited)
    const renewed = await guide(folder)
    expect(renewed.text).toBe(`${text}\nThe end, without a line break`)
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
    const { code, stderr } = await tenureIn(folder, "init", "--agents")
    expect(code).toBe(1)
    expect(stderr).toContain("restore or remove both")
    expect(readFileSync(join(folder, "AGENTS.md"), "utf8")).toBe(text)
  })

  it("explains a file that it cannot use", async () => {
    const folder = folderWith({ "AGENTS.md/file": "" })
    const { code, stderr } = await tenureIn(folder, "init", "--agents")
    expect(code).toBe(1)
    expect(stderr).toContain("The file AGENTS.md cannot be used")
  })

  it("names commands and pages that exist", async () => {
    const { text } = await guide(folderWith({}))
    const commands = [...text.matchAll(/^- `npx tenure ([a-z ]*)/gm)].map(([, words = ""]) =>
      words
        .trim()
        .split(" ")
        .filter((word) => word !== ""),
    )
    expect(commands).toHaveLength(5)
    for (const words of commands)
      expect(await tenureWith({})(...words, "--help"), words.join(" ")).toMatchObject({ code: 0 })
    const pages = [...text.matchAll(/blob\/main\/([\w./-]+)\)/g)].map(([, path = ""]) => path)
    expect(pages.length).toBeGreaterThan(4)
    for (const page of pages)
      expect(existsSync(new URL(`../../../${page}`, import.meta.url)), page).toBe(true)
  })
})
