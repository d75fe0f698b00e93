/** What the database has left about an erased person: nothing, also from a host's transaction. */

import { describe, expect, it } from "@effect/vitest"
import { type Tenure, createTenure } from "@tenure/core"
import { MembershipStore, Outbox } from "@tenure/core/store"
import { WebhookTransport } from "@tenure/core/transport"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { makeErasures } from "../src/erasure.ts"
import { type Steps, during, duringSteps, executorOf, ownSchema, sql, valuesOf } from "./harness.ts"

const schema = "erasure"

const { empty, run, stores } = ownSchema(schema)

describe("a person who was erased", () => {
  const projectId = "p1"
  const userId = "90807060504"
  const other = "10203040506"
  const in2099 = "2099-01-01T00:00:00.000Z"

  /** What receivers answer at first. */
  const answers = new Map([["/waiting", 500]])
  /** What they always answer. */
  const constant = new Map([
    ["/delivered", 204],
    ["/failed", 410],
  ])

  /** Receivers that respond with what they got. */
  const transport = Layer.succeed(WebhookTransport, {
    sendsHttpToNames: true,
    send: ({ body, url }) =>
      Effect.suspend(() => {
        const { pathname } = new URL(url)
        const status = constant.get(pathname) ?? answers.get(pathname)
        answers.delete(pathname)
        return status === undefined
          ? Effect.never
          : Effect.succeed({ status, retryAfter: undefined, body })
      }),
  })

  /** Returns the tables that have a user's id in any column, without partition days. */
  const tablesWith = async (id: string): Promise<ReadonlyArray<string>> => {
    const tables = await run(
      valuesOf<string>(
        `SELECT relname::text FROM pg_class WHERE relnamespace = '${schema}'::regnamespace AND relkind = 'r'`,
      ),
    )
    expect(tables.length).toBeGreaterThan(15)
    const searches = tables.map(
      (name) =>
        `SELECT '${name}' WHERE EXISTS (SELECT FROM ${schema}.${name} t WHERE t::text LIKE '%${id}%')`,
    )
    const found = await run(valuesOf<string>(searches.join(" UNION ALL ")))
    return [...new Set(found.map((name) => name.replace(/_\d{8}$/, "")))].toSorted()
  }

  const extend = async ({ handle }: Tenure, token: string) => {
    const { headers, status } = await handle({
      method: "PATCH",
      path: `/v2/projects/${projectId}/memberships/${userId}/extend`,
      headers: { authorization: `Bearer ${token}`, "idempotency-key": `extend-${userId}` },
      body: { _tag: "Parsed", value: { extend: in2099, reason: `${userId} has paid` } },
      remoteAddress: "127.0.0.1",
    })
    return [status, headers["Idempotent-Replayed"]]
  }

  /** Adds events outside the days, and a long history: more than one batch each. */
  const fill = async () => {
    const at = "2026-01-01"
    const ofUser = `FROM generate_series(1, 2500), ${schema}.projects p WHERE p.id = '${projectId}'`
    const body = `{"type":"a.b","timestamp":"","data":{"user_id":"${userId}"}}`
    await run(
      Effect.all([
        sql(`
          INSERT INTO ${schema}.events (id, project_number, type, at, body)
          SELECT gen_random_uuid(), p.number, 'a.b', '${at}', '${body}' ${ofUser}`),
        sql(`
          INSERT INTO ${schema}.audit (project_number, seq, user_id, action, at, reason)
          SELECT p.number, 0, '${userId}', 'extended', '${at}', 'as ${userId}' ${ofUser}`),
      ]),
    )
  }

  const places = sql(`SELECT id, xid::text, at FROM ${schema}.events e ORDER BY e.xid, id`)

  it("is in no table and no partition", async () => {
    await run(empty)
    const tenure = await createTenure({
      stores,
      transport,
      // On a busy machine, too, the attempt at the silent receiver is still under way.
      webhooks: { timeout: "10 minutes" },
    })
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
    expect(await extend(tenure, token)).toEqual([200, undefined])
    await memberships.extendAll({ projectId, endDate: in2099, idempotencyKey: "all" })
    await memberships.end({ ...member, reason: `${userId} has left` })
    await memberships.grant({ ...member, endDate: in2099, idempotencyKey: `grant-${userId}` })
    await memberships.move({ ...member, to: "ada", idempotencyKey: `move-${userId}` })
    await memberships.move({ ...member, userId: "ada", to: userId, reason: `${userId} is ada` })
    for (const data of [
      { user_id: other, of: [{ user_id: other }] },
      [{ user_id: userId }, { user_id: Number(userId) }],
    ])
      await events.publish({ projectId, type: "a.b", data })
    // The oldest delivery to each receiver, and the newest, which may be attempted before the answer to the oldest is known.
    const states = () =>
      Promise.all(
        webhookIds.map(async (webhookId) => {
          const list = await webhooks.deliveries({ projectId, webhookId })
          return [list.at(-1)?.state, list.at(-1)?.attempts.length, list[0]?.state]
        }),
      )
    const others = [
      ["waiting", 1, "waiting"],
      ["failed", 1, "failed"],
      ["waiting", 0, "waiting"],
    ]
    await expect.poll(states).toEqual([["delivered", 1, "delivered"], ...others])
    const sentTwice = { projectId, webhookId: webhookIds[0] ?? "" }
    const eventId = (await webhooks.deliveries(sentTwice)).at(-1)?.eventId ?? ""
    await webhooks.replay({ ...sentTwice, eventId })
    await expect.poll(states).toEqual([["delivered", 2, "delivered"], ...others])
    await fill()
    expect(await tablesWith(userId)).toEqual([
      "audit",
      "delivered_runs",
      "deliveries",
      "events",
      "events_default",
      "finished_deliveries",
      "memberships",
    ])
    const [before, ofOther] = [await run(places), await tablesWith(other)]

    const erase = () => memberships.erase({ ...member, idempotencyKey: `erase-${userId}` })
    await erase()
    expect(await tablesWith(userId)).toEqual([])
    expect(await tablesWith(other)).toEqual(ofOther)
    expect(await memberships.history(member)).toEqual([])
    // The feed keeps its order.
    expect((await run(places)).filter((_, index) => index < before.length)).toEqual(before)

    // As if the first request had been cut off after its first step.
    await fill()
    expect(await tablesWith(userId)).toEqual(["audit", "events_default"])
    await erase()
    expect(await tablesWith(userId)).toEqual([])

    // Another repetition brings nothing back.
    expect(await extend(tenure, token)).toEqual([200, "true"])
    expect(await tablesWith(userId)).toEqual([])
    await tenure.close()
  })
})

