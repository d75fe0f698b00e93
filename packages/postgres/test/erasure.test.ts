/** What is left in the database of a person who was erased: nothing. */

import { type Tenure, createTenure } from "@tenure/core"
import { WebhookTransport } from "@tenure/core/transport"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { afterAll, beforeAll, expect, inject, it } from "vitest"
import { postgres } from "../src/index.ts"
import { clientLayer, execute, sql } from "./harness.ts"

const schema = "erasing"
const projectId = "p1"
const userId = "90807060504"
const other = "10203040506"
const in2099 = "2099-01-01T00:00:00.000Z"

const query = <Row extends object>(text: string) =>
  Effect.runPromise(Effect.provide(sql<Row>(text), clientLayer({ maxConnections: 1 })))

/** What receivers answer at first. */
const answers = new Map([
  ["/waiting", 500],
  ["/failed", 410],
])

/** Receivers that respond with what they got. Those that have failed do not respond again. */
const transport = Layer.succeed(WebhookTransport, {
  sendsHttpToNames: true,
  send: ({ body, url }) =>
    Effect.suspend(() => {
      const { pathname } = new URL(url)
      const status = pathname === "/delivered" ? 204 : answers.get(pathname)
      answers.delete(pathname)
      return status === undefined
        ? Effect.never
        : Effect.succeed({ status, retryAfter: undefined, body })
    }),
})

let tenure: Tenure

beforeAll(async () => {
  await Effect.runPromise(execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`))
  tenure = await createTenure({
    stores: postgres({ url: inject("databaseUrl"), schema }),
    transport,
    // On a busy machine, too, the attempt at the silent receiver is still under way.
    webhooks: { timeout: "10 minutes" },
  })
})
afterAll(() => tenure.close())

/** Returns the tables that have the id of a user in any column, without the days of partitions. */
const tablesWith = async (id: string): Promise<ReadonlyArray<string>> => {
  const tables = await query<{ readonly name: string }>(
    `SELECT relname::text AS name FROM pg_class
     WHERE relnamespace = '${schema}'::regnamespace AND relkind = 'r'`,
  )
  expect(tables.length).toBeGreaterThan(15)
  const found = new Set<string>()
  for (const { name } of tables) {
    const rows = await query(`SELECT FROM ${schema}.${name} t WHERE t::text LIKE '%${id}%' LIMIT 1`)
    if (rows.length > 0) found.add(name.replace(/_\d{8}$/, ""))
  }
  return [...found].toSorted()
}

const extend = async (token: string) => {
  const { headers, status } = await tenure.handle({
    method: "PATCH",
    path: `/v2/projects/${projectId}/memberships/${userId}/extend`,
    headers: { authorization: `Bearer ${token}`, "idempotency-key": `extend-${userId}` },
    body: { _tag: "Parsed", value: { extend: in2099, reason: `${userId} has paid` } },
    remoteAddress: "127.0.0.1",
  })
  return [status, headers["Idempotent-Replayed"]]
}

/**
 * The state of the oldest delivery to each receiver, with the number of attempts, and that of the newest,
 * which may be attempted before the answer to the oldest is known.
 */
const states = async (webhookIds: ReadonlyArray<string>) => {
  const lists = await Promise.all(
    webhookIds.map((webhookId) => tenure.webhooks.deliveries({ projectId, webhookId })),
  )
  return lists.map((list) => [list.at(-1)?.state, list.at(-1)?.attempts.length, list.at(0)?.state])
}

/** Adds events outside the days, and a long history: more than one batch of both. */
const fill = async (at: string) => {
  const ofUser = `FROM generate_series(1, 2500), ${schema}.projects p WHERE p.id = '${projectId}'`
  const body = `{"type":"a.b","timestamp":"","data":{"user_id":"${userId}"}}`
  await query(`
    INSERT INTO ${schema}.events (id, project_number, type, at, body)
    SELECT gen_random_uuid(), p.number, 'a.b', '${at}', '${body}' ${ofUser}`)
  await query(`
    INSERT INTO ${schema}.audit (project_number, seq, user_id, action, at, reason)
    SELECT p.number, 0, '${userId}', 'extended', '${at}', 'as ${userId}' ${ofUser}`)
}

const places = () => query(`SELECT id, xid::text, at FROM ${schema}.events e ORDER BY e.xid, id`)

it("no table and no partition has the user id of a person who was erased", async () => {
  const { apiKeys, events, memberships, webhooks } = tenure
  await memberships.createProject(projectId)
  const { token } = await apiKeys.issue({ projects: [projectId] })
  const member = { projectId, userId }
  await memberships.import({
    projectId,
    memberships: [userId, other].map((one) => ({ userId: one, endDate: in2099 })),
  })
  const webhookIds: Array<string> = []
  for (const path of ["delivered", "waiting", "failed", "silent"]) {
    const { id } = await webhooks.create({ projectId, url: `https://receiver.example/${path}` })
    webhookIds.push(id)
  }
  expect(await extend(token)).toEqual([200, undefined])
  await memberships.extendAll({ projectId, endDate: in2099, idempotencyKey: "all" })
  await memberships.end({ ...member, reason: `${userId} has left` })
  await memberships.grant({ ...member, endDate: in2099, idempotencyKey: `grant-${userId}` })
  await memberships.move({ ...member, to: "ada", idempotencyKey: `move-${userId}` })
  await memberships.move({ ...member, userId: "ada", to: userId, reason: `${userId} is ada` })
  await events.publish({
    projectId,
    type: "a.b",
    data: { user_id: other, of: [{ user_id: other }] },
  })
  await events.publish({
    projectId,
    type: "a.b",
    data: [{ user_id: userId }, { user_id: Number(userId) }],
  })
  await expect
    .poll(() => states(webhookIds))
    .toEqual([
      ["delivered", 1, "delivered"],
      ["waiting", 1, "waiting"],
      ["failed", 1, "failed"],
      ["waiting", 0, "waiting"],
    ])
  await fill("2026-01-01")
  const everywhere = [
    "audit",
    "deliveries",
    "events",
    "events_default",
    "finished_deliveries",
    "memberships",
  ]
  expect(await tablesWith(userId)).toEqual(everywhere)
  const [before, ofOther] = [await places(), await tablesWith(other)]

  await memberships.erase({ ...member, idempotencyKey: `erase-${userId}` })
  expect(await tablesWith(userId)).toEqual([])
  expect(await tablesWith(other)).toEqual(ofOther)
  expect(await memberships.history(member)).toEqual([])
  // The feed keeps its order.
  expect((await places()).filter((_, index) => index < before.length)).toEqual(before)

  // As if the first request had been cut off after its first step.
  await fill("2026-01-01")
  expect(await tablesWith(userId)).toEqual(["audit", "events_default"])
  await memberships.erase({ ...member, idempotencyKey: `erase-${userId}` })
  expect(await tablesWith(userId)).toEqual([])

  // Another repetition brings nothing back.
  expect(await extend(token)).toEqual([200, "true"])
  expect(await tablesWith(userId)).toEqual([])
})
