/** The rules that are said in TypeScript and in SQL: both are given the same 10,000 inputs. */

import type { PgClient } from "@effect/sql-pg"
import { beforeAll, expect, it } from "@effect/vitest"
import {
  bucketSpan,
  bulkChangeNames,
  bulkModes,
  concurrencyRange,
  currentTat,
  lastEndDate,
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
  effectiveForm,
  endAfterPause,
  eraseUser,
  isOver,
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
import { type BacklogRow, backlog, toBacklog } from "../src/outbox.sql.ts"
import { currentFullAt, tokensLeft } from "../src/rate-limits.ts"
import { concurrencyAfter } from "../src/settlements.sql.ts"
import {
  effectiveDateLocked,
  effectiveFormLocked,
  effectiveFormSql,
  effectiveEndDateSql,
  nextCheckOf,
} from "../src/sql/clauses.ts"
import {
  type Integer,
  instantsParam,
  integerParam,
  millisOf,
  textParam,
  textsParam,
} from "../src/sql/values.ts"
import { clientLayer, dropped, shared, sql } from "./harness.ts"

const projectId = ProjectId("p1")
const nilId = "00000000-0000-4000-8000-000000000001"

const schema = "rules"
const quoted = `"${schema}"`
const seed = 20_260_101

const inputs = <A>(arbitrary: fc.Arbitrary<A>, numRuns = 10_000): ReadonlyArray<A> =>
  fc.sample(arbitrary, { numRuns, seed })

const dayMillis = 86_400_000

// Some are near the last instant, where nothing can be added.
const date = fc
  .oneof(fc.nat({ max: 9 }), fc.integer({ min: 2_932_890, max: 2_932_896 }))
  .map((days) => EndDate(days * dayMillis))

const bulkChange: fc.Arbitrary<BulkChange> = fc.oneof(
  fc.record({ mode: fc.constantFrom(...bulkModes), endDate: date, inDays: fc.boolean() }),
  fc.record({
    mode: fc.constant("extendBy" as const),
    by: fc.integer({ min: 1, max: 9 }).map((days) => Millis(days * dayMillis)),
  }),
)

/** A project's bulk extensions, and the dates that ten members were given between them. */
const project = fc.record({
  bulk: fc.array(fc.record({ change: bulkChange, isUndone: fc.boolean() }), { maxLength: 12 }),
  own: fc.array(
    fc.record({
      endDate: date,
      inDays: fc.boolean(),
      keptDay: fc.option(fc.integer({ min: 28, max: 31 }), { nil: undefined }),
      after: fc.nat({ max: 12 }),
      by: fc.nat({ max: 1 }),
    }),
    { minLength: 10, maxLength: 10 },
  ),
})

// Of two neighbours, a bulk extension has the first number, so that a member may also have exactly this one.
const bulkSeq = (index: number): number => 2 * index

const projects = inputs(project, 1000).map(({ bulk, own }, index) => ({
  number: index + 1,
  bulk: bulk.map((one, place) => ({
    ...one,
    adjustment: adjustmentOf(one.change),
    inDays: one.change.mode !== "extendBy" && one.change.inDays,
    order: bulkSeq(place + 1),
  })),
  own: own.map(({ after, by, ...set }) => ({ ...set, order: bulkSeq(after) + by })),
}))

const owners = projects.flatMap(({ bulk, number, own }) =>
  own.map((one) => ({ number, composed: composeLog(bulk), own: one })),
)

const textOf = (endDate: EndDate): string => new Date(endDate).toISOString()

const connected = shared(clientLayer({ maxConnections: 1 }))

const test = (name: string, run: () => Effect.Effect<unknown, unknown, PgClient.PgClient>) =>
  it.live(name, () => Effect.provide(run(), connected))

/** Runs a statement that selects from rows. */
const fromRows = <Row extends object>(
  statement: string,
  columns: string,
  rows: ReadonlyArray<object>,
) =>
  sql<Row>(`${statement} FROM json_to_recordset($1::json) AS r (${columns})`, [
    textParam(JSON.stringify(rows)),
  ])

const idOf = "lpad(number::text || '0' || seq::text, 32, '0')::uuid"

/** Fills the tables by the functions that the statements call. */
const filled = Effect.gen(function* () {
  yield* dropped(schema)
  yield* migrate({ schema })
  yield* fromRows(
    `INSERT INTO ${schema}.projects (id, number, bulk_seq) OVERRIDING SYSTEM VALUE
     SELECT 'p' || number, number, bulk_seq`,
    "number bigint, bulk_seq bigint",
    projects.map(({ bulk, number }) => ({ number, bulk_seq: bulk.at(-1)?.order ?? 0 })),
  )
  const extensions = projects.flatMap(({ bulk, number }) =>
    bulk.map(({ change, inDays, isUndone, order: seq }) => ({
      isUndone,
      in_days: inDays,
      number,
      seq,
      mode: bulkChangeNames[change.mode],
      ...(change.mode === "extendBy" ? { by: change.by } : { end_date: textOf(change.endDate) }),
    })),
  )
  yield* fromRows(
    `SELECT ${schema}.add_bulk_extension(
       number, seq, ${idOf}, mode, end_date, by * interval '1 millisecond', in_days, now(), NULL, NULL, NULL, 0)`,
    "number bigint, seq bigint, mode text, end_date timestamptz, by bigint, in_days boolean",
    extensions,
  )
  const outcomes = yield* fromRows<{ readonly outcome: string }>(
    `SELECT ${schema}.undo_bulk_extension(number, ${idOf}, '-infinity', now(), NULL, NULL) AS outcome`,
    "number bigint, seq bigint",
    extensions.filter(({ isUndone }) => isUndone),
  )
  expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(new Set(["undone"]))
  yield* fromRows(
    `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, in_days, kept_day, seq)
     SELECT number, n::text, end_date, in_days, kept_day, seq`,
    "n integer, number integer, end_date timestamptz, in_days boolean, kept_day smallint, seq bigint",
    owners.map(({ number, own: { endDate, inDays, keptDay, order } }, index) => ({
      n: index + 1,
      number,
      end_date: textOf(endDate),
      in_days: inDays,
      kept_day: keptDay,
      seq: order,
    })),
  )
})

/** An expression's value for each member, in the order in which they were made. */
const valuesBy = <Value>(expression: string) =>
  Effect.map(
    sql<{ readonly value: Value }>(
      `SELECT ${expression} AS value
       FROM ${schema}.memberships m
       JOIN ${schema}.projects p ON p.number = m.project_number
       JOIN ${schema}.memberships_current c ON c.project_id = p.id AND c.user_id = m.user_id
       ORDER BY m.user_id::integer`,
    ),
    (found) => found.map(({ value }) => value),
  )

/** All members' dates. */
const datesBy = (expression: string) =>
  Effect.map(valuesBy<Integer>(millisOf(expression)), (dates) => dates.map(Number))

beforeAll(() => Effect.runPromise(Effect.provide(filled, connected)))

/** The input fields that are parameters in SQL, and their types there. */
type Columns<Case> = { readonly [Field in keyof Case]?: string }

/** Expects that expressions in SQL have the values that rules in TypeScript have for the same inputs. */
const expectSame = Effect.fnUntraced(function* <Case extends object>(
  cases: ReadonlyArray<Case>,
  columns: Columns<Case>,
  rules: Readonly<Record<string, (one: Case) => unknown>>,
) {
  const fields = Object.entries(columns)
  const arrays = fields.map(([, type], index) => `$${index + 1}::text[]::${type}[]`)
  const values = fields.map(([field]) => cases.map((one): unknown => Reflect.get(one, field)))
  for (const [expression, rule] of Object.entries(rules)) {
    const rows = yield* sql<{ readonly value: string }>(
      `SELECT (${expression})::text AS value
       FROM unnest(${arrays.join()}) WITH ORDINALITY AS a (${Object.keys(columns).join()}, n) ORDER BY n`,
      values.map((all) => textsParam(all.map((one) => (one === undefined ? one : String(one))))),
    )
    expect(rows.map(({ value }) => value)).toEqual(cases.map((one) => String(rule(one))))
  }
})

test("10,000 members have the same effective end dates in core and in SQL", () =>
  Effect.gen(function* () {
    const expected = owners.map(({ composed, own }) => effectiveEndDate(composed, own))
    expect(expected).toHaveLength(10_000)
    const changed = owners.filter(({ own }, index) => own.endDate !== expected[index])
    // Not as if the rule did nothing.
    expect(changed.length).toBeGreaterThan(3000)
    for (const dates of ["c.end_date", effectiveEndDateSql(quoted), effectiveDateLocked(quoted)])
      expect(yield* datesBy(dates)).toEqual(expected)
  }))

test("they have the same forms of these dates", () =>
  Effect.gen(function* () {
    const forms = owners.map(({ composed, own }) => effectiveForm(composed, own))
    const hidden = owners.filter(({ own }, index) => own.keptDay !== forms[index]?.keptDay)
    expect(hidden.length).toBeGreaterThan(1000)
    const ofView = { inDays: "c.in_days", keptDay: "c.kept_day" }
    for (const of of [ofView, effectiveFormSql(quoted), effectiveFormLocked(quoted)]) {
      const [inDays, keptDay] = [yield* valuesBy(of.inDays), yield* valuesBy(of.keptDay)]
      expect(inDays).toEqual(forms.map((form) => form.inDays))
      expect(keptDay).toEqual(forms.map((form) => form.keptDay ?? null))
    }
  }))

test("the planner puts the rules into the statements that call them", () =>
  Effect.gen(function* () {
    const planOf = (statement: string) =>
      Effect.map(sql(`EXPLAIN (VERBOSE, FORMAT JSON) ${statement}`), (plan) => JSON.stringify(plan))
    for (const endDate of [effectiveEndDateSql(quoted), effectiveDateLocked(quoted)]) {
      const plan = yield* planOf(
        `SELECT ${endDate} FROM ${schema}.memberships m JOIN ${schema}.projects p ON p.number = m.project_number`,
      )
      expect(plan).toMatch(/CASE WHEN \(m\.seq >= p\.bulk_seq\)/)
      expect(plan).not.toContain("effective_end_date")
    }
    const claims = yield* planOf(
      `SELECT ${quoted}.clamp_concurrency(w.concurrency, 1, w.failures),
              ${quoted}.max_attempts_of_webhook(w.concurrency, w.failures, w.position - 1),
              ${quoted}.rate_tokens(w.rate, b.full_at, 1)
       FROM ${schema}.webhooks w, ${schema}.rate_limit_buckets b`,
    )
    expect(claims).toMatch(/GREATEST\(1, LEAST\(w\.concurrency, w\.failures\)\)/)
    expect(claims).not.toMatch(/clamp_concurrency|max_attempts|rate_tokens|rate_full_at/)
  }))

const now = fc.integer({ min: 1_700_000_000_000_000, max: 1_900_000_000_000_000 }).map(Micros)
// In ten-thousandths; a bucket becomes full in 10,000: before, within and beyond that.
const place = fc.integer({ min: -5000, max: 20_000 })

// Clocks change in spring and in autumn, by an hour or by half of one, in another hemisphere, and once by a day.
const zones = [
  "UTC",
  "Europe/Berlin",
  "America/New_York",
  "Australia/Lord_Howe",
  "America/Santiago",
  "Pacific/Apia",
]

test("an end date after a pause, in sessions in any time zone", () => {
  // To the millisecond, in all years.
  const instant = fc.oneof(
    fc.integer({ min: Date.UTC(2025, 0), max: Date.UTC(2029, 0) }),
    fc.integer({ min: Date.UTC(2011, 11, 20), max: Date.UTC(2012, 0, 10) }),
    fc.integer({ min: lastEndDate - 400 * dayMillis, max: lastEndDate }),
    fc.integer({ min: Date.parse("0001-01-03"), max: lastEndDate }),
    fc.constantFrom(lastEndDate, lastEndDate - 1, Date.UTC(2026, 2, 28), Date.UTC(2026, 9, 24)),
  )
  const length = fc.oneof(
    fc.integer({ min: 1, max: 731 }).map((days) => days * dayMillis),
    fc.integer({ min: 1, max: 731 * dayMillis }),
    fc.constantFrom(1, 999, 3_600_000),
  )
  const past = fc.oneof(fc.constantFrom(-1, 0, 1), fc.integer({ min: -dayMillis, max: dayMillis }))
  const input = fc.record({
    endDate: instant.map((millis) => EndDate(millis)),
    since: instant,
    length,
    past,
    hasEnd: fc.integer({ min: 0, max: 9 }).map((n) => n > 0),
  })
  const text = (millis: number | undefined): string | undefined =>
    // PostgreSQL has years of five digits without a sign.
    millis === undefined ? undefined : new Date(millis).toISOString().replace(/^\+0*/, "")
  const cases = inputs(input).map(({ endDate, hasEnd, length: paused, past: by, since }) => {
    const pause = { since, until: hasEnd ? since + paused : undefined }
    const at = since + paused + by
    const isResumed = isOver(pause, at)
    const after = isResumed ? endAfterPause(endDate, pause, since + paused) : endDate
    return {
      isResumed,
      after,
      added: isResumed ? paused : 0,
      end_date: text(endDate),
      paused_at: text(since),
      resumes_at: text(pause.until),
      at: text(at),
    }
  })
  // Not as if the rule did nothing, or always the same.
  for (const isResumed of [true, false])
    expect(cases.filter((one) => one.isResumed === isResumed).length).toBeGreaterThan(1000)
  expect(
    cases.filter(({ added, after }) => added > 0 && after === lastEndDate).length,
  ).toBeGreaterThan(100)
  const columns = {
    end_date: "timestamptz",
    paused_at: "timestamptz",
    resumes_at: "timestamptz",
    at: "timestamptz",
  }
  const timePaused = `${schema}.time_paused(paused_at, resumes_at, at)`
  return Effect.forEach(zones, (zone) =>
    Effect.andThen(
      sql(`SET TIME ZONE '${zone}'`),
      expectSame(cases, columns, {
        [millisOf(`${schema}.date_after_pause(end_date, paused_at, resumes_at, at)`)]: ({
          after,
        }) => after,
        [`(extract(epoch FROM ${timePaused}) * 1000)::bigint`]: ({ added }) => added,
      }),
    ),
  ).pipe(Effect.ensuring(Effect.ignore(sql("RESET TIME ZONE"))))
})

test("whether a membership is in a pause", () => {
  // The function compares with the time of the statement.
  const distance = fc.oneof(
    fc.integer({ min: -731 * dayMillis, max: -60_000 }),
    fc.integer({ min: 60_000, max: 731 * dayMillis }),
  )
  const at = Date.now()
  const input = fc.record({
    since: fc.integer({ min: 1, max: 100 * dayMillis }),
    left: fc.option(distance, { nil: undefined }),
    isPaused: fc.integer({ min: 0, max: 3 }).map((n) => n > 0),
  })
  const cases = inputs(input).map(({ isPaused, left, since }) => {
    const until = left === undefined ? undefined : at + left
    const pause = isPaused ? { since: (until ?? at) - since, until } : undefined
    return {
      pause,
      paused_at: pause && new Date(pause.since).toISOString(),
      resumes_at: until && new Date(until).toISOString(),
    }
  })
  const columns = { paused_at: "timestamptz", resumes_at: "timestamptz" }
  return expectSame(cases, columns, {
    [`${schema}.is_paused(paused_at, resumes_at)`]: ({ pause }) =>
      pause !== undefined && !isOver(pause, at),
    [`${schema}.next_paused_at(paused_at, resumes_at) IS NOT DISTINCT FROM
      CASE WHEN ${schema}.is_paused(paused_at, resumes_at) THEN paused_at
           WHEN paused_at IS NOT NULL THEN resumes_at END`]: () => true,
  })
})

test("a token bucket", () => {
  const limit = fc.integer({ min: 1, max: 1000 })
  const capacity = fc.integer({ min: 1, max: 50 })
  const cases = inputs(fc.record({ limit, capacity, now, place })).map((one) => {
    const policy = bucketPolicy({ ...one, window: Millis(60_000) })
    const span = bucketSpan(policy)
    const full_at = Micros(one.now + Math.round((span * one.place) / 10_000))
    return { policy, increment: policy.increment, span, now: one.now, full_at }
  })
  type Case = (typeof cases)[number]
  const fullAt = currentFullAt("full_at", "now", "span")
  const leftAs = (type: string) =>
    tokensLeft(`(${fullAt})::${type}`, `now::${type}`, "increment", "span")
  const left = (one: Case) => remainingTokens(one.full_at, one.now, one.policy)
  const isAdmitted = (one: Case) => takeToken(one.full_at, one.now, one.policy).admitted
  const columns = { full_at: "bigint", now: "bigint", span: "bigint", increment: "bigint" }
  return expectSame(cases, columns, {
    [fullAt]: (one) => currentTat(one.full_at, one.now, one.policy),
    [leftAs("bigint")]: left,
    [leftAs("float8")]: left,
    [`${leftAs("bigint")} > 0`]: isAdmitted,
    [`${leftAs("float8")} > 0`]: isAdmitted,
  })
})

test("the token bucket of a webhook's rate", () => {
  const rate = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 10_000 }))
  const share = fc.option(place, { nil: undefined })
  const cases = inputs(fc.record({ rate, now, share })).map((one) => {
    const policy = webhookRatePolicy(one.rate)
    const until = Math.round((bucketSpan(policy) * (one.share ?? NaN)) / 10_000)
    const stored = one.share === undefined ? undefined : Micros(one.now + until)
    const tat = currentTat(stored, one.now, policy)
    return { rate: one.rate, policy, now: one.now, stored, tat }
  })
  const left = ({ now: at, policy, tat }: (typeof cases)[number]) =>
    remainingTokens(tat, at, policy)
  const columns = { rate: "integer", stored: "bigint", now: "bigint" }
  return expectSame(cases, columns, {
    [`${quoted}.rate_full_at(rate, stored, now)`]: ({ tat }) => tat,
    [`${quoted}.rate_tokens(rate, stored, now)`]: left,
    [`${quoted}.next_rate_token_in(rate, stored, now)`]: (one) =>
      waitMicros(Micros(one.tat + one.policy.increment * left(one)), one.now, one.policy),
  })
})

