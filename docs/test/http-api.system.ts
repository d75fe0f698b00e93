/** The session on the HTTP API page, pasted into a shell. */

import { execFile, execFileSync } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { freePort } from "@tenure/testing/conformance"
import { expect, it } from "vitest"
import { blocksIn, read, root } from "./examples.ts"
import { start } from "./programs.ts"

const hasCurl = (): boolean => {
  try {
    execFileSync("curl", ["--version"])
    return true
  } catch {
    return false
  }
}

interface Answer {
  readonly ok: boolean
  readonly total?: number
  readonly data:
    | Readonly<Record<string, unknown>>
    | ReadonlyArray<Readonly<Record<string, unknown>>>
}

// Every answer on its own line.
const prelude = 'set -euo pipefail\ncurl() { command curl -sS "$@"; echo; }\n'

it.skipIf(!hasCurl())("the session works as pasted", async () => {
  const port = await freePort()
  const file = `${root}/examples/node-server/src/main.ts`
  const server = await start(file, port, /\/v2\/api-keys.*Bearer (tnr_[\w-]+)/)
  const folder = await mkdtemp(join(tmpdir(), "tenure-session-"))
  const words = new Map([["ADMIN_TOKEN", server.token]])
  const answers: Array<Answer> = []

  const inPlace = (text: string): string =>
    [...words].reduce((filled, [word, value]) => filled.replaceAll(word, value), text)

  const note = ({ data }: Answer): void => {
    if (data === null || !("id" in data)) return
    if ("token" in data) words.set("CLIENT_TOKEN", `${data.token}`).set("KEY_ID", `${data.id}`)
    else if ("secret" in data) words.set("WEBHOOK_ID", `${data.id}`)
    else if (Object.keys(data).length === 1) words.set("EVENT_ID", `${data.id}`)
  }

  try {
    let variables = ""
    for (const block of blocksIn(read("docs/http-api.md"), "sh")) {
      const script = inPlace(block).replaceAll(":3000", `:${port}`)
      const { stdout } = await promisify(execFile)("bash", ["-c", prelude + variables + script], {
        cwd: folder,
      })
      variables += script.match(/^[A-Z]+=.*\n/gm)?.join("") ?? ""
      for (const line of stdout.split("\n").filter((text) => text !== "")) {
        const answer: Answer = JSON.parse(line)
        expect(answer).toMatchObject({ ok: true })
        note(answer)
        answers.push(answer)
      }
    }
    expect(answers.map(({ total }) => total)).toMatchObject({ 2: 1000, 10: 1001 })
    expect(answers[7]?.data).toMatchObject({
      through: "2099-02-28",
      end_date: "2099-02-28T23:00:00.000Z",
    })
    expect(answers.slice(8, 10)).toMatchObject([
      { data: { created: true } },
      { data: { created: false } },
    ])
    expect(answers[10]?.data).toMatchObject({ would_shorten: 2 })
  } finally {
    server.stop()
    await rm(folder, { recursive: true })
  }
})
