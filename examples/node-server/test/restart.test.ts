/** The bundled server as a process, killed and started again. The system suite has the rest of what it does. */

import { randomUUID } from "node:crypto"
import { afterEach, expect, inject, it } from "vitest"
import { endAll, startServer } from "./programs.ts"
import { call, extend as endDate, temporaryFolder, writeJson } from "./world.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

const folder = temporaryFolder()

afterEach(endAll)

it("a server that is killed has lost nothing when it is started again", async () => {
  // Of this run: the database may have projects and keys of an earlier one.
  const [id, token] = [randomUUID(), randomUUID()]
  const seed = { projects: [{ id, api_keys: [{ token, role: "operator" }] }] }
  const environment = {
    DATABASE_URL: inject("databaseUrl"),
    DATABASE_SCHEMA: "restart",
    SEED_FILE: await writeJson(folder, seed),
  }
  const member = `/v2/projects/${id}/memberships/1001`

  const first = await startServer(environment)
  const granted = await call(first, "PUT", member, { end_date: endDate }, token)
  expect(granted).toMatchObject({ status: 200 })
  first.kill("SIGKILL")
  await first.ended

  const second = await startServer(environment)
  const found = await call(second, "GET", member, undefined, token)
  expect(found).toMatchObject({ status: 200, body: { data: { end_date: endDate } } })
  const history = await call(second, "GET", `${member}/history`, undefined, token)
  expect(history.body).toMatchObject({ data: [{ action: "granted" }] })
  second.kill("SIGTERM")
  expect(await second.ended).toMatchObject({ code: 0, stderr: "" })
})