test("the concurrency of a webhook after attempts", () => {
  const concurrency = fc.integer({ min: concurrencyRange.least, max: concurrencyRange.most })
  const [succeeded, failed] = [fc.nat({ max: 20 }), fc.nat({ max: 40 })]
  const after = (start: number, times: number, step: (before: number) => number) =>
    Array.from({ length: times }).reduce<number>((before) => step(before), start)
  const columns = { concurrency: "integer", succeeded: "integer", failed: "integer" }
  return expectSame(inputs(fc.record({ concurrency, succeeded, failed })), columns, {
    [concurrencyAfter("concurrency", "succeeded", "failed")]: (one) =>
      after(
        after(one.concurrency, one.succeeded, concurrencyAfterSuccess),
        one.failed,
        concurrencyAfterFailure,
      ),
  })
})

test("the share of a webhook in what its project may have in flight", () => {
  const concurrency = fc.integer({ min: 1, max: 20 })
  const cases = fc.record({
    concurrency,
    least: fc.integer({ min: 1, max: 8 }),
    most: concurrency,
    of_project: fc.integer({ min: 1, max: 1000 }),
    claimed: fc.nat({ max: 1200 }),
  })
  const ofWebhook = { concurrency: "integer", least: "integer", most: "integer" }
  const columns = { ...ofWebhook, of_project: "integer", claimed: "bigint" }
  return expectSame(inputs(cases), columns, {
    [`${quoted}.clamp_concurrency(concurrency, least, most)`]: (one) =>
      clampConcurrency(one.concurrency, one),
    [`${quoted}.max_attempts_of_webhook(concurrency, of_project, claimed)`]: (one) =>
      maxAttemptsOfWebhook(one.concurrency, one.of_project, one.claimed),
  })
})

