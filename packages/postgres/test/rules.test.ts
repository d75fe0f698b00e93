/** The rules that are said in TypeScript and in SQL: both are given the same 10,000 inputs. */

import { expect, it } from "@effect/vitest"
import {
  bucketSpan,
  bulkChangeNames,
  bulkModes,
  concurrencyRange,
  currentTat,
  makeDecideAnnouncement,
  mentionsUser,
  waitMicros,
} from "@tenure/core/internal"
import {
  type BulkChange,
  EndDate,
  EventId,
  EventType,
  Micros,
  Millis,
  ProjectId,
  UserId,
  adjustmentOf,
  bucketPolicy,
  clampConcurrency,
  composeLog,
  concurrencyAfterFailure,
  concurrencyAfterSuccess,
  effectiveEndDate,
  eraseUser,
  maxAttemptsOfWebhook,
  remainingTokens,
  takeToken,
  userOf,
  webhookRatePolicy,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import { bodyWithoutUser, mentionsUser as mentionsUserSql } from "../src/erasure.ts"
import { migrate } from "../src/index.ts"
import { type BacklogRow, backlog, concurrencyAfter, toBacklog } from "../src/outbox.sql.ts"
import { currentFullAt, tokensLeft } from "../src/rate-limits.ts"
import { effectiveDateLocked, effectiveEndDateSql, nextCheckOf } from "../src/sql/clauses.ts"
import {
  type Integer,
  bigintsParam,
  instantsParam,
  integerParam,
  integersParam,
  millisOf,
  textsParam,
} from "../src/sql/values.ts"
import { clientLayer, execute, sql } from "./harness.ts"

const userId = UserId("7")

const schema = "rules"
const quoted = `"${schema}"`
const seed = 20_260_101

const connected = clientLayer({ maxConnections: 1 })

const tables = Effect.andThen(
  execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`),
  migrate({ schema }),
)

const dayMillis = 86_400_000

// Some are near the end of time, where nothing can be added.
const date = fc
  .oneof(fc.nat({ max: 9 }), fc.integer({ min: 2_932_890, max: 2_932_896 }))
  .map((days) => EndDate(days * dayMillis))

const bulkChange: fc.Arbitrary<BulkChange> = fc.oneof(
  fc.record({ mode: fc.constantFrom(...bulkModes), endDate: date }),
  fc.record({
    mode: fc.constant("extendBy" as const),
    by: fc.integer({ min: 1, max: 9 }).map((days) => Millis(days * dayMillis)),
  }),
)

/** The bulk extensions of a project, and the dates that ten members were given between them. */
const project = fc.record({
  bulk: fc.array(fc.record({ change: bulkChange, isUndone: fc.boolean() }), { maxLength: 12 }),
  own: fc.array(fc.record({ endDate: date, after: fc.nat({ max: 12 }), by: fc.nat({ max: 1 }) }), {
    minLength: 10,
    maxLength: 10,
  }),
})

// Of two neighbours, a bulk extension has the first number, so that a member may also have exactly this one.
const bulkSeq = (index: number): number => 2 * index

const projects = fc.sample(project, { numRuns: 1000, seed }).map(({ bulk, own }, index) => ({
  number: index + 1,
  bulk: bulk.map((one, place) => ({
    ...one,
    adjustment: adjustmentOf(one.change),
    order: bulkSeq(place + 1),
  })),
  own: own.map(({ after, by, endDate }) => ({ endDate, order: bulkSeq(after) + by })),
}))

const owners = projects.flatMap(({ bulk, number, own }) =>
  own.map((one) => ({ number, composed: composeLog(bulk), own: one })),
)

const extensions = projects.flatMap(({ bulk, number }) => bulk.map((one) => ({ ...one, number })))

const idOf = "lpad(number::text || '0' || seq::text, 32, '0')::uuid"

/** Fills the tables by the functions that the statements call. */
const filled = Effect.gen(function* () {
  yield* tables
  yield* sql(
    `INSERT INTO ${schema}.projects (id, number, bulk_seq) OVERRIDING SYSTEM VALUE
     SELECT 'p' || n, n, bulk_seq FROM unnest($1::bigint[]) WITH ORDINALITY AS p (bulk_seq, n)`,
    [bigintsParam(projects.map(({ bulk }) => BigInt(bulk.at(-1)?.order ?? 0)))],
  )
  yield* sql(
    `SELECT ${schema}.add_bulk_extension(
       number, seq, ${idOf}, mode, end_date, by * interval '1 millisecond', now(), NULL, NULL, NULL, 0)
     FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::timestamptz[], $5::bigint[]) AS e (number, seq, mode, end_date, by)`,
    [
      bigintsParam(extensions.map(({ number }) => BigInt(number))),
      bigintsParam(extensions.map(({ order }) => BigInt(order))),
      textsParam(extensions.map(({ change: { mode } }) => bulkChangeNames[mode])),
      instantsParam(
        extensions.map(({ change: one }) => (one.mode === "extendBy" ? undefined : one.endDate)),
      ),
      bigintsParam(
        extensions.map(({ change: one }) => (one.mode === "extendBy" ? BigInt(one.by) : undefined)),
      ),
    ],
  )
  const undone = extensions.filter(({ isUndone }) => isUndone)
  const outcomes = yield* sql<{ readonly outcome: string }>(
    `SELECT ${schema}.undo_bulk_extension(number, ${idOf}, '-infinity', now(), NULL, NULL) AS outcome
     FROM unnest($1::bigint[], $2::bigint[]) AS e (number, seq)`,
    [
      bigintsParam(undone.map(({ number }) => BigInt(number))),
      bigintsParam(undone.map(({ order }) => BigInt(order))),
    ],
  )
  expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(new Set(["undone"]))
  yield* sql(
    `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq)
     SELECT number, n::text, end_date, seq
     FROM unnest($1::integer[], $2::timestamptz[], $3::bigint[]) WITH ORDINALITY AS m (number, end_date, seq, n)`,
    [
      integersParam(owners.map(({ number }) => number)),
      instantsParam(owners.map(({ own }) => own.endDate)),
      bigintsParam(owners.map(({ own }) => BigInt(own.order))),
    ],
  )
})

/** The dates of all members, in the order in which they were made. */
const datesBy = (expression: string) =>
  Effect.map(
    sql<{ readonly end_date: Integer }>(
      `SELECT ${millisOf(expression)} AS end_date
       FROM ${schema}.memberships m
       JOIN ${schema}.projects p ON p.number = m.project_number
       JOIN ${schema}.memberships_current c ON c.project_id = p.id AND c.user_id = m.user_id
       ORDER BY m.user_id::integer`,
    ),
    (found) => found.map(({ end_date }) => Number(end_date)),
  )

it.live("10,000 members have the same effective end dates in core and in SQL", () =>
  Effect.gen(function* () {
    yield* filled
    const expected = owners.map(({ composed, own }) => effectiveEndDate(composed, own))
    expect(expected).toHaveLength(10_000)
    // Not as if the rule did nothing.
    expect(
      owners.filter(({ own }, index) => own.endDate !== expected[index]).length,
    ).toBeGreaterThan(3000)
    expect(yield* datesBy("c.end_date")).toEqual(expected)
    expect(yield* datesBy(effectiveEndDateSql(quoted))).toEqual(expected)
    expect(yield* datesBy(effectiveDateLocked(quoted))).toEqual(expected)
  }).pipe(Effect.provide(connected)),
)

it.live("the planner puts the rule into the statements that call it", () =>
  Effect.gen(function* () {
    for (const expression of [effectiveEndDateSql(quoted), effectiveDateLocked(quoted)]) {
      const plan = yield* sql(
        `EXPLAIN (VERBOSE, FORMAT JSON)
         SELECT ${expression} FROM ${schema}.memberships m JOIN ${schema}.projects p ON p.number = m.project_number`,
      )
      expect(JSON.stringify(plan)).toMatch(/CASE WHEN \(m\.seq >= p\.bulk_seq\)/)
      expect(JSON.stringify(plan)).not.toContain("effective_end_date")
    }
  }).pipe(Effect.provide(connected)),
)

const inputs = <A>(arbitrary: fc.Arbitrary<A>, numRuns = 10_000): ReadonlyArray<A> =>
  fc.sample(arbitrary, { numRuns, seed })

/** Evaluates an expression for each row of parameters, which are arrays. Returns texts. */
const evaluate = (
  expression: string,
  columns: Readonly<Record<string, readonly [type: string, params: unknown]>>,
) => {
  const types = Object.values(columns).map(([type], index) => `$${index + 1}::${type}[]`)
  return Effect.map(
    sql<{ readonly value: string }>(
      `SELECT (${expression})::text AS value
       FROM unnest(${types.join(", ")}) WITH ORDINALITY AS a (${Object.keys(columns).join(", ")}, n)
       ORDER BY n`,
      Object.values(columns).map(([, params]) => params),
    ),
    (rows) => rows.map(({ value }) => value),
  )
}

const bigints = (values: ReadonlyArray<number>) =>
  ["bigint", bigintsParam(values.map(BigInt))] as const

it.live("the planner puts the rules on claims into the statements that call them", () =>
  Effect.gen(function* () {
    const plan = yield* sql(
      `EXPLAIN (VERBOSE, FORMAT JSON)
       SELECT ${quoted}.clamp_concurrency(w.concurrency, 1, w.failures),
              ${quoted}.max_attempts_of_webhook(w.concurrency, w.failures, w.position - 1),
              ${quoted}.rate_tokens(w.rate, b.full_at, 1)
       FROM ${schema}.webhooks w, ${schema}.rate_limit_buckets b`,
    )
    expect(JSON.stringify(plan)).toMatch(/GREATEST\(1, LEAST\(w\.concurrency, w\.failures\)\)/)
    expect(JSON.stringify(plan)).not.toMatch(
      /clamp_concurrency|max_attempts|rate_tokens|rate_full_at/,
    )
  }).pipe(Effect.provide(connected)),
)

it.live("a token bucket", () =>
  Effect.gen(function* () {
    const cases = inputs(
      fc.record({
        limit: fc.integer({ min: 1, max: 1000 }),
        capacity: fc.integer({ min: 1, max: 50 }),
        now: fc.integer({ min: 1_700_000_000_000_000, max: 1_900_000_000_000_000 }),
        // In ten-thousandths of the time in which it becomes full: before, within and beyond that.
        place: fc.integer({ min: -5000, max: 20_000 }),
      }),
    ).map(({ capacity, limit, now: at, place }) => {
      const policy = bucketPolicy({ limit, capacity, window: Millis(60_000) })
      const now = Micros(at)
      return { policy, now, tat: Micros(at + Math.round((bucketSpan(policy) * place) / 10_000)) }
    })
    const fullAt = currentFullAt("full_at", "now", "span")
    const columns = {
      full_at: bigints(cases.map(({ tat }) => tat)),
      now: bigints(cases.map(({ now }) => now)),
      span: bigints(cases.map(({ policy }) => bucketSpan(policy))),
      increment: bigints(cases.map(({ policy }) => policy.increment)),
    }
    expect(yield* evaluate(fullAt, columns)).toEqual(
      cases.map(({ now, policy, tat }) => String(currentTat(tat, now, policy))),
    )
    for (const type of ["bigint", "float8"]) {
      const left = tokensLeft(`(${fullAt})::${type}`, `now::${type}`, "increment", "span")
      const tokens = yield* evaluate(left, columns)
      expect(tokens).toEqual(
        cases.map(({ now, policy, tat }) => String(remainingTokens(tat, now, policy))),
      )
      expect(tokens.map((count) => count !== "0")).toEqual(
        cases.map(({ now, policy, tat }) => takeToken(tat, now, policy).admitted),
      )
    }
  }).pipe(Effect.provide(connected)),
)

it.live("the token bucket of a webhook's rate", () =>
  Effect.gen(function* () {
    yield* tables
    const cases = inputs(
      fc.record({
        rate: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 10_000 })),
        now: fc.integer({ min: 1_700_000_000_000_000, max: 1_900_000_000_000_000 }),
        // In ten-thousandths of the time in which it becomes full: before, within and beyond that.
        place: fc.option(fc.integer({ min: -5000, max: 20_000 }), { nil: undefined }),
      }),
    ).map(({ now: at, place, rate }) => {
      const policy = webhookRatePolicy(rate)
      const now = Micros(at)
      const span = bucketSpan(policy)
      const stored =
        place === undefined ? undefined : Micros(at + Math.round((span * place) / 10_000))
      return { rate, policy, now, stored, tat: currentTat(stored, now, policy) }
    })
    const columns = {
      rate: ["integer", integersParam(cases.map(({ rate }) => rate))],
      stored: ["bigint", bigintsParam(cases.map(({ stored }) => stored && BigInt(stored)))],
      now: bigints(cases.map(({ now }) => now)),
    } as const
    const rule = (name: string) => evaluate(`${quoted}.${name}(rate, stored, now)`, columns)
    expect(yield* rule("rate_full_at")).toEqual(cases.map(({ tat }) => String(tat)))
    expect(yield* rule("rate_tokens")).toEqual(
      cases.map(({ now, policy, tat }) => String(remainingTokens(tat, now, policy))),
    )
    expect(yield* rule("next_rate_token_in")).toEqual(
      cases.map(({ now, policy, tat }) => {
        const taken = policy.increment * remainingTokens(tat, now, policy)
        return String(waitMicros(Micros(tat + taken), now, policy))
      }),
    )
  }).pipe(Effect.provide(connected)),
)

it.live("the concurrency of a webhook after attempts", () =>
  Effect.gen(function* () {
    const { least, most } = concurrencyRange
    const cases = inputs(
      fc.record({
        concurrency: fc.integer({ min: least, max: most }),
        succeeded: fc.nat({ max: 20 }),
        failed: fc.nat({ max: 40 }),
      }),
    )
    const after = (start: number, times: number, step: (concurrency: number) => number) =>
      Array.from({ length: times }).reduce<number>(step, start)
    const found = yield* evaluate(concurrencyAfter("concurrency", "succeeded", "failed"), {
      concurrency: ["integer", integersParam(cases.map(({ concurrency }) => concurrency))],
      succeeded: ["integer", integersParam(cases.map(({ succeeded }) => succeeded))],
      failed: ["integer", integersParam(cases.map(({ failed }) => failed))],
    })
    expect(found).toEqual(
      cases.map(({ concurrency, failed, succeeded }) =>
        String(
          after(
            after(concurrency, succeeded, (one) => concurrencyAfterSuccess(one)),
            failed,
            (one) => concurrencyAfterFailure(one),
          ),
        ),
      ),
    )
  }).pipe(Effect.provide(connected)),
)

it.live("the share of a webhook in what its project may have in flight", () =>
  Effect.gen(function* () {
    yield* tables
    const cases = inputs(
      fc.record({
        concurrency: fc.integer({ min: 1, max: 20 }),
        least: fc.integer({ min: 1, max: 8 }),
        most: fc.integer({ min: 1, max: 20 }),
        perProject: fc.integer({ min: 1, max: 1000 }),
        claimed: fc.nat({ max: 1200 }),
      }),
    )
    const columns = {
      concurrency: ["integer", integersParam(cases.map(({ concurrency }) => concurrency))],
      least: ["integer", integersParam(cases.map(({ least }) => least))],
      most: ["integer", integersParam(cases.map(({ most }) => most))],
      per_project: ["integer", integersParam(cases.map(({ perProject }) => perProject))],
      claimed: bigints(cases.map(({ claimed }) => claimed)),
    } as const
    expect(
      yield* evaluate(`${quoted}.clamp_concurrency(concurrency, least, most)`, columns),
    ).toEqual(
      cases.map(({ concurrency, ...range }) => String(clampConcurrency(concurrency, range))),
    )
    expect(
      yield* evaluate(
        `${quoted}.max_attempts_of_webhook(concurrency, per_project, claimed)`,
        columns,
      ),
    ).toEqual(
      cases.map(({ claimed, concurrency, perProject }) =>
        String(maxAttemptsOfWebhook(concurrency, perProject, claimed)),
      ),
    )
  }).pipe(Effect.provide(connected)),
)

it.live.each(["7", "1.5", "a+b.c@d", 'a"b\\c$&', "(?:.*)|[^x]{1}_"].map(UserId))(
  "the erasure of the user id %s from an event",
  (erased) =>
    Effect.gen(function* () {
      const others = [erased.replace(/[.+]/g, "x"), erased.replaceAll("+", "")]
      const ids = [erased, Number(erased), `${erased}${erased}`, 77, ...others, null]
      const texts = ['left: "user_id":"7",', 'a "quote" and \\', "", '"reason":"x"', "\u00e9\n"]
      const leaf = fc.record(
        {
          user_id: fc.constantFrom(...ids),
          moved_to: fc.constantFrom(...ids),
          moved_from: fc.constantFrom(...ids),
          reason: fc.constantFrom(...texts),
          metadata: fc.dictionary(fc.constantFrom("plan", "reason"), fc.constantFrom(...texts)),
          id: fc.nat(),
        },
        { requiredKeys: [] },
      )
      const data = fc.oneof(leaf, fc.array(leaf), fc.record({ of: fc.array(leaf), inner: leaf }))
      const cases = inputs(
        fc.record({ data, type: fc.constantFrom("membership.ended", "a.b", "memberships.x") }),
        // Of each of five users, which makes 10,000.
        2000,
      ).map(({ data: given, type }) => ({
        id: EventId("00000000-0000-4000-8000-000000000001"),
        projectId: ProjectId("p1"),
        type: EventType(type),
        at: 0,
        body: JSON.stringify({ type, timestamp: "", data: given }),
      }))
      const columns = {
        body: ["text", textsParam(cases.map(({ body }) => body))],
        type: ["text", textsParam(cases.map(({ type }) => type))],
      } as const
      const mentioned = cases.map((event) => mentionsUser(event, erased))
      expect(mentioned.filter(Boolean).length).toBeGreaterThan(cases.length / 5)
      expect(yield* evaluate(mentionsUserSql("body", "type", `'${erased}'`), columns)).toEqual(
        mentioned.map(String),
      )
      expect(yield* evaluate(bodyWithoutUser("body", "type", `'${erased}'`), columns)).toEqual(
        cases.map((event) => eraseUser(event, erased).body),
      )
    }).pipe(Effect.provide(connected)),
)

it.live("the member whom an event is about", () =>
  Effect.gen(function* () {
    yield* tables
    const id = fc.oneof(fc.constantFrom("7", 'a"b', "\\", "", "\u00e9", 1.5, null), fc.nat())
    const data = fc.record(
      { of: fc.string({ maxLength: 2000 }), user_id: id, inner: fc.record({ user_id: id }) },
      { requiredKeys: [] },
    )
    const bodies = inputs(data).map((given) => JSON.stringify({ type: "a.b", data: given }))
    const users = bodies.map((body) => {
      const user = userOf(body)
      return user && JSON.stringify(user).slice(1, -1)
    })
    expect(users.filter((user) => user !== undefined).length).toBeGreaterThan(2000)
    const same = `${quoted}.member_of(body) IS NOT DISTINCT FROM hashtextextended(written, 0)`
    const columns = {
      body: ["text", textsParam(bodies)],
      written: ["text", textsParam(users)],
    } as const
    expect(new Set(yield* evaluate(same, columns))).toEqual(new Set(["true"]))
  }).pipe(Effect.provide(connected)),
)

it.live("each millisecond of any year that a date or a cursor has", () =>
  Effect.gen(function* () {
    yield* tables
    const instants = inputs(fc.integer({ min: -100_000_000_000_000, max: 400_000_000_000_000 }))
    const microseconds = "(extract(epoch FROM instant) * 1000000)::bigint"
    const columns = { instant: ["timestamptz", instantsParam(instants)] } as const
    expect(yield* evaluate(microseconds, columns)).toEqual(
      instants.map((instant) => String(BigInt(instant) * 1000n)),
    )
    expect(yield* evaluate(millisOf("instant"), columns)).toEqual(instants.map(String))
  }).pipe(Effect.provide(connected)),
)

it.live("the first check of a membership", () =>
  Effect.gen(function* () {
    yield* tables
    const leads = [Millis(3 * 86_400_000), Millis(3_600_000), Millis(0)]
    yield* sql(
      `INSERT INTO ${schema}.expiry_settings (since, longest, leads)
       VALUES ('2020-01-01', ($1::integer[])[1] * interval '1 second', $1)`,
      [integersParam(leads.map((lead) => lead / 1000))],
    )
    const dates = inputs(fc.integer({ min: 0, max: 4_000_000_000_000 }).map((at) => EndDate(at)))
    const decideAnnouncement = makeDecideAnnouncement({ leads, since: 0 })
    const found = yield* evaluate(millisOf(`(${nextCheckOf(quoted, "end_date")})`), {
      end_date: ["timestamptz", instantsParam(dates)],
    })
    expect(found).toEqual(
      dates.map((endDate) => {
        const projectId = ProjectId("p1")
        const candidate = { projectId, userId, endDate, dateSetAt: -Infinity, announced: undefined }
        return String(decideAnnouncement(candidate, -Infinity).alarm)
      }),
    )
  }).pipe(Effect.provide(connected)),
)

it.live("the whole milliseconds for which a delivery has been due", () =>
  Effect.gen(function* () {
    yield* tables
    yield* sql(
      `INSERT INTO ${schema}.webhooks (id, project_number, url, secret, created_at)
       VALUES ('00000000-0000-4000-8000-000000000001', 1, 'https://a.example/', '', now())`,
    )
    yield* sql(
      `INSERT INTO ${schema}.deliveries (event_id, webhook_id, next_attempt_at)
       SELECT id, id, '2026-01-01T00:00:00Z' FROM ${schema}.webhooks`,
    )
    const now = "'2026-01-01T00:00:00Z'::timestamptz + age * interval '1 millisecond'"
    const rows = yield* sql<BacklogRow>(
      `SELECT b.* FROM generate_series(-1, 9998) age
       CROSS JOIN LATERAL (${backlog(quoted).replaceAll("clock_timestamp()", `(${now})`)}) b ORDER BY age`,
      [integerParam(10)],
    )
    expect(rows.map((row) => toBacklog([row]).dueForMillis)).toEqual([
      undefined,
      ...Array.from({ length: 9999 }, (_, age) => age),
    ])
  }).pipe(Effect.provide(connected)),
)
