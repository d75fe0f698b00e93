/** Random steps: requests to every operation, passing time, and deliveries. */

import * as fc from "fast-check"
import { adminToken, token, words } from "../vocabulary.ts"

/**
 * A request. Each store replaces `{kind:index}` in all texts by its own values, for example
 * `{webhook:0}`; see `Names`. `{ms:offset}` and `{iso:offset}` are times.
 */
export interface Request {
  readonly _tag: "Request"
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Something to do with every store. */
export type Step =
  | Request
  /** Time passes, and ends are announced. */
  | { readonly _tag: "Pass"; readonly millis: number }
  /** What is due is delivered. */
  | { readonly _tag: "Deliver" }

/** What the stores have at first. */
export const projects = ["p1", "p2"]
export const members = ["1", "2", "3", "4"]

/** An operator's key for both projects. */
export const operatorToken = `fuzz-operator-${"x".repeat(32)}`

/** Receivers' URLs, and the status that each responds. */
export const receivers = new Map([
  ["https://sound.example/", 204],
  ["https://broken.example/", 500],
  ["https://gone.example/", 410],
])

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

type Text = fc.Arbitrary<string>

const pick = (...texts: ReadonlyArray<string>): Text => fc.constantFrom(...texts)

const none = pick("")

/** Mostly the first, sometimes the second. */
const mostly = <A>(usual: fc.Arbitrary<A>, rare: fc.Arbitrary<A>, weight = 9): fc.Arbitrary<A> =>
  fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: rare })

const nth = (kind: string, most = 6): Text => fc.nat(most - 1).map((index) => `{${kind}:${index}}`)

const project = mostly(
  pick("p1", "p1", "p2"),
  pick("p3", "p3", "missing", "P1", "p%31", "%zz", "x".repeat(256)),
  24,
)
const user = mostly(
  fc.integer({ min: 1, max: 6 }).map(String),
  pick(
    ...words("08 999 a -1 %31 auth0%7C1 %22%5C %2F %2525 ~ 18446744073709551616"),
    "9".repeat(40),
  ),
  20,
)
const webhook = mostly(
  nth("webhook-P", 4),
  pick("{uuid:0}", "{webhook-p1:0}", "{event-p1:0}", "no-uuid", "{WEBHOOK-P1:0}"),
  20,
)
const event = mostly(
  nth("event-P", 12),
  pick("{uuid:0}", "{webhook-p1:0}", "{event-p2:0}", "no-uuid", "{EVENT-P1:0}"),
  20,
)
const action = pick(
  ...words("granted extended bulk_extended expired paused resumed moved webhook_created other"),
)
const key = mostly(nth("issued", 4), pick("{key:0}", "{key:2}", "{uuid:0}", "no-uuid", "%zz"))

/** A time at an offset from the first step, as JSON. */
const timeAt = (offset: number): Text =>
  fc.boolean().map((isText) => (isText ? `"{iso:${offset}}"` : `{ms:${offset}}`))

const soon = fc.constantFrom(20 * minute, 90 * minute, 5 * hour, 2 * day, 10 * day)
const future = fc.oneof(
  fc.integer({ min: 40, max: 60 }).map((days) => days * day),
  soon,
)
const past = fc.constantFrom(-day, -400 * day)
const wrongTime = pick(
  ...words('1790000000 "2099-01-01" "2099-01-01T00:00:00Z" "2099-02-30T00:00:00.000Z" null {} ""'),
)
const futureTime = mostly(future.chain(timeAt), fc.oneof(past.chain(timeAt), wrongTime), 12)
const anyTime = mostly(fc.oneof(future, past).chain(timeAt), wrongTime, 12)

/** Last days, many of them at the end of a month or at a change of clocks. */
const lastDay = mostly(
  pick(
    ...words(
      '"2098-01-31" "2098-01-30" "2098-01-28" "2098-02-28" "2096-02-29" "2098-03-29" "2098-04-30"',
    ),
  ),
  pick(...words('"2000-01-01" "9999-12-30" "9999-12-31" "0000-01-01" "2098-02-29" 7 null')),
  12,
)
const zone = mostly(
  pick(
    ...words('"UTC" "Europe/Berlin" "asia/kathmandu" "Pacific/Apia" "America/Sao_Paulo" "Etc/GMT"'),
  ),
  pick('"+01:00"', '"Nowhere"', "null", '"__proto__"'),
  12,
)
const duration = mostly(
  pick(...words('"P1M" "P1M" "P1M" "P3M" "P1Y" "P1W" "P1D" "PT1H" "P1M1D" "P1MT1H" "P7000Y"')),
  pick('"P"', '"P0D"', '"-P1M"', "1"),
  20,
)
const grace = mostly(
  pick(...words('"P1D" "P2D" "P7D" "PT90M" "P90D" "P1W" null null')),
  pick(...words('"P1M" "P91D" "P0D" "none" 7')),
  8,
)
const fixed = mostly(pick('"P1D"', '"P1D"', '"PT1H"', '"P4W"'), pick('"P1M"', '"P1DT"', "1"), 12)