for (const erased of ["7", "1.5", "a+b.c@d", 'a"b\\c$&', "(?:.*)|[^x]{1}_"].map(UserId))
  test(`the erasure of the user id ${erased} from an event`, () => {
    const others = [erased.replace(/[.+]/g, "x"), erased.replaceAll("+", "")]
    const ids = [erased, Number(erased), `${erased}${erased}`, 77, ...others, null]
    const reasons = ['left: "user_id":"7",', 'a "quote" and \\', "", '"reason":"x"', "\u00e9\n"]
    const [user, reason] = [fc.constantFrom(...ids), fc.constantFrom(...reasons)]
    const metadata = fc.dictionary(fc.constantFrom("plan", "reason"), reason)
    const leaf = fc.record(
      { user_id: user, moved_to: user, moved_from: user, reason, metadata, id: fc.nat() },
      { requiredKeys: [] },
    )
    const data = fc.oneof(leaf, fc.array(leaf), fc.record({ of: fc.array(leaf), inner: leaf }))
    const types = fc.constantFrom("membership.ended", "a.b", "memberships.x").map(EventType)
    // By each user, which makes 10,000.
    const cases = inputs(fc.record({ data, type: types }), 2000).map(({ data: given, type }) => ({
      id: EventId(nilId),
      projectId,
      type,
      at: 0,
      body: JSON.stringify({ type, timestamp: "", data: given }),
    }))
    const mentions = cases.filter((event) => mentionsUser(event, erased))
    expect(mentions.length).toBeGreaterThan(cases.length / 5)
    return expectSame(
      cases,
      { body: "text", type: "text" },
      {
        [mentionsUserSql("body", "type", `'${erased}'`)]: (event) => mentionsUser(event, erased),
        [bodyWithoutUser("body", "type", `'${erased}'`)]: (event) => eraseUser(event, erased).body,
      },
    )
  })

