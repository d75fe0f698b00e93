/** Random steps: requests to every operation, the passing of time, and deliveries. */

import * as fc from "fast-check"
import { adminToken, token } from "../vocabulary.ts"

/**
 * A request. Each store puts its own values in the place of `{kind:index}` in all texts, for example
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
  /** Time passes, and ends of memberships are announced. */
  | { readonly _tag: "Pass"; readonly millis: number }
  /** What is due is delivered. */
  | { readonly _tag: "Deliver" }

/** What the stores have at first. */
export const projects = ["p1", "p2"]
export const members = ["1", "2", "3", "4"]

/** The key of an operator of both projects. */
export const operatorToken = `fuzz-operator-${"x".repeat(32)}`

/** The URLs of receivers, and the status that each responds. */
export const receivers = new Map([
  ["https://sound.example/", 204],
  ["https://broken.example/", 500],
  ["https://gone.example/", 410],
])

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

type Text = fc.Arbitrary<string>

const pick = (...texts: readonly [string, ...ReadonlyArray<string>]): Text =>
  fc.constantFrom(...texts)

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
    "08",
    "999",
    "a",
    "-1",
    "%31",
    "auth0%7C1",
    "%22%5C",
    "%2F",
    "%2525",
    "~",
    "9".repeat(40),
    "18446744073709551616",
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
const key = mostly(nth("issued", 4), pick("{key:0}", "{key:2}", "{uuid:0}", "no-uuid", "%zz"))

/** A time at an offset from the first step, as text of JSON. */
const timeAt = (offset: number): Text =>
  fc.boolean().map((isText) => (isText ? `"{iso:${offset}}"` : `{ms:${offset}}`))

const soon = fc.constantFrom(20 * minute, 90 * minute, 5 * hour, 2 * day, 10 * day)
const future = fc.oneof(
  fc.integer({ min: 40, max: 60 }).map((days) => days * day),
  soon,
)
const past = fc.constantFrom(-day, -400 * day)
const wrongTime = pick(
  "1790000000",
  '"2099-01-01"',
  '"2099-01-01T00:00:00Z"',
  '"2099-02-30T00:00:00.000Z"',
  "null",
  "{}",
  '""',
)
const futureTime = mostly(future.chain(timeAt), fc.oneof(past.chain(timeAt), wrongTime), 12)
const anyTime = mostly(fc.oneof(future, past).chain(timeAt), wrongTime, 12)

/** Members of a JSON object, each of which may be left out. */
const object = (
  fields: Readonly<Record<string, Text>>,
  optional: Readonly<Record<string, Text>> = {},
): Text => {
  const all = [
    ...Object.entries(fields).map(([name, value]) => ({
      name,
      value: mostly(value, pick(""), 40),
    })),
    ...Object.entries(optional).map(([name, value]) => ({
      name,
      value: mostly(pick(""), value, 6),
    })),
  ]
  return fc
    .tuple(...all.map(({ name, value }) => value.map((text) => text && `"${name}":${text}`)))
    .map((parts) => `{${parts.filter((part) => part !== "").join(",")}}`)
}

const truth = mostly(pick("true", "true", "false"), pick('"true"', "1"))
const metadata = mostly(
  pick('{"plan":"gold"}', '{"a":"\\"}]","plan":"ä€😀"}', '{"plan":null,"seat":"1"}', "{}"),
  pick('{"plan":7}', '{"":"x"}', "[]", "null"),
)

const reason = mostly(pick('"a reason"', '"ä€😀"'), pick('""', `"${"r".repeat(501)}"`, "7"))
const eventTypes = pick(
  '["membership.extended"]',
  '["membership.granted","custom.one"]',
  '["custom.one"]',
  "[]",
  '"membership.extended"',
)

/** The query of a list, of whose pages the cursors have a name. */
const list = (cursor: string, more: Readonly<Record<string, Text>> = {}): Text => {
  const after = mostly(
    nth(cursor, 3),
    pick(
      "start",
      "zzz",
      "0",
      "-1",
      "1.1",
      "0.0",
      "999999.7",
      "{uuid:0}",
      "%00",
      "",
      // A place in the feed, which differs by store. Alone, it could also be a user id.
      "~{cursor:0}",
      "{event-p1:0}",
    ),
    16,
  )
  const limit = mostly(
    pick("1", "2", "3", "5", "100", "1000"),
    pick("0", "1001", "x", "", "1.5"),
    24,
  )
  const parts = Object.entries({
    after: mostly(pick(""), after, 1),
    limit: mostly(pick(""), limit, 1),
    ...Object.fromEntries(
      Object.entries(more).map(([name, text]) => [name, mostly(pick(""), text, 4)]),
    ),
    unknown: mostly(pick(""), pick("1"), 60),
  }).map(([name, value]) => value.map((text) => (text === "" ? "" : `${name}=${text}`)))
  return fc.tuple(...parts).map((texts) => {
    const query = texts.filter((text) => text !== "").join("&")
    return query === "" ? "" : `?${query}`
  })
}

