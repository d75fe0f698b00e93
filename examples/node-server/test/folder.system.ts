/** The server on a folder, as it is without settings. */

import { execFile } from "node:child_process"
import { mkdtemp, rm, stat } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { send } from "@tenure/testing/conformance"
import { afterAll, afterEach, expect, inject, it } from "vitest"
import { type Program, endAll, start, startServer } from "./programs.ts"

afterEach(endAll)

const path = await mkdtemp(join(tmpdir(), "tenure-"))
afterAll(() => rm(path, { recursive: true }))

const environment = { DATABASE_URL: `file:${path}` }
const member = "/v2/projects/demo/memberships/1001"

it("a server that is killed has everything after a restart, and keeps others out", async () => {
  const first = await startServer(environment)
  const [authorization] = await first.line(/(?<=Authorization: )Bearer tnr_[A-Za-z0-9_-]+/)
  const headers = { authorization, "content-type": "application/json" }
  const body = JSON.stringify({ extend: "2099-01-01T00:00:00.000Z" })
  const extended = await send(first.url, {
    method: "PATCH",
    path: `${member}/extend`,
    headers,
    body,
  })
  expect(extended.status).toBe(200)

  const other = await start("node-server", { PORT: "0", ...environment }).ended
  expect(other).toMatchObject({ code: 1, stdout: "" })
  expect(other.stderr).toMatch(
    new RegExp(`^DATABASE_URL: The folder ${path} is in use by process \\d+\\..*\n$`),
  )

  first.kill("SIGKILL")
  await first.ended
  const second = await startServer(environment)
  const found = await send(second.url, { method: "GET", path: member, headers })
  expect(found.body).toMatchObject({ data: { end_date: "2099-01-01T00:00:00.000Z" } })
  const commandsOf = ({ lines }: Program) => {
    const commands = lines.filter((line) => line.startsWith("curl"))
    return commands.map((line) => line.replaceAll(/:\d+\//g, "/").replaceAll(/"extend":[^}]*/g, ""))
  }
  await second.line(/sign in with the token of the admin: tnr_/)
  expect(commandsOf(second)).toEqual(commandsOf(first))
  expect((await stat(join(path, "demo.json"))).mode & 0o777).toBe(0o600)

  const [console] = await second.line(/(?<=token of the admin: )tnr_.*/)
  const asAdmin = { authorization: `Bearer ${console}`, "content-type": "application/json" }
  const { body: keys } = await send(second.url, { path: "/v2/api-keys", headers: asAdmin })
  const client = Object(keys).data.find(({ role }: { readonly role: string }) => role === "client")
  await send(second.url, { method: "DELETE", path: `/v2/api-keys/${client.id}`, headers: asAdmin })
  second.kill("SIGINT")
  await second.ended

  const third = await startServer(environment)
  const [another] = await third.line(/^curl -X POST .*TOKEN.*/)
  await third.line(/^# Give an admin a token that you choose/)
  const { stdout: issued } = await promisify(execFile)("sh", [
    "-c",
    another.replace("TOKEN", console),
  ])
  expect(JSON.parse(issued)).toMatchObject({
    ok: true,
    data: { token: expect.stringMatching(/^tnr_/) },
  })
  third.kill("SIGINT")
  const { stdout } = await third.ended
  expect(stdout).toContain(path)
  expect(stdout).not.toContain("tnr_")
})

it("tenure-migrate beside the server moves the folder", async () => {
  const migrate = join(dirname(inject("serverFile")), "migrate.mjs")
  const to = await mkdtemp(join(tmpdir(), "tenure-"))
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [migrate, "--from", `file:${path}`],
    { env: { DATABASE_URL: `file:${to}` } },
  )
  expect(stdout).toContain("memberships: 3 rows")
  await rm(to, { recursive: true })
})