test("the member whom an event is about", () => {
  const user_id = fc.oneof(fc.constantFrom("7", 'a"b', "\\", "", "\u00e9", 1.5, null), fc.nat())
  const data = fc.record(
    { of: fc.string({ maxLength: 2000 }), user_id, inner: fc.record({ user_id }) },
    { requiredKeys: [] },
  )
  const cases = inputs(data).map((given) => {
    const body = JSON.stringify({ type: "a.b", data: given })
    const user = userOf(body)
    return { body, written: user && JSON.stringify(user).slice(1, -1) }
  })
  expect(cases.filter(({ written }) => written !== undefined).length).toBeGreaterThan(2000)
  return expectSame(
    cases,
    { body: "text", written: "text" },
    {
      [`${quoted}.member_of(body) IS NOT DISTINCT FROM hashtextextended(written, 0)`]: () => true,
    },
  )
})

test("each millisecond of any year that a date or a cursor has", () =>
  Effect.gen(function* () {
    const instants = inputs(fc.integer({ min: -100_000_000_000_000, max: 400_000_000_000_000 }))
    const rows = yield* sql(
      `SELECT (extract(epoch FROM instant) * 1000000)::text AS micros, ${millisOf("instant")}::text AS millis
       FROM unnest($1::timestamptz[]) WITH ORDINALITY AS a (instant, n) ORDER BY n`,
      [instantsParam(instants)],
    )
    expect(rows).toEqual(
      instants.map((instant) => ({
        micros: `${BigInt(instant) * 1000n}.000000`,
        millis: String(instant),
      })),
    )
  }))

