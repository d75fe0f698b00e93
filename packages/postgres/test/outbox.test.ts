/** Deliveries: their order, their rates and their ends, where claims and settlements see each other, and where many wait. */

import { PgClient } from "@effect/sql-pg"
import { describe, expect } from "@effect/vitest"
import {
  type AttemptResult,
  type Claim,
  type Event,
  type FailingAnnouncement,
  MembershipStore,
  NotInTransaction,
  Outbox,
  type StoredWebhook,
  WebhookId,
  WebhookStore,
  webhookRatePolicy,
} from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Schedule from "effect/Schedule"
import { postgresLayer } from "../src/index.ts"
import { type SettledRow, pickSettle, settle } from "../src/settlements.sql.ts"
import { blocksReadBy } from "./blocks.ts"
import {
  claimAll,
  claimUpTo,
  clientLayer,
  countRows,
  during,
  sql,
  testsAfter,
  valueOf,
  valuesOf,
  waitingOn,
} from "./harness.ts"

const schema = "outbox"
const { event, makeWebhook, context, p1, u1, u2 } = Fixture
const prepared = Effect.gen(function* () {
  yield* (yield* MembershipStore).createProject(p1, context)
  return yield* Outbox
})

const test = testsAfter(schema, prepared)

const add = Effect.fnUntraced(function* (more: Partial<StoredWebhook> = {}) {
  const webhook = { ...makeWebhook(p1), ...more }
  yield* (yield* WebhookStore).add(webhook, 100, context)
  return webhook
})

/** Publishes an event about each user. */
const publish = Effect.fnUntraced(function* (...userIds: ReadonlyArray<string>) {
  const events = userIds.map((userId) => event(p1, undefined, userId))
  for (const one of events) yield* (yield* Outbox).publish(one)
  return events
})

/** Runs a statement on `added`, the ids that this many copies have. */
const addCopies = ({ id }: StoredWebhook, count: number, statement: string) =>
  sql(`
    WITH added AS (
      INSERT INTO ${schema}.webhooks (id, project_number, url, secret, created_at, ordered, rate)
      SELECT gen_random_uuid(), project_number, url, secret, created_at, ordered, rate
      FROM ${schema}.webhooks, generate_series(1, ${count}) WHERE id = '${id}'
      RETURNING id
    )
    ${statement}`)

/** Adds deliveries like those for an event, as if there had been more events. */
const publishMore = (
  { id }: Event,
  webhook: StoredWebhook,
  count: number,
  state: "ready" | "blocked" = "ready",
) =>
  sql(`
    WITH published AS (
      INSERT INTO ${schema}.events (id, project_number, type, at, body)
      SELECT gen_random_uuid(), e.project_number, e.type, now(), e.body
      FROM ${schema}.events e, generate_series(1, ${count}) WHERE e.id = '${id}'
      RETURNING id, body
    )
    INSERT INTO ${schema}.deliveries (event_id, webhook_id, state, next_attempt_at, member)
    SELECT id, '${webhook.id}', '${state}', now(),
           CASE WHEN ${webhook.ordered} THEN ${schema}.member_of(body) END FROM published`)

const claims = Effect.map(claimAll, (all) => all.claims)
const claimedIds = Effect.map(claims, (all) => all.map((one) => one.event.id))

/** Claims the only delivery that is due. */
const claimOne = Effect.map(claims, ([one]) => one ?? expect.fail("nothing is due"))

const attempt = {
  at: 0,
  durationMillis: 1,
  result: { _tag: "Answered", status: 204, body: "" },
} as const
const delivered = { _tag: "Delivered", attempt } as const