/** A JSON object, whose members may be left out. */
const object = (
  fields: Readonly<Record<string, Text>>,
  optional: Readonly<Record<string, Text>> = {},
): Text => {
  const all = [
    ...Object.entries(fields).map(([name, value]) => [name, mostly(value, none, 40)] as const),
    ...Object.entries(optional).map(([name, value]) => [name, mostly(none, value, 6)] as const),
  ]
  return fc
    .tuple(...all.map(([name, value]) => value.map((text) => text && `"${name}":${text}`)))
    .map((parts) => `{${parts.filter((part) => part !== "").join(",")}}`)
}

const truth = mostly(pick("true", "true", "false"), pick('"true"', "1"))
const metadata = mostly(
  pick('{"plan":"gold"}', '{"a":"\\"}]","plan":"ä€😀"}', '{"plan":null,"seat":"1"}', "{}"),
  pick('{"plan":7}', '{"":"x"}', "[]", "null"),
)

const reason = mostly(pick('"a reason"', '"ä€😀"'), pick('""', `"${"r".repeat(501)}"`, "7"))
const eventTypes = pick(
  ...words('["membership.extended"] ["membership.granted","custom.one"] ["custom.one"] []'),
  '"membership.extended"',
)

/** A list's query, with the name of its cursors. */
const list = (cursor: string, more: Readonly<Record<string, Text>> = {}): Text => {
  const after = mostly(
    nth(cursor, 3),
    // With a feed cursor, which differs by store. Alone, it could also be a user id.
    pick("", ...words("start zzz 0 -1 1.1 0.0 999999.7 {uuid:0} %00 ~{cursor:0} {event-p1:0}")),
    16,
  )
  const limit = mostly(
    pick("1", "2", "3", "5", "100", "1000"),
    pick("0", "1001", "x", "", "1.5"),
    24,
  )
  const parts = Object.entries({
    after: mostly(none, after, 1),
    limit: mostly(none, limit, 1),
    ...Object.fromEntries(
      Object.entries(more).map(([name, text]) => [name, mostly(none, text, 4)]),
    ),
    unknown: mostly(none, pick("1"), 60),
  }).map(([name, value]) => value.map((text) => (text === "" ? "" : `${name}=${text}`)))
  return fc.tuple(...parts).map((texts) => {
    const query = texts.filter((text) => text !== "").join("&")
    return query === "" ? "" : `?${query}`
  })
}

/** When a pause ends by itself: often before the run does. */
const resumption = mostly(soon.chain(timeAt), fc.oneof(anyTime, pick("null")), 8)

const importLine = object(
  { user_id: user.map((id) => JSON.stringify(id)), end_date: anyTime },
  { through: lastDay, time_zone: zone, paused_at: anyTime, resumes_at: anyTime },
)
const lineEnd = fc.oneof(
  fc
    .oneof(future, past)
    .chain(timeAt)
    .map((time) => `"end_date":${time}`),
  pick('"end_date":null', '"through":"2098-02-28"', '"through":"2098-01-30"'),
  pick('"through":"2098-03-31","time_zone":"Europe/Berlin"'),
)
const linePause = mostly(
  none,
  fc
    .tuple(past.chain(timeAt), mostly(soon.chain(timeAt), none, 3))
    .map(
      ([since, until]) => `,"paused_at":${since}${until === "" ? "" : `,"resumes_at":${until}`}`,
    ),
  4,
)
const validLine = fc
  .tuple(fc.integer({ min: 1, max: 12 }), lineEnd, linePause)
  .map(([id, end, pause]) => ({ id, text: `{"user_id":"${id}",${end}${pause}}` }))
const importBody = mostly(
  fc
    .uniqueArray(validLine, { selector: ({ id }) => id, maxLength: 6 })
    .map((lines) => lines.map(({ text }) => `${text}\n`).join("")),
  fc.array(importLine, { maxLength: 4 }).map((lines) => lines.join("\n")),
)

/** A request, and how often it comes. Without a type, a body is JSON. */
interface Template {
  readonly weight: number
  readonly method: string
  readonly path: Text
  readonly body: Text
  readonly type: Text
  /** Whether it usually has an idempotency key of its own. */
  readonly isOnce?: boolean
}