describe("an erasure while a transaction is open that has published events of the person", () => {
  const { in2027, p1, u1, u2 } = Fixture
  const now = () => ({ ...Fixture.change(p1), at: Date.now() })

  /** Publishes events about two members. */
  const publish = Effect.gen(function* () {
    const outbox = yield* Outbox
    for (const userId of [u1, u2]) {
      const body = JSON.stringify({ type: "a.b", data: { user_id: userId } })
      yield* outbox.publish({ ...Fixture.event(p1), at: Date.now(), body })
    }
  })

  /** The published events' user ids, and those in the audit trail, which may have one more than once. */
  const userIds = valuesOf<string | null>(
    `SELECT body::jsonb #>> '{data,user_id}' AS user_id FROM ${schema}.events
     WHERE body LIKE '{"type":"a.b"%' ORDER BY xid, user_id NULLS FIRST`,
  )

  const pending = sql(`SELECT FROM ${schema}.erasures`)
  const isErased = Effect.repeat(
    sql(`SELECT FROM ${schema}.audit WHERE action = 'person_erased'`),
    { until: (rows) => rows.length > 0 },
  )

  /** Waits until the erasure has looked which transactions it has to wait for. */
  const hasLooked = Effect.repeat(
    sql(`
      SELECT FROM pg_stat_activity a JOIN ${schema}.audit e ON e.action = 'person_erased' AND a.query_start >= e.at
      WHERE a.pid <> pg_backend_pid() AND a.query LIKE '%"${schema}".events''::regclass%'`),
    { until: (rows) => rows.length > 0 },
  )

  /** Starts to erase a member while the transaction is open. */
  const startErasing = Effect.tap(
    Effect.flatMap(MembershipStore, (store) =>
      Effect.forkDetach(store.erase({ ...now(), userId: u1 })),
    ),
    isErased,
  )

  const onMembers = (name: string, steps: Steps) =>
    it.live(name, () =>
      Effect.gen(function* () {
        yield* empty
        const store = yield* MembershipStore
        yield* store.createProject(p1, Fixture.context)
        for (const userId of [u1, u2]) yield* store.grant({ ...now(), userId, endDate: in2027 })
        yield* Effect.gen(steps)
      }).pipe(Effect.provide(stores)),
    )

  onMembers("waits for one that is about to be committed", function* () {
    const fiber = yield* during(publish, Effect.tap(startErasing, hasLooked))
    yield* Fiber.join(fiber)
    expect(yield* userIds).toEqual([null, u2])
    expect(yield* pending).toEqual([])
  })

  onMembers("is completed afterwards if it is answered before", function* () {
    const store = yield* MembershipStore
    const { eraseDue } = makeErasures(yield* executorOf(schema))
    yield* duringSteps(publish, function* () {
      yield* Fiber.join(yield* startErasing)
      expect(yield* pending).toHaveLength(1)
      expect(yield* Effect.orDie(eraseDue)).toEqual([])
    })
    expect(yield* userIds).toEqual([u1, u2])
    // What is written since then stays: the person is back.
    yield* store.grant({ ...now(), userId: u1, endDate: in2027 })
    yield* publish
    // Other tests' transactions may hold it up.
    yield* Effect.repeat(eraseDue, { until: (rows) => rows.length > 0 })
    expect(yield* pending).toEqual([])
    expect(yield* userIds).toEqual([null, u2, u1, u2])
    expect((yield* store.find(p1, u1)).endDate).toBe(in2027)
    expect(yield* store.history(p1, { userId: u1, limit: 10 })).toMatchObject([
      { action: "granted" },
    ])
  })
})