describe("deliveries of an ordered webhook", () => {
  const statesOf = (events: ReadonlyArray<Event>) =>
    valuesOf<string>(
      `SELECT state FROM ${schema}.deliveries WHERE event_id = ANY ($1::uuid[]) ORDER BY position`,
      [`{${events.map(({ id }) => id).join()}}`],
    )

  test("are unblocked if they were blocked during the settlement before", function* (outbox) {
    const webhook = yield* add({ ordered: true })
    yield* publish("ada")
    const first = yield* claimOne
    const rest = yield* publish("ada", "ada")
    const settling = yield* during(
      sql(`SELECT * FROM ${schema}.block_deliveries(ARRAY['${webhook.id}'::uuid])`),
      Effect.tap(Effect.forkDetach(outbox.settle(first, delivered)), waitingOn(schema)),
    )
    expect(yield* Fiber.join(settling)).toBe("Settled")
    expect(yield* statesOf(rest)).toEqual(["ready", "blocked"])
    expect(yield* claimedIds).toEqual([rest[0]?.id])
  })

  test("are not claimed during the settlement before, for which no claim waits", function* () {
    const webhook = yield* add({ ordered: true })
    const events = yield* publish("ada", "ada")
    const first = yield* claimOne
    // The first claim has blocked it.
    yield* sql(`UPDATE ${schema}.deliveries SET state = 'ready' WHERE state = 'blocked'`)
    const meanwhile = yield* during(sql(`SELECT FROM ${schema}.leases FOR UPDATE`), claimAll)
    expect(meanwhile).toMatchObject({ claims: [], keptBack: [webhook.id] })
    expect(yield* statesOf(events)).toEqual(["fresh", "ready"])
    yield* (yield* Outbox).settle(first, delivered)
    expect(yield* claimedIds).toEqual([events[1]?.id])
  })

  test("are not claimed while a later one is, also if others of its claim were settled", function* (outbox) {
    const webhook = yield* add({ ordered: true })
    const [earlier] = yield* publish("ada", "bob")
    for (const claim of yield* claims) yield* outbox.settle(claim, delivered)
    const [later] = yield* publish("ada", "bob")
    const [ofAda, ofBob] = (yield* claims).toSorted((one) => (one.event.id === later?.id ? -1 : 1))
    yield* outbox.settle(ofBob ?? expect.fail(), delivered)
    // Its place is before the one that is claimed.
    yield* outbox.replay({ projectId: p1, webhookId: webhook.id }, earlier?.id ?? expect.fail())
    expect(yield* claimedIds).toEqual([])
    yield* outbox.settle(ofAda ?? expect.fail(), delivered)
    expect(yield* claimedIds).toEqual([earlier?.id])
  })

  test("are blocked by claims, a thousand at a time", function* () {
    const webhook = yield* add({ ordered: true })
    for (const first of yield* publish("ada")) yield* publishMore(first, webhook, 3000)
    for (const blocked of [999, 1999, 2999, 3000]) {
      yield* claimAll
      expect(yield* countRows(`${schema}.deliveries WHERE state = 'blocked'`)).toBe(blocked)
    }
    expect((yield* claimAll).nextDueMillis).not.toBe(0)
  })

  const nobody = "'00000000-0000-0000-0000-000000000000'"

  /** How many blocks a claim reads, for up to so many deliveries. */
  const blocksOfClaim = (most: number) =>
    blocksReadBy(
      `SELECT * FROM ${schema}.claim(${nobody}, 0, ${most}, 100, 4, 16, 100, '{}', '{}', 30000, ${nobody}, '{}')`,
      [],
    ).pipe(Effect.provide(clientLayer({ maxConnections: 1 })))

  // No index has entries from earlier tests, and nothing is known about the tables.
  const emptied = sql(`TRUNCATE ${schema}.deliveries, ${schema}.leases`)

  test("take no part in claims for others, however many of a member wait", function* () {
    yield* emptied
    const webhook = yield* add({ ordered: true })
    const [first] = yield* publish("ada")
    yield* claimAll
    // In more than 300 blocks.
    yield* publishMore(first ?? expect.fail(), webhook, 10_000, "blocked")
    const other = yield* add()
    yield* (yield* Outbox).publishTo(event(p1), other.id)
    expect(yield* blocksOfClaim(100)).toBeLessThan(150)
    expect(yield* claimedIds).toHaveLength(1)
  })

  test("are blocked by one claim in many webhooks, of which nothing is known", function* () {
    yield* emptied
    const webhook = yield* add({ ordered: true })
    yield* addCopies(
      webhook,
      400,
      `INSERT INTO ${schema}.deliveries (event_id, webhook_id, next_attempt_at, member)
       SELECT gen_random_uuid(), id, now(), n / 2 FROM added, generate_series(0, 49) n`,
    )
    // A join between what is blocked and all that is open reads eight times as much.
    expect(yield* blocksOfClaim(1000)).toBeLessThan(500_000)
    yield* claimUpTo(1000)
    expect(yield* countRows(`${schema}.deliveries WHERE state = 'blocked'`)).toBeGreaterThan(1000)
  })

  test("start again by a replay of one event as by a replay of many", function* (outbox) {
    const [one, many] = [yield* add({ ordered: true }), yield* add({ ordered: true })]
    const events = (yield* publish(u1, u2)).map(({ id }) => id)
    for (const claim of yield* claims) {
      const failed = { _tag: "Failed", attempt, holdMillis: 0 } as const
      yield* outbox.settle(claim, claim.event.id === events[0] ? delivered : failed)
    }
    for (const id of events)
      expect(yield* outbox.replay({ projectId: p1, webhookId: one.id }, id)).toBe(1)
    const replayed = yield* outbox.replayMany(
      { projectId: p1, webhookId: many.id },
      {
        since: 0,
        types: undefined,
        position: undefined,
        isDryRun: false,
        kinds: ["failed", "delivered"],
      },
    )
    expect(replayed).toMatchObject({ replayed: 2 })

    // All columns but the webhook's id, the times and `is_replay`, in which they differ.
    const rowsOf = ({ id }: StoredWebhook) =>
      sql(
        `SELECT d.event_id, d.state, d.claim_count, d.attempts, d.member,
                d.attempted_at IS NOT NULL AS is_attempted, d.next_attempt_at <= clock_timestamp() AS is_due,
                (SELECT count(*) FROM ${schema}.deliveries o
                 WHERE o.webhook_id = d.webhook_id AND o.position < d.position)::integer AS place
         FROM ${schema}.deliveries d WHERE d.webhook_id = $1::uuid ORDER BY d.position`,
        [id],
      )
    const rows = yield* rowsOf(one)
    expect(rows).toEqual(yield* rowsOf(many))
    expect(rows).toMatchObject(
      events.map((id) => ({ event_id: id, state: "ready", member: expect.anything() })),
    )
  })
})

