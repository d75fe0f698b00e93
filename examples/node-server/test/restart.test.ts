/** The bundled server as a process, killed and started again. The system suite has the rest of what it does. */

import { randomUUID } from "node:crypto"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { send } from "@tenure/testing/conformance"
import { afterEach, expect, inject, it, onTestFinished } from "vitest"
import { type Server, endAll, startServer } from "./programs.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

afterEach(endAll)

it("a server that is killed has lost nothing when it is started again", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tenure-"))
  onTestFinished(() => rm(folder, { recursive: true }))
  const SEED_FILE = join(folder, "seed.json")
  // Of this run: the database may have projects and keys of an earlier one.
  const [id, token] = [randomUUID(), randomUUID()]
  const seed = { projects: [{ id, api_keys: [{ token, role: "operator" }] }] }
  await writeFile(SEED_FILE, JSON.stringify(seed))
  const DATABASE_URL = inject("databaseUrl")
  const environment = { DATABASE_URL, DATABASE_SCHEMA: "restart", SEED_FILE }
  const member = `/v2/projects/${id}/memberships/1001`
  const call = ({ url }: Server, method: string, path: string, body?: object) =>
    send(url, {
      method,
      path,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })

  const first = await startServer(environment)
  const endDate = "2099-01-01T00:00:00.000Z"
  expect(await call(first, "PUT", member, { end_date: endDate })).toMatchObject({ status: 200 })
  first.kill("SIGKILL")
  await first.ended

  const second = await startServer(environment)
  const found = await call(second, "GET", member)
  expect(found).toMatchObject({ status: 200, body: { data: { end_date: endDate } } })
  const history = await call(second, "GET", `${member}/history`)
  expect(history.body).toMatchObject({ data: [{ action: "granted" }] })
  second.kill("SIGTERM")
  expect(await second.ended).toMatchObject({ code: 0, stderr: "" })
})
