/** The server on a folder, its default. */

import { execFile } from "node:child_process"
import { stat } from "node:fs/promises"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { afterEach, expect, inject, it } from "vitest"
import { type Program, endAll, start, startServer } from "./programs.ts"
import { call, extend, temporaryFolder } from "./world.ts"

afterEach(endAll)

const path = temporaryFolder()
const other = temporaryFolder()
const environment = { DATABASE_URL: `file:${path}` }
const member = "/v2/projects/demo/memberships/1001"

/** Returns the commands that a server has printed, without times and ports. */
const commandsOf = ({ lines }: Program) =>
  lines
    .filter((line) => line.startsWith("curl"))
    .map((line) => line.replaceAll(/:\d+\//g, "/").replaceAll(/"extend":[^}]*/g, ""))

it("a server that is killed has everything after a restart, and keeps others out", async () => {
  const first = await startServer(environment)
  const [token] = await first.line(/(?<=Authorization: Bearer )tnr_[A-Za-z0-9_-]+/)
  const extended = await call(first, "PATCH", `${member}/extend`, { extend }, token)
  expect(extended.status).toBe(200)

  expect(await start("node-server", { PORT: "0", ...environment }).ended).toEqual({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(
      new RegExp(`^DATABASE_URL: The folder ${path} is in use by process \\d+\\..*\n$`),
    ),
  })

  first.kill("SIGKILL")
  await first.ended
  const second = await startServer(environment)
  const found = await call(second, "GET", member, undefined, token)
  expect(found.body).toMatchObject({ data: { end_date: extend } })
  await second.line(/sign in with the token of the admin: tnr_/)
  expect(commandsOf(second)).toEqual(commandsOf(first))
  expect((await stat(join(path, "demo.json"))).mode & 0o777).toBe(0o600)

  const [admin] = await second.line(/(?<=token of the admin: )tnr_.*/)
  const { body: keys } = await call(second, "GET", "/v2/api-keys", undefined, admin)
  const client = Object(keys).data.find(({ role }: { readonly role: string }) => role === "client")
  await call(second, "DELETE", `/v2/api-keys/${client.id}`, undefined, admin)
  second.kill("SIGINT")
  await second.ended

  const third = await startServer(environment)
  const [another] = await third.line(/^curl -X POST .*TOKEN.*/)
  await third.line(/^# Give an admin a token that you choose/)
  const issue = another.replace("TOKEN", admin)
  const { stdout: issued } = await promisify(execFile)("sh", ["-c", issue])
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
  const env = { DATABASE_URL: `file:${other}` }
  const args = [migrate, "--from", `file:${path}`]
  const { stdout } = await promisify(execFile)(process.execPath, args, { env })
  expect(stdout).toContain("memberships: 3 rows")
})