describe("a dispatcher is told to abort the attempts", () => {
  /** Waits until a dispatcher is told about a webhook, perhaps after others. */
  const told = ({ id }: StoredWebhook) =>
    Effect.repeat(
      Outbox.use(({ nextChange }) => nextChange),
      { until: (change) => change._tag === "Stopped" && change.webhookId === id },
    )

  const remove = ({ id }: StoredWebhook) =>
    WebhookStore.use((store) => store.remove(p1, id, context))

  const disable = (webhook: StoredWebhook) => {
    const settings = { ...webhook, disabled: { at: 0, by: "request" } } as const
    const changed = { expected: webhook, settings, changes: [] }
    return WebhookStore.use((store) =>
      store.update({ projectId: p1, webhookId: webhook.id }, changed, context),
    )
  }

  for (const [what, stop] of [
    ["is removed", remove],
    ["is disabled by request", disable],
  ] as const)
    test(`for a webhook that ${what}, by a notification`, function* () {
      const { nextChange } = yield* Outbox
      // One from before it listens is lost.
      yield* Effect.repeat(
        Effect.gen(function* () {
          yield* stop(yield* add())
          return yield* nextChange
        }),
        { until: ({ _tag }) => _tag === "Stopped" },
      )
      const webhook = yield* add()
      yield* stop(webhook)
      yield* told(webhook)
    })

  for (const [what, change] of [
    ["removed", `DELETE FROM ${schema}.webhooks`],
    [
      "disabled by request",
      `UPDATE ${schema}.webhooks SET disabled_at = now(), disabled_by = 'request'`,
    ],
  ] as const)
    test(`for a webhook that was ${what}, if the notification is lost`, function* () {
      const webhook = yield* add()
      yield* publish("ada")
      yield* claimOne
      yield* sql(change)
      yield* told(webhook)
    })
})

