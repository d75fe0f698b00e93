/** A wrong date for thousands is undone before anybody is told, by a server that is killed meanwhile. */

import { randomUUID } from "node:crypto"
import { setTimeout } from "node:timers/promises"
import { send, startReceiver } from "@tenure/testing/conformance"
import { afterEach, expect, inject, it, onTestFinished } from "vitest"
import { endAll, startServer } from "./programs.ts"
import { call, temporaryFolder, writeJson } from "./world.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

const folder = temporaryFolder()

// Longer than a start takes on a busy machine.
const holdMillis = 15_000

afterEach(endAll)

it("a wrong date for 5,000 members sends nothing but two events if it is undone in time", async () => {
  const receivers = await Promise.all(Array.from({ length: 4 }, () => startReceiver()))
  onTestFinished(async () => void (await Promise.all(receivers.map(({ close }) => close()))))
  const [id, token] = [randomUUID(), randomUUID()]
  const seed = { projects: [{ id, api_keys: [{ token, role: "operator" }] }] }
  const environment = {
    DATABASE_URL: inject("databaseUrl"),
    DATABASE_SCHEMA: "hold",
    EXPIRY_HOLD_AFTER_BULK: `${holdMillis / 1000}`,
    SEED_FILE: await writeJson(folder, seed),
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
  }
  const project = `/v2/projects/${id}`
  const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()
  let server = await startServer(environment)
  const succeed = async (method: string, path: string, body?: object) => {
    const answer = await call(server, method, `${project}${path}`, body, token)
    expect(answer).toMatchObject({ status: 200 })
    return answer.body
  }
  const lines = Array.from({ length: 5000 }, (_, index) =>
    JSON.stringify({ user_id: `user-${index}`, end_date: inSeconds(2_592_000) }),
  )
  const imported = await send(server.url, {
    method: "POST",
    path: `${project}/memberships/import`,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/x-ndjson" },
    body: lines.join("\n"),
  })
  expect(imported).toMatchObject({ status: 200 })
  for (const { url } of receivers) await succeed("POST", "/integrations/webhooks", { url })

  await succeed("PATCH", "/memberships/extend", { extend: inSeconds(1) })
  await Promise.all(receivers.map(({ until }) => until(1)))
  server.kill("SIGKILL")
  await server.ended
  await setTimeout(1000)
  server = await startServer(environment)
  // A bulk extension has the id of its event.
  const mistake = receivers[0]?.received[0]?.headers["webhook-id"]
  await succeed("POST", `/bulk-extensions/${mistake}/undo`, {})
  await setTimeout(holdMillis)

  // Announced in its time, and after all that was due before.
  await succeed("PUT", "/memberships/last", { end_date: inSeconds(1) })
  for (const { received } of receivers) {
    // What was on its way when the server was killed may come again.
    const typesById = () =>
      new Map(
        received.map(({ body, headers }) => [headers["webhook-id"], JSON.parse(String(body)).type]),
      )
    await expect.poll(() => [...typesById().values()]).toContain("membership.expired")
    expect([...typesById().values()].toSorted()).toEqual([
      "membership.expired",
      "membership.granted",
      "memberships.extended",
      "memberships.extension_undone",
    ])
  }
}, 120_000)