const get = (weight: number, where: Text): Template => send(weight, "GET", where)

const send = (
  weight: number,
  method: string,
  where: Text,
  body = none,
  type?: string,
): Template => ({
  weight,
  method,
  path: where,
  body,
  type: body === none ? none : pick(type ?? "application/json"),
})

/** A change that needs an idempotency key, unless something else makes it safe to repeat. */
const once = (template: Template): Template => ({ ...template, isOnce: true })

/** A path whose parts are texts and what generates them. */
const path = (...parts: ReadonlyArray<string | Text>): Text =>
  fc
    .tuple(...parts.map((part) => (typeof part === "string" ? fc.constant(part) : part)))
    .map((texts) => texts.join(""))

/** A path in a project, with the project's values. */
const within = (...parts: ReadonlyArray<string | Text>): Text =>
  fc
    .tuple(project, path(...parts))
    .map(([id, rest]) => `/v2/projects/${id}${rest.replaceAll("-P:", `-${id}:`)}`)

const hook = (...parts: ReadonlyArray<string | Text>): Text =>
  within("/integrations/webhooks/", webhook, ...parts)

const member = (...parts: ReadonlyArray<string | Text>): Text =>
  within("/memberships/", user, ...parts)

const hooks = within("/integrations/webhooks")
const date = futureTime
const isDry = mostly(none, truth, 4)
const events = mostly(none, truth, 2)
const expected_end_date = anyTime
const rate = pick("null", "1", "8", "-1")