describe("a dispatcher", () => {
  const now = "clock_timestamp()"

  /** Adds another dispatcher. */
  const insertOther = (seenAt: string, busyAt = "to_timestamp(0)") =>
    `INSERT INTO ${schema}.dispatchers (id, seen_at, since, busy_at)
     VALUES (gen_random_uuid(), ${seenAt}, ${seenAt}, ${busyAt})`

  for (const [when, seenAt] of [
    ["died", `${now} - interval '1 minute'`],
    ["died before the clock was set back", `${now} + interval '1 year'`],
  ] as const)
    test(`takes over the claims of one that ${when}`, function* () {
      yield* add()
      yield* publish("ada")
      const [lost] = (yield* claimUpTo(1, 3_600_000)).claims
      yield* sql(`
        WITH other AS (${insertOther(seenAt)} RETURNING id),
        own AS (UPDATE ${schema}.dispatchers SET since = since - interval '1 minute')
        UPDATE ${schema}.leases SET dispatcher = (SELECT id FROM other)`)
      const [claim] = yield* Effect.repeat(claims, {
        until: (all) => all.length > 0,
        schedule: Schedule.spaced("20 millis"),
      })
      expect(claim).toMatchObject({ event: lost?.event, attemptNumber: 2 })
    })

  test("takes over the claims of one that died also if they were locked at first", function* () {
    yield* add()
    yield* publish("ada", "ada")
    const lost = (yield* claimUpTo(2, 3_600_000)).claims
    // The next claim notices at once that the other one is gone.
    yield* sql(`
      WITH other AS (${insertOther(`${now} - interval '1 minute'`)} RETURNING id),
      own AS (
        UPDATE ${schema}.dispatchers SET seen_at = clock_timestamp(), since = clock_timestamp() - interval '1 minute'
      )
      UPDATE ${schema}.leases SET dispatcher = (SELECT id FROM other)`)
    // As by a settlement, or by a claim that blocks deliveries.
    expect(yield* during(sql(`SELECT FROM ${schema}.leases FOR NO KEY UPDATE`), claims)).toEqual([])
    expect(yield* claims).toHaveLength(lost.length)
  })

  test("waits while all that is ready is claimed, however many webhooks have some", function* () {
    const webhook = yield* add()
    yield* publish("ada")
    yield* addCopies(
      webhook,
      600,
      `INSERT INTO ${schema}.deliveries (event_id, webhook_id, next_attempt_at)
       SELECT d.event_id, a.id, now() FROM ${schema}.deliveries d, added a`,
    )
    const claimed = yield* Effect.replicateEffect(claimUpTo(1000), 6)
    expect(claimed.flatMap((one) => one.claims)).toHaveLength(601)
    // A claim looks at 512.
    expect(yield* claimUpTo(1000)).toMatchObject({ claims: [], keptBack: [] })
    expect((yield* claimUpTo(1000)).nextDueMillis).toBeGreaterThan(10_000)
  })

  test("claims beside one that was busy before the clock was set back", function* () {
    // One in each lane.
    for (const digit of "0123456789abcdef") {
      yield* add({ id: WebhookId(`${digit}${crypto.randomUUID().slice(1)}`) })
    }
    yield* publish("ada")
    yield* sql(insertOther(now, `${now} + interval '1 year'`))
    expect((yield* claimUpTo(100)).claims).toHaveLength(16)
  })
})

