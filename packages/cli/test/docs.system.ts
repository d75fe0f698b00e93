/** The commands in docs/cli.md, as they are written. */

import { readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { temporaryFolder, tenureWith, wordsOf } from "./in-process.ts"
import { shell } from "./programs.ts"
import { token, useServer } from "./server.ts"

const server = useServer()

const page = readFileSync(new URL("../../../docs/cli.md", import.meta.url), "utf8")

/** A command that needs no shell: neither pipes nor files. */
const plain = /^npx tenure ((?:[^|&<>.]|\.\d)*)$/

it("every command of the page succeeds", async () => {
  const folder = temporaryFolder()
  const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, code = ""]) => code)
  expect(blocks.length).toBeGreaterThan(3)
  const lines = blocks.join("").replaceAll("http://127.0.0.1:3000", server.url()).split("\n")
  // On a terminal, the token is asked for.
  const environment: Record<string, string> = { XDG_CONFIG_HOME: folder, TENURE_TOKEN: token }
  for (const line of lines.filter((one) => one !== "")) {
    const [, args] = plain.exec(line) ?? []
    if (line.startsWith("export ")) {
      for (const [, name = "", value = ""] of line.matchAll(/(\w+)=(\S+)/g))
        environment[name] = value
    } else {
      const ended =
        args === undefined
          ? await shell(line, environment, folder)
          : await tenureWith(environment).run`${wordsOf(args)}`
      expect(ended, line).toMatchObject({ code: 0 })
    }
  }
})