const templates: ReadonlyArray<Template> = [
  send(
    10,
    "PATCH",
    member("/extend"),
    object(
      { extend: date },
      {
        expected_end_date,
        create: truth,
        dry_run: truth,
        events,
        reason,
        mode: pick('"set"', '"never_shorten"'),
      },
    ),
  ),
  send(
    5,
    "PATCH",
    within("/memberships/extend"),
    object(
      { extend: date },
      {
        mode: pick('"set"', '"never_shorten"', '"never_shorten"', '"no"'),
        dry_run: truth,
        events,
        reason,
        expected_end_date,
      },
    ),
  ),
  send(
    2,
    "PATCH",
    within("/memberships/extend"),
    object({ extend: date, mode: pick('"never_shorten"') }),
  ),
  send(
    8,
    "PATCH",
    member("/extend"),
    object(
      { through: lastDay },
      {
        time_zone: zone,
        expected_end_date,
        create: truth,
        dry_run: truth,
        events,
        reason,
        mode: pick('"set"', '"never_shorten"'),
      },
    ),
  ),
  once(
    send(
      12,
      "PATCH",
      member("/extend"),
      object(
        { extend_by: duration },
        {
          from: pick('"end"', '"now"', '"later"', '"no"'),
          time_zone: zone,
          expected_end_date,
          create: truth,
          dry_run: truth,
          reason,
        },
      ),
    ),
  ),
  send(
    3,
    "PATCH",
    within("/memberships/extend"),
    object(
      { through: lastDay },
      {
        time_zone: zone,
        mode: pick('"set"', '"never_shorten"', '"never_shorten"'),
        dry_run: truth,
        extend: date,
      },
    ),
  ),
  once(
    send(
      3,
      "PATCH",
      within("/memberships/extend"),
      object({ extend_by: fixed }, { dry_run: truth, time_zone: zone }),
    ),
  ),
  get(2, within("/bulk-extensions", list("none"))),
  send(
    3,
    "POST",
    within("/bulk-extensions/", nth("bulk-P", 4), "/undo"),
    object({}, { dry_run: truth, reason }),
  ),
  get(
    3,
    within(
      "/ends",
      pick(
        "",
        "?through=2098-01-31",
        "?through=2098-01-31&time_zone=Asia/Kathmandu&mode=never_shorten",
        "?time_zone=UTC",
        "?through=9999-12-31",
        "?extend_by=P1D",
      ),
    ),
  ),
  send(
    5,
    "POST",
    hooks,
    object(
      {
        url: mostly(
          pick(...[...receivers.keys()].map((url) => JSON.stringify(url))),
          pick('"http://127.0.0.1/"', '"ftp://a.example/"', "7", '""'),
          8,
        ),
        ordered: mostly(none, truth, 1),
        rate: mostly(none, pick("null", "1", "8", "1000", "0"), 2),
      },
      { event_types: eventTypes },
    ),
  ),
  get(3, hooks),
  send(3, "DELETE", hook()),
  get(2, path("/v2/projects", list("cursor-projects"))),
  send(2, "PUT", within(pick("", "", "?a=1"))),
  send(1, "PUT", pick("/v2/projects/p3")),
  get(2, within(pick("", "", "", "?a=1"))),
  send(
    2,
    "PATCH",
    within(""),
    object(
      {
        time_zone: zone,
      },
      { reason, dry_run: truth },
    ),
  ),
  send(3, "PATCH", within(""), object({ grace }, { time_zone: zone, reason, dry_run: truth })),
  send(
    1,
    "DELETE",
    path("/v2/projects/", mostly(pick("p3", "p3", "p3", "missing"), pick("p1", "p2", "p2"), 8)),
  ),
  get(
    6,
    within(
      "/memberships",
      list("cursor-memberships-P", {
        state: pick("active", "paused", "expired", "other"),
        user_ids: pick("1,2", "2,1,99", "4", "a", "1,1", ""),
        prefix: pick("1", "1", "12", "%25", "_", ""),
      }),
    ),
  ),
  get(
    5,
    within("/memberships", list("none")).chain((start) =>
      future.map((at) => `${start}${start.includes("?") ? "&" : "?"}ending_before={iso:${at}}`),
    ),
  ),
  get(3, member()),
  send(
    6,
    "PUT",
    member(),
    object({ end_date: anyTime }, { reason, metadata, if_absent: truth, dry_run: isDry }),
  ),
  send(
    5,
    "PUT",
    member(),
    object(
      { through: lastDay },
      { time_zone: zone, end_date: pick("null"), metadata, if_absent: truth },
    ),
  ),
  send(1, "PUT", member(), pick('{"end_date":null}')),
  send(6, "POST", member("/pause"), object({ until: resumption }, { reason })),
  send(2, "POST", member("/pause"), object({}, { reason, through: lastDay, time_zone: zone })),
  send(4, "POST", member("/resume"), object({}, { reason })),
  send(
    3,
    "POST",
    member("/move"),
    object({ to: user.map((id) => JSON.stringify(id)) }, { reason }),
  ),
  send(4, "PATCH", member(), object({ metadata }, { reason })),
  send(3, "DELETE", member(mostly(none, pick("?erase=true", "?erase=false", "?erase=1"), 3))),
  get(4, member("/history", list("cursor-history-P", { action, announcements: truth }))),
  send(
    4,
    "POST",
    within(
      "/memberships/import",
      mostly(
        none,
        pick("?dry_run=true", "?dry_run=true&events=true", "?events=true", "?dry_run=1"),
        3,
      ),
    ),
    importBody,
    "application/x-ndjson",
  ),
  get(
    4,
    within(
      "/audit",
      list("cursor-audit-P", {
        action,
        announcements: truth,
        key_id: pick("{key:0}", "nobody", ""),
        user_id: pick("1", "2", "99", ""),
      }),
    ),
  ),
  send(
    5,
    "POST",
    within("/events"),
    object({
      type: mostly(pick('"custom.one"', '"custom.two"'), pick('"Custom"', "7", '""'), 10),
      data: pick('{"a":[1,2.5,null]}', '"text"', "null", "[]", '{"user_id":"1"}'),
    }),
  ),
  get(
    7,
    within(
      "/events",
      list("cursor-feed-P", {
        types: pick("membership.extended", "custom.one,custom.two", "membership.ended", "No"),
        wait: pick("0", "21", "x"),
        data: pick("true", "false", "no"),
      }),
    ),
  ),
  get(3, within("/events?after=start", pick("", "&limit=1000", "&limit=2"))),
  get(4, within("/events/", event, mostly(none, pick("?data=false", "?data=x"), 3))),
  get(2, within("/integrations/health")),
  get(3, hook()),
  send(2, "POST", hook("/ping")),
  send(2, "POST", hook("/enable")),
  send(
    3,
    "PATCH",
    hook(),
    object(
      {},
      {
        disabled: truth,
        description: pick('"a shop"', "null", '""'),
        event_types: pick("null", '["custom.one"]', "[]"),
        ordered: truth,
        rate,
        headers: pick("null", '{"X-A":"1"}', '{"x-a":null,"x-b":"2"}', '{"Host":"1"}'),
      },
    ),
  ),
  send(2, "POST", hook("/rotate")),
  get(
    4,
    hook(
      "/deliveries",
      list("cursor-deliveries-P", {
        state: pick(...words("waiting delivered failed cancelled other")),
      }),
    ),
  ),
  get(3, hook("/deliveries/", event)),
  send(
    3,
    "POST",
    hook("/replay"),
    fc.oneof(
      object({ event_id: event.map((id) => `"${id.replace("-P:", "-p1:")}"`) }),
      object({
        since: past.chain(timeAt),
        only: fc.option(pick('"missed"', '"failed"', '"all"', '"none"')),
        types: fc.option(
          pick('["membership.extended"]', '["webhook.ping","membership.granted"]', "[]"),
        ),
        dry_run: fc.option(pick("true", "false")),
        after: fc.option(pick('"1"', "null")),
      }),
      pick("{}", '{"event_id":"{event-p1:0}","since":"{iso:0}"}'),
    ),
  ),
  send(
    4,
    "POST",
    hook("/cancel"),
    object(
      {},
      {
        since: anyTime,
        until: anyTime,
        types: pick('["membership.extended"]', '["membership.granted","custom.one"]', "[]"),
        user_id: user.map((id) => JSON.stringify(id)),
        dry_run: truth,
      },
    ),
  ),
  get(3, path("/v2/api-keys", list("cursor-keys"))),
  send(
    2,
    "POST",
    pick("/v2/api-keys"),
    object(
      {
        projects: pick(
          ...words('["p1"] ["p2","p1"] ["p1","p2"] "all" ["missing"] [] ["p2","p2"] ["p3","p2"]'),
        ),
        role: mostly(pick('"client"', '"operator"', '"admin"'), pick('"owner"')),
      },
      { name: pick('"a name"', '""', "7"), expires_at: anyTime },
    ),
  ),
  send(1, "DELETE", path("/v2/api-keys/", key)),
  send(
    1,
    "POST",
    pick("/v2/realtime/tickets"),
    object({ projects: pick('["p1"]', '"all"', '["missing"]', "[]") }),
  ),
  get(2, path("/v2/audit", list("cursor-others", { action: pick("project_created", "other") }))),
  get(1, pick("/v2/identity", "/v2/status", "/v2/status/activity", "/v2/realtime")),
  get(1, within("/events?ticket=", pick("{ticket:0}", "tkt_no", "{ticket:1}&after=start"))),
]