describe("the rate of a webhook", () => {
  const claimMany = claimUpTo(1000)

  test("bounds what several processes claim together", function* () {
    const rate = 200
    const { capacity } = webhookRatePolicy(rate)
    const webhook = yield* add({ rate })
    for (const first of yield* publish("ada")) yield* publishMore(first, webhook, 999)
    const clock = valueOf<number>("SELECT extract(epoch FROM clock_timestamp())::float8")
    const processes = Array.from({ length: 3 }, () =>
      claimMany.pipe(
        Effect.map((claimed) => claimed.claims.length),
        Effect.replicateEffect(10),
        Effect.provide(Layer.fresh(Layer.provideMerge(postgresLayer({ schema }), clientLayer()))),
      ),
    )
    const begin = yield* clock
    const counts = yield* Effect.all(processes, { concurrency: "unbounded" })
    const seconds = (yield* clock) - begin
    const total = counts.flat().reduce((sum, count) => sum + count, 0)
    expect(total).toBeGreaterThanOrEqual(capacity)
    expect(total).toBeLessThanOrEqual(capacity + rate * seconds)
  })

  test("hides no other webhook, however many wait for a token", function* () {
    const webhook = yield* add({ rate: 1 })
    yield* publish("ada")
    const other = yield* add()
    // Not by the outbox, which would look at the webhook first.
    yield* addCopies(
      webhook,
      1000,
      `, taken AS (
        INSERT INTO ${schema}.rate_limit_buckets (id, full_at)
        SELECT 'webhook:' || id, 0 FROM added UNION ALL SELECT 'webhook:${webhook.id}', 0
      )
      INSERT INTO ${schema}.deliveries (event_id, webhook_id, next_attempt_at)
      SELECT d.event_id, a.id, now()
      FROM ${schema}.deliveries d, (SELECT id FROM added UNION ALL SELECT '${other.id}') a`,
    )
    const claimed: Array<string> = []
    // A claim looks at 512.
    for (let count = 0; count < 2; count++) {
      // A token would return after a second.
      yield* sql(`
        UPDATE ${schema}.rate_limit_buckets
        SET full_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 1000000`)
      claimed.push(...(yield* claimMany).claims.map((one) => one.webhook.webhookId))
    }
    expect(claimed).toContain(other.id)
  })

  test("refills a bucket that was taken from before the clock was set back", function* () {
    yield* add({ rate: 1 })
    yield* publish("ada", "ada", "ada")
    expect(yield* claims).toHaveLength(1)
    const move = (by: string) =>
      sql(`UPDATE ${schema}.rate_limit_buckets SET full_at = full_at + ${by} * 1000000::bigint`)
    yield* move("3600")
    const waiting = yield* claimAll
    expect(waiting).toMatchObject({ claims: [], nextDueMillis: expect.any(Number) })
    expect(waiting.nextDueMillis).toBeLessThanOrEqual(1000)
    yield* move("-1")
    expect(yield* claims).toHaveLength(1)
  })
})

test("the deliveries of an event are in the order of webhooks, not of rows", function* () {
  const added = yield* Effect.replicateEffect(add(), 6)
  // A column in an index changes, so their rows move behind the others.
  const moved = added.slice(0, 3).map(({ id }) => `'${id}'`)
  yield* sql(
    `UPDATE ${schema}.webhooks SET paused_until = now() - interval '1 hour' WHERE id IN (${moved.join()})`,
  )
  // So small a table is read as a whole.
  yield* sql(`ANALYZE ${schema}.webhooks`)
  const [published] = yield* publish("ada")
  const { deliveries } = yield* (yield* Outbox).find(p1, published?.id ?? expect.fail())
  expect(deliveries.map(({ webhookId }) => webhookId)).toEqual(added.map(({ id }) => id))
})