test("the first check of a membership", () =>
  Effect.gen(function* () {
    const leads = [3 * dayMillis, 3_600_000, 0].map(Millis)
    const seconds = leads.map((lead) => lead / 1000)
    yield* sql(
      `INSERT INTO ${schema}.expiry_settings (since, longest, leads)
       VALUES ('2020-01-01', ${seconds[0]} * interval '1 second', ARRAY[${seconds.join()}])`,
    )
    const decideAnnouncement = makeDecideAnnouncement({ leads, since: 0 })
    const member = {
      projectId,
      userId: UserId("7"),
      dateSetAt: -Infinity,
      isSetWithOthers: false,
      graceSetAt: undefined,
      announced: undefined,
      grace: Millis(0),
    }
    const dates = inputs(fc.integer({ min: 0, max: 4_000_000_000_000 }).map(EndDate))
    const cases = dates.map((endDate) => ({ ...member, endDate, end_date: textOf(endDate) }))
    yield* expectSame(
      cases,
      { end_date: "timestamptz" },
      {
        [millisOf(`(${nextCheckOf(quoted, "end_date")})`)]: (one) =>
          decideAnnouncement(one, -Infinity).alarm,
      },
    )
  }))

test("the whole milliseconds for which a delivery has been due", () =>
  Effect.gen(function* () {
    yield* sql(
      `INSERT INTO ${schema}.webhooks (id, project_number, url, secret, created_at)
       VALUES ('${nilId}', 1, 'https://a.example/', '', now())`,
    )
    yield* sql(
      `INSERT INTO ${schema}.deliveries (event_id, webhook_id, next_attempt_at)
       SELECT id, id, '2026-01-01T00:00:00Z' FROM ${schema}.webhooks`,
    )
    const time = "'2026-01-01T00:00:00Z'::timestamptz + age * interval '1 millisecond'"
    const rows = yield* sql<BacklogRow>(
      `SELECT b.* FROM generate_series(-1, 9998) age
       CROSS JOIN LATERAL (${backlog(quoted).replaceAll("clock_timestamp()", `(${time})`)}) b ORDER BY age`,
      [integerParam(10)],
    )
    expect(rows.map((row) => toBacklog([row]).dueForMillis)).toEqual([
      undefined,
      ...Array.from({ length: 9999 }, (_, age) => age),
    ])
  }))