const importLine = object({ user_id: user.map((id) => JSON.stringify(id)), end_date: anyTime })
const validLine = fc
  .tuple(fc.integer({ min: 1, max: 12 }), fc.oneof(future, past).chain(timeAt))
  .map(([id, time]) => ({ id, text: `{"user_id":"${id}","end_date":${time}}` }))
const importBody = mostly(
  fc
    .uniqueArray(validLine, { selector: ({ id }) => id, maxLength: 6 })
    .map((lines) => lines.map(({ text }) => `${text}\n`).join("")),
  fc.array(importLine, { maxLength: 4 }).map((lines) => lines.join("\n")),
)

const json = pick("application/json")
const ndjson = pick("application/x-ndjson")
const none = pick("")

interface Template {
  readonly weight: number
  readonly method: string
  readonly path: Text
  readonly type?: Text
  readonly body?: Text
}

/** A path whose parts are texts and what generates them. */
const path = (...parts: ReadonlyArray<string | Text>): Text =>
  fc
    .tuple(...parts.map((part) => (typeof part === "string" ? fc.constant(part) : part)))
    .map((texts) => texts.join(""))

/** A path in a project, whose values are those of the project. */
const within = (...parts: ReadonlyArray<string | Text>): Text =>
  fc
    .tuple(project, path(...parts))
    .map(([id, rest]) => `/v2/projects/${id}${rest.replaceAll("-P:", `-${id}:`)}`)

const hook = (...parts: ReadonlyArray<string | Text>): Text =>
  within("/integrations/webhooks/", webhook, ...parts)