describe("a webhook that fails", () => {
  const failingSince = 1_800_000_000_000
  const timeout = { ...attempt, result: { _tag: "Failed", reason: "Timeout" } } as const

  const failing = (percent: FailingAnnouncement["percent"]): FailingAnnouncement => ({
    percent,
    failingSince,
    event: event(p1, `failing.${percent}`),
  })

  const retry = (percent: FailingAnnouncement["percent"]) =>
    ({
      _tag: "Retry",
      attempt: timeout,
      delayMillis: 0,
      holdMillis: 0,
      failing: failing(percent),
    }) as const

  const disable = (announced?: FailingAnnouncement) =>
    ({
      _tag: "Disabled",
      attempt: timeout,
      announcement: event(p1, "disabled"),
      failing: announced,
    }) as const

  const settleAll = (
    settlements: ReadonlyArray<{ readonly claim: Claim; readonly settlement: AttemptResult }>,
  ) =>
    Effect.map(sql<SettledRow>(...pickSettle(settle(`"${schema}"`), settlements)), (rows) =>
      rows.toSorted((one, other) => one.n - other.n).map(({ result }) => result),
    )

  const announced = valuesOf<string>(
    `SELECT type FROM ${schema}.events WHERE type <> 'test.happened' ORDER BY type`,
  )

  /** Claims two deliveries for a failing webhook. */
  const claimTwo = Effect.gen(function* () {
    yield* add()
    yield* publish("ada", "ada")
    const claimed = yield* claims
    yield* sql(
      `UPDATE ${schema}.webhooks SET failures = 1, failing_since = to_timestamp(${failingSince / 1000})`,
    )
    return claimed
  })

  for (const [what, by, results, types] of [
    ["is disabled", () => disable(), ["Settled", "WebhookDisabled"], ["disabled"]],
    ["is failing", () => retry(50), ["Settled", "WebhookFailing"], ["failing.50"]],
  ] as const)
    test(`is announced once if it ${what} by two settlements`, function* () {
      const settling = Effect.forEach(yield* claimTwo, (claim) =>
        Effect.forkDetach(settleAll([{ claim, settlement: by() }])),
      )
      const fibers = yield* during(
        sql(`SELECT FROM ${schema}.webhooks FOR UPDATE`),
        Effect.tap(settling, waitingOn(schema, 2)),
      )
      const settled = yield* Effect.forEach(fibers, Fiber.join)
      expect(settled.flat().toSorted()).toEqual(results)
      expect(yield* announced).toEqual(types)
    })

  for (const [what, one, other, result, types] of [
    ["the greatest share", retry(90), retry(50), "WebhookFailing", ["failing.90"]],
    [
      "that it is disabled",
      disable(failing(100)),
      retry(90),
      "WebhookDisabled",
      ["disabled", "failing.100"],
    ],
    ["that it is gone", disable(), retry(50), "WebhookDisabled", ["disabled"]],
    ["nothing after a success", retry(50), delivered, "Settled", []],
    [
      "nothing for an earlier run",
      disable({ ...failing(100), failingSince: 0 }),
      { ...retry(50), failing: undefined },
      "Settled",
      [],
    ],
  ] as const)
    test(`has a batch announce ${what}`, function* () {
      const settlements = (yield* claimTwo).map((claim, index) => ({
        claim,
        settlement: index === 0 ? other : one,
      }))
      expect(yield* settleAll(settlements)).toEqual(["Settled", result])
      expect(yield* announced).toEqual(types)
    })
})

test("a delivery that cannot be read is logged as others that are given up", function* () {
  const lines: Array<Readonly<Record<string, unknown>>> = []
  const logger = Logger.make(({ fiber, message }) => {
    lines.push({ message: String(message), ...fiber.getRef(References.CurrentLogAnnotations) })
  })
  const { id } = yield* add()
  yield* publish("ada", "ada")
  yield* sql(`UPDATE ${schema}.events SET body = repeat('x', 10 * 1024 * 1024)`)
  expect(yield* Effect.provide(claims, Logger.layer([logger]))).toEqual([])
  const line = {
    message: "A delivery was given up",
    project_id: p1,
    webhook_id: id,
    event_id: expect.any(String),
    attempts: 1,
    reason: "Unreadable",
  }
  expect(lines).toEqual([line, line])
})

test("a cancellation is refused in a transaction, where claims would wait for it", function* (outbox) {
  const { id } = yield* add()
  yield* publish("ada")
  const selection = { since: undefined, until: undefined, types: undefined, userId: undefined }
  const client = yield* PgClient.PgClient
  const cancel = (isDryRun: boolean) =>
    client.withTransaction(
      outbox.cancel({ projectId: p1, webhookId: id }, { ...selection, isDryRun }, context),
    )
  expect(yield* cancel(true)).toBe(1)
  expect(yield* Effect.flip(Effect.catchDefect(cancel(false), Effect.fail))).toBeInstanceOf(
    NotInTransaction,
  )
  expect(yield* countRows(`${schema}.deliveries`)).toBe(1)
})
