/** The server on a folder, as it is without settings. */

import { execFile } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { send } from "@tenure/testing/conformance"
import { afterAll, afterEach, expect, inject, it } from "vitest"
import { endAll, start, startServer } from "./programs.ts"

afterEach(endAll)

const path = await mkdtemp(join(tmpdir(), "tenure-"))
afterAll(() => rm(path, { recursive: true }))

const environment = { DATABASE_URL: `file:${path}` }
const member = "/v2/projects/demo/memberships/1001"

it("a server that is killed has everything after a restart, and keeps others out", async () => {
  const first = await startServer(environment)
  const [authorization] = await first.line(/(?<=Authorization: )Bearer tnr_[A-Za-z0-9_-]+/)
  const headers = { authorization, "content-type": "application/json" }
  const [adminToken = ""] = await first.line(/(?<=api-keys' .*)tnr_[A-Za-z0-9_-]+/)
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
  const [another] = await second.line(/^curl -X POST .*TOKEN.*/)
  await second.line(/^# Give an admin a token that you choose/)
  const { stdout: issued } = await promisify(execFile)("sh", [
    "-c",
    another.replace("TOKEN", adminToken),
  ])
  expect(JSON.parse(issued)).toMatchObject({
    ok: true,
    data: { token: expect.stringMatching(/^tnr_/) },
  })
  second.kill("SIGINT")
  const { stdout } = await second.ended
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
