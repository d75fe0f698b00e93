/** The roles of the documentation: one that owns the tables, and one that owns nothing. */

import { PgClient } from "@effect/sql-pg"
import { type Fault, createTenure } from "@tenure/core"
import { WebhookTransport } from "@tenure/core/transport"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
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
import { urlOf } from "./harness.ts"

const name = "tenure_roles"

const urlFor = (user?: string, password?: string): string => {
  const url = new URL(urlOf(name))
  if (user !== undefined) url.username = user
  if (password !== undefined) url.password = password
  return String(url)
}

const owner = urlFor("tenure_owner", "change me")
const app = urlFor("tenure_app", "change me, too")

const on = <A, E>(url: string, work: Effect.Effect<A, E, PgClient.PgClient>): Promise<A> =>
  work.pipe(
    Effect.provide(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 })),
    Effect.runPromise,
  )

const execute = (url: string, ...statements: ReadonlyArray<string>) =>
  on(
    url,
    PgClient.PgClient.use((sql) =>
      Effect.forEach(statements, (statement) => sql.unsafe<object>(statement)),
    ),
  )

const partsOfAudit = async () => {
  const parts = PgClient.PgClient.use((sql) =>
    sql.unsafe<{ readonly name: string }>("SELECT name FROM tenure.audit_parts"),
  )
  return (await on(owner, parts)).map(({ name: part }) => part)
}

const drop = [
  `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`,
  "DROP ROLE IF EXISTS tenure_app",
  "DROP ROLE IF EXISTS tenure_owner",
]

beforeAll(async () => {
  await execute(inject("databaseUrl"), ...drop, `CREATE DATABASE ${name}`)
  const [create = [], restrict = []] = await documentedRoles()
  await execute(urlFor(), ...create)
  expect(await on(owner, migrate())).not.toEqual([])
  await execute(owner, ...restrict)
})
afterAll(() => execute(inject("databaseUrl"), ...drop))

const transport = Layer.succeed(WebhookTransport, {
  sendsHttpToNames: true,
  send: ({ url }) =>
    Effect.succeed({ status: url.endsWith("/gone") ? 410 : 204, retryAfter: undefined, body: "" }),
})

describe("a role that owns nothing", () => {
  it("serves everything", async () => {
    const faults: Array<Fault> = []
    const tenure = await createTenure({
      stores: postgres({ url: app, migrate: false }),
      transport,
      onError: (fault) => void faults.push(fault),
    })
    const { apiKeys, events, memberships, webhooks } = tenure
    const projectId = "p1"
    const endDate = "2099-01-01T00:00:00.000Z"
    const member = { projectId, userId: "1001" }
    await memberships.createProject(projectId)
    await memberships.grant({ ...member, endDate })
    await memberships.extend({ ...member, endDate })
    await memberships.extendAll({ projectId, endDate })
    await memberships.end(member)
    expect(await memberships.history(member)).not.toEqual([])
    const { id, token } = await apiKeys.issue({ projects: [projectId] })
    const { status } = await tenure.handle({
      method: "GET",
      path: `/v2/projects/${projectId}/integrations/webhooks`,
      headers: { authorization: `Bearer ${token}` },
      body: { _tag: "Bytes", bytes: new Uint8Array() },
      remoteAddress: "127.0.0.1",
    })
    expect(status).toBe(200)
    await apiKeys.revoke(id)
    const created = await webhooks.create({ projectId, url: "https://receiver.example/a" })
    const gone = await webhooks.create({ projectId, url: "https://receiver.example/gone" })
    const webhook = { projectId, webhookId: created.id }
    await webhooks.rotateSecret(webhook)
    await webhooks.addSigningKey(webhook)
    await webhooks.ping(webhook)
    await events.publish({ projectId, type: "a.b", data: {} })
    const states = async () => (await webhooks.deliveries(webhook)).map(({ state }) => state)
    // The ping, the event, and the end of the other webhook.
    await expect.poll(states).toEqual(["delivered", "delivered", "delivered"])
    await webhooks.enable({ projectId, webhookId: gone.id })
    await webhooks.replayMany({ projectId, webhookId: gone.id, since: new Date(0) })
    await webhooks.delete({ projectId, webhookId: gone.id })
    await expect.poll(tenure.isReady).toBe(true)
    await tenure.close()
    expect(faults).toEqual([])
  })

  it("deletes what is old, and encrypts secrets", async () => {
    const asApp = (sql: string, ...params: ReadonlyArray<unknown>) =>
      on(
        app,
        PgClient.PgClient.use((client) => client.unsafe(sql, params)),
      )
    await execute(
      owner,
      "INSERT INTO tenure.events (id, project_number, type, at, body) SELECT gen_random_uuid(), 1, 'a.b', 'epoch', '{}'",
      `INSERT INTO tenure.deliveries (event_id, webhook_id, state, next_attempt_at)
       VALUES ('00000000-0000-7000-8000-000000000000', gen_random_uuid(), 'failed', now())`,
    )
    expect(await asApp(deleteOldEvents('"tenure"'), 1)).toHaveLength(1)
    expect(await asApp(deleteOldFailedDeliveries('"tenure"'), 1)).toHaveLength(1)
    // All days, those to come included.
    for (const _ of [1, 2, 3]) expect(await asApp(dropDay('"tenure"'), -9)).toHaveLength(1)
    expect(await asApp(createDays('"tenure"'))).toHaveLength(3)
    expect(await asApp(beginAudit('"tenure"'), 1)).toHaveLength(0)
    const encryption = { current: "k1", keys: { k1: new Uint8Array(32) } }
    expect(await on(app, rewriteSecrets({ encryption }))).toEqual({ changed: 1, problems: [] })
  })

  it("owns nothing indeed, and cannot change the past or the tables", async () => {
    const owned = `SELECT FROM pg_class WHERE relowner = 'tenure_app'::regrole`
    expect(await execute(owner, owned)).toEqual([[]])
    const [part] = await partsOfAudit()
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
      await expect(execute(app, statement)).rejects.toMatchObject({
        reason: { cause: { code: "42501" } },
      })
    }
  })

  it("erases persons if it may, and otherwise changes nothing", async () => {
    const webhooks = { missingKeys: "allow" } as const
    const stores = postgres({ url: app, migrate: false })
    const tenure = await createTenure({ stores, transport, webhooks })
    const { memberships } = tenure
    const member = { projectId: "p1", userId: "1002" }
    await memberships.grant({ ...member, endDate: "2099-01-01T00:00:00.000Z" })
    await expect(memberships.erase(member)).rejects.toMatchObject({
      reason: { cause: { code: "42501" } },
    })
    expect(await memberships.history(member)).toHaveLength(1)
    await memberships.find(member)
    const [, , erasing = []] = await documentedRoles()
    await execute(owner, ...erasing)
    await memberships.erase(member)
    expect(await memberships.history(member)).toEqual([])
    await tenure.close()
  })

  it("that only reads cannot drop what is old", async () => {
    await execute(owner, "REVOKE DELETE ON tenure.events FROM tenure_app")
    await expect(execute(app, "SELECT tenure.drop_day('1 day')")).rejects.toMatchObject({
      reason: { cause: { code: "42501" } },
    })
    await execute(owner, "GRANT DELETE ON tenure.events TO tenure_app")
  })

  it("is told to leave migrations to the owner", async () => {
    await execute(owner, "UPDATE tenure.migrations SET version = version - 1")
    const refusal = await createTenure({ stores: postgres({ url: app }) }).catch(String)
    expect(refusal).toMatch(/permission denied.*run tenure migrate as the owner/)
  })
})