// The cursors of p1 are used more often than any others.
const templates: ReadonlyArray<Template> = [
  {
    weight: 10,
    method: "PATCH",
    path: within("/memberships/", user, "/extend"),
    type: json,
    body: object(
      { extend: futureTime },
      {
        expected_end_date: anyTime,
        dry_run: truth,
        events: mostly(none, truth, 2),
        reason,
        mode: pick('"set"'),
      },
    ),
  },
  {
    weight: 5,
    method: "PATCH",
    path: within("/memberships/extend"),
    type: json,
    body: object(
      { extend: futureTime },
      {
        mode: pick('"set"', '"never_shorten"', '"never_shorten"', '"no"'),
        dry_run: truth,
        events: mostly(none, truth, 2),
        reason,
        expected_end_date: anyTime,
      },
    ),
  },
  {
    weight: 2,
    method: "PATCH",
    path: within("/memberships/extend"),
    type: json,
    body: object({ extend: futureTime, mode: pick('"never_shorten"') }),
  },
  {
    weight: 5,
    method: "POST",
    path: within("/integrations/webhooks"),
    type: json,
    body: object(
      {
        url: mostly(
          pick('"https://sound.example/"', '"https://broken.example/"', '"https://gone.example/"'),
          pick('"http://127.0.0.1/"', '"ftp://a.example/"', "7", '""'),
          8,
        ),
        ordered: mostly(none, truth, 1),
        rate: mostly(none, pick("null", "1", "8", "1000", "0"), 2),
      },
      { event_types: eventTypes },
    ),
  },
  { weight: 3, method: "GET", path: within("/integrations/webhooks") },
  { weight: 3, method: "DELETE", path: hook() },
  { weight: 2, method: "GET", path: path("/v2/projects", list("cursor-projects")) },
  { weight: 2, method: "PUT", path: within(pick("", "", "?a=1")) },
  { weight: 1, method: "PUT", path: pick("/v2/projects/p3") },
  { weight: 2, method: "GET", path: within(pick("", "", "", "?a=1")) },
  {
    weight: 1,
    method: "DELETE",
    path: path(
      "/v2/projects/",
      mostly(pick("p3", "p3", "p3", "missing"), pick("p1", "p2", "p2"), 8),
    ),
  },
  {
    weight: 6,
    method: "GET",
    path: within(
      "/memberships",
      list("cursor-memberships-P", {
        state: pick("active", "expired", "other"),
        user_ids: pick("1,2", "2,1,99", "4", "a", "1,1", ""),
        prefix: pick("1", "1", "12", "%25", "_", ""),
      }),
    ),
  },
  {
    weight: 5,
    method: "GET",
    path: within("/memberships", list("none")).chain((start) =>
      future.map(
        (offset) => `${start}${start.includes("?") ? "&" : "?"}ending_before={iso:${offset}}`,
      ),
    ),
  },
  { weight: 3, method: "GET", path: within("/memberships/", user) },
  {
    weight: 6,
    method: "PUT",
    path: within("/memberships/", user),
    type: json,
    body: object({ end_date: anyTime }, { reason, metadata, dry_run: mostly(none, truth, 4) }),
  },
  {
    weight: 4,
    method: "PATCH",
    path: within("/memberships/", user),
    type: json,
    body: object({ metadata }, { reason }),
  },
  {
    weight: 3,
    method: "DELETE",
    path: within(
      "/memberships/",
      user,
      mostly(none, pick("?erase=true", "?erase=false", "?erase=1"), 3),
    ),
  },
  {
    weight: 4,
    method: "GET",
    path: within("/memberships/", user, "/history", list("cursor-history-P")),
  },
  {
    weight: 4,
    method: "POST",
    path: within(
      "/memberships/import",
      mostly(
        none,
        pick("?dry_run=true", "?dry_run=true&events=true", "?events=true", "?dry_run=1"),
        3,
      ),
    ),
    type: ndjson,
    body: importBody,
  },
  { weight: 4, method: "GET", path: within("/audit", list("cursor-audit-P")) },
  {
    weight: 5,
    method: "POST",
    path: within("/events"),
    type: json,
    body: object({
      type: mostly(pick('"custom.one"', '"custom.two"'), pick('"Custom"', "7", '""'), 10),
      data: pick('{"a":[1,2.5,null]}', '"text"', "null", "[]", '{"user_id":"1"}'),
    }),
  },
  {
    weight: 7,
    method: "GET",
    path: within(
      "/events",
      list("cursor-feed-P", {
        types: pick("membership.extended", "custom.one,custom.two", "membership.ended", "No"),
        wait: pick("0", "21", "x"),
        data: pick("true", "false", "no"),
      }),
    ),
  },
  {
    weight: 3,
    method: "GET",
    path: within(
      "/events",
      pick("?after=start", "?after=start&limit=1000", "?after=start&limit=2"),
    ),
  },
  {
    weight: 4,
    method: "GET",
    path: within("/events/", event, mostly(none, pick("?data=false", "?data=x"), 3)),
  },
  { weight: 2, method: "GET", path: within("/integrations/health") },
  { weight: 3, method: "GET", path: hook() },
  { weight: 2, method: "POST", path: hook("/ping") },
  { weight: 2, method: "POST", path: hook("/enable") },
  {
    weight: 3,
    method: "PATCH",
    path: hook(),
    type: json,
    body: object(
      {},
      {
        disabled: truth,
        description: pick('"a shop"', "null", '""'),
        event_types: pick("null", '["custom.one"]', "[]"),
        ordered: truth,
        rate: pick("null", "1", "8", "-1"),
        headers: pick("null", '{"X-A":"1"}', '{"x-a":null,"x-b":"2"}', '{"Host":"1"}'),
      },
    ),
  },
  { weight: 2, method: "POST", path: hook("/rotate") },
  {
    weight: 4,
    method: "GET",
    path: hook(
      "/deliveries",
      list("cursor-deliveries-P", { state: pick("waiting", "delivered", "failed", "other") }),
    ),
  },
  { weight: 3, method: "GET", path: hook("/deliveries/", event) },
  {
    weight: 3,
    method: "POST",
    path: hook("/replay"),
    type: json,
    body: fc.oneof(
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
  },
  { weight: 3, method: "GET", path: path("/v2/api-keys", list("cursor-keys")) },
  {
    weight: 2,
    method: "POST",
    path: pick("/v2/api-keys"),
    type: json,
    body: object(
      {
        projects: pick(
          '["p1"]',
          '["p2","p1"]',
          '["p1","p2"]',
          '"all"',
          '["missing"]',
          "[]",
          '["p2","p2"]',
          '["p3","p2"]',
        ),
        role: mostly(pick('"client"', '"operator"', '"admin"'), pick('"owner"')),
      },
      { name: pick('"a name"', '""', "7"), expires_at: anyTime },
    ),
  },
  { weight: 1, method: "DELETE", path: path("/v2/api-keys/", key) },
  {
    weight: 1,
    method: "POST",
    path: pick("/v2/realtime/tickets"),
    type: json,
    body: object({ projects: pick('["p1"]', '"all"', '["missing"]', "[]") }),
  },
  { weight: 2, method: "GET", path: path("/v2/audit", list("cursor-others")) },
  {
    weight: 1,
    method: "GET",
    path: pick("/v2/identity", "/v2/status", "/v2/status/activity", "/v2/realtime"),
  },
  {
    weight: 1,
    method: "GET",
    path: within(
      "/events",
      pick("?ticket={ticket:0}", "?ticket=tkt_no", "?ticket={ticket:1}&after=start"),
    ),
  },
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

const otherMethod = pick("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
const otherType = pick(
  "text/plain",
  "application/json; charset=utf-8",
  "application/x-ndjson",
  "application/json",
  "",
)
const otherBody = pick("", "{", "[]", "null", '{"extend":1}')

/** Changes of requests, of which one in fifteen has one. */
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

const request = ({ body = none, method, path: where, type = none }: Template): fc.Arbitrary<Step> =>
  fc
    .record({ where, type, body, authorization, idempotencyKey, changed: change })
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

/** Returns the steps of a seed. */
export const stepsOf = (seed: number, count: number): ReadonlyArray<Step> =>
  fc.sample(fc.noBias(step), { seed, numRuns: count })