const authorization = mostly(
  fc.oneof(
    { weight: 12, arbitrary: pick(adminToken) },
    { weight: 3, arbitrary: pick(operatorToken) },
    { weight: 1, arbitrary: pick(token) },
  ),
  pick("{token:0}", "{token:1}", "{token:2}", "{token:3}", "", "unknown"),
  16,
)

const idempotencyKey = mostly(
  none,
  mostly(pick("k1", "k2", "k3", "k4", "k5", "k6"), pick("ä", "x".repeat(256)), 20),
  6,
)

const ownKey = mostly(
  fc.nat(39).map((index) => `once-${index}`),
  none,
  12,
)

const otherMethod = pick("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
const otherType = pick(
  "application/json; charset=utf-8",
  ...words("text/plain application/x-ndjson application/json"),
  "",
)
const otherBody = pick("", "{", "[]", "null", '{"extend":1}')

/** A change, which one request in fifteen has. */
interface Change {
  readonly method?: string
  readonly type?: string
  readonly body?: string
}

const change: fc.Arbitrary<Change> = mostly<Change>(
  fc.constant({}),
  fc.oneof(
    otherMethod.map((method) => ({ method })),
    otherType.map((type) => ({ type })),
    otherBody.map((body) => ({ body })),
  ),
  14,
)

const request = ({
  body,
  isOnce = false,
  method,
  path: where,
  type,
}: Template): fc.Arbitrary<Step> =>
  fc
    .record({
      where,
      type,
      body,
      authorization,
      idempotencyKey: isOnce ? ownKey : idempotencyKey,
      changed: change,
    })
    .map((made): Step => {
      const sentType = made.changed.type ?? made.type
      return {
        _tag: "Request",
        method: made.changed.method ?? method,
        path: made.where,
        headers: {
          ...(made.authorization === "" ? {} : { authorization: `Bearer ${made.authorization}` }),
          ...(sentType === "" ? {} : { "content-type": sentType }),
          ...(made.idempotencyKey === "" ? {} : { "idempotency-key": made.idempotencyKey }),
        },
        body: made.changed.body ?? made.body,
      }
    })

const pass: fc.Arbitrary<Step> = fc
  .constantFrom(1000, 10_000, 10 * minute, hour)
  .map((millis) => ({ _tag: "Pass", millis }))

const step: fc.Arbitrary<Step> = fc.oneof(
  ...templates.map((template) => ({ weight: template.weight, arbitrary: request(template) })),
  { weight: 4, arbitrary: pass },
  { weight: 5, arbitrary: fc.constant<Step>({ _tag: "Deliver" }) },
)

/** Returns a seed's steps. */
export const stepsOf = (seed: number, count: number): ReadonlyArray<Step> =>
  fc.sample(fc.noBias(step), { seed, numRuns: count })
