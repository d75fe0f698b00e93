/** The documented roles: one that owns the tables, and one that owns nothing, with which all stores are certified. */

import type { PgClient } from "@effect/sql-pg"
import { type Fault, createTenure } from "@tenure/core"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest"
import { migrate, postgres, rewriteSecrets } from "../src/index.ts"
import {
  beginAudit,
  createDays,
  deleteOldEvents,
  deleteOldFailedDeliveries,
  dropDay,
} from "../src/retention.ts"
import { documentedRoles } from "./documented-roles.ts"
import { clientLayer, recordingTransport, shared, sql, urlOf, valuesOf } from "./harness.ts"

const name = "tenure_roles"

const urlFor = (user?: string, password?: string): string => {
  const url = new URL(urlOf(name))
  if (user !== undefined) url.username = user
  if (password !== undefined) url.password = password
  return String(url)
}

const app = urlFor("tenure_app", "change me, too")

const clientOf = (url: string) => clientLayer({ url: Redacted.make(url), maxConnections: 1 })
const asOwner = shared(clientOf(urlFor("tenure_owner", "change me")))
const asApp = shared(clientOf(app))

const on = <A, E>(client: typeof asApp, work: Effect.Effect<A, E, PgClient.PgClient>): Promise<A> =>
  Effect.runPromise(Effect.provide(work, client))

const execute = (client: typeof asApp, ...statements: ReadonlyArray<string>) =>
  on(
    client,
    Effect.forEach(statements, (statement) => sql(statement)),
  )

const drop = [
  `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`,
  "DROP ROLE IF EXISTS tenure_app",
  "DROP ROLE IF EXISTS tenure_owner",
]

beforeAll(async () => {
  await execute(clientOf(inject("databaseUrl")), ...drop, `CREATE DATABASE ${name}`)
  const [create = [], restrict = []] = await documentedRoles()
  await execute(clientOf(urlFor()), ...create)
  expect(await on(asOwner, migrate())).not.toEqual([])
  await execute(asOwner, ...restrict)
})
afterAll(() => execute(clientOf(inject("databaseUrl")), ...drop))

const refusal = { reason: { cause: { code: "42501" } } }
const faults: Array<Fault> = []
const start = () =>
  createTenure({
    stores: postgres({ url: app, migrate: false }),
    transport: recordingTransport().transport,
    webhooks: { missingKeys: "allow" },
    onError: (fault) => void faults.push(fault),
  })

describe("a role that owns nothing", () => {
  it("delivers, deletes what is old, and encrypts secrets", async () => {
    const { close, events, isReady, memberships, webhooks } = await start()
    const projectId = "p1"
    await memberships.createProject(projectId)
    const { id } = await webhooks.create({ projectId, url: "https://receiver.example/a" })
    await events.publish({ projectId, type: "a.b", data: {} })
    const deliveries = () => webhooks.deliveries({ projectId, webhookId: id })
    await expect.poll(deliveries).toMatchObject([{ state: "delivered" }])
    await expect.poll(isReady).toBe(true)
    await close()
    expect(faults).toEqual([])
    const rows = async (statement: string, ...params: ReadonlyArray<unknown>) =>
      (await on(asApp, sql(statement, params))).length
    await execute(
      asOwner,
      "INSERT INTO tenure.events (id, project_number, type, at, body) SELECT gen_random_uuid(), 1, 'a.b', 'epoch', '{}'",
      `INSERT INTO tenure.deliveries (event_id, webhook_id, state, next_attempt_at)
       VALUES ('00000000-0000-7000-8000-000000000000', gen_random_uuid(), 'failed', now())`,
    )
    expect(await rows(deleteOldEvents('"tenure"'), 1)).toBe(1)
    expect(await rows(deleteOldFailedDeliveries('"tenure"'), 1)).toBe(1)
    // All days, those to come included.
    for (const _ of [1, 2, 3]) expect(await rows(dropDay('"tenure"'), -9)).toBe(1)
    expect(await rows(createDays('"tenure"'))).toBe(3)
    expect(await rows(beginAudit('"tenure"'), 1)).toBe(0)
    const encryption = { current: "k1", keys: { k1: new Uint8Array(32) } }
    expect(await on(asApp, rewriteSecrets({ encryption }))).toEqual({ changed: 1, problems: [] })
  })

  it("owns nothing indeed, and cannot change the past or the tables", async () => {
    const owned = `SELECT FROM pg_class WHERE relowner = 'tenure_app'::regrole`
    expect(await execute(asOwner, owned)).toEqual([[]])
    const [part] = await on(asOwner, valuesOf<string>("SELECT name FROM tenure.audit_parts"))
    for (const statement of [
      "UPDATE tenure.audit SET at = 'epoch'",
      "DELETE FROM tenure.audit",
      `DELETE FROM tenure.${part}`,
      `INSERT INTO tenure.${part} SELECT * FROM tenure.audit`,
      "SELECT tenure.drop_audit('1 day')",
      "SELECT tenure.create_audit_part('2000-01-01')",
      "DELETE FROM tenure.migrations",
      "TRUNCATE tenure.events",
      "CREATE TABLE tenure.mine ()",
      "DROP TABLE tenure.events",
      "SELECT tenure.create_day('2000-01-01')",
    ]) {
      await expect(execute(asApp, statement)).rejects.toMatchObject(refusal)
    }
    // A role that only reads cannot drop what is old either.
    await execute(asOwner, "REVOKE DELETE ON tenure.events FROM tenure_app")
    await expect(execute(asApp, "SELECT tenure.drop_day('1 day')")).rejects.toMatchObject(refusal)
    await execute(asOwner, "GRANT DELETE ON tenure.events TO tenure_app")
  })

  it("erases persons if it may, and otherwise changes nothing", async () => {
    const { close, memberships } = await start()
    const member = { projectId: "p1", userId: "1002" }
    await memberships.createProject("p1")
    await memberships.grant({ ...member, endDate: "2099-01-01T00:00:00.000Z" })
    await expect(memberships.erase(member)).rejects.toMatchObject(refusal)
    expect(await memberships.history(member)).toHaveLength(1)
    await memberships.find(member)
    const [, , erasing = []] = await documentedRoles()
    await execute(asOwner, ...erasing)
    await memberships.erase(member)
    expect(await memberships.history(member)).toEqual([])
    await close()
  })

  it("is told to leave migrations to the owner", async () => {
    await execute(asOwner, "UPDATE tenure.migrations SET version = version - 1")
    const refused = await createTenure({ stores: postgres({ url: app }) }).catch(String)
    expect(refused).toMatch(/permission denied.*run tenure migrate as the owner/)
  })
})
