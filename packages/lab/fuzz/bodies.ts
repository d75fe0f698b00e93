/** Request bodies: valid ones, near misses, and what no parser should accept. */

import * as fc from "fast-check"
import { values, words } from "./vocabulary.ts"

const dates: ReadonlyArray<unknown> = [
  ...words(`
    2099-01-01T00:00:00.000Z 9999-12-31T23:59:59.999Z 2000-01-01T00:00:00.000Z
    0000-01-01T00:00:00.000Z 2096-02-29T00:00:00.000Z 2099-02-29T00:00:00.000Z
    2099-01-01T24:00:00.000Z 2099-01-01T00:00:60.000Z 2099-01-01T00:00:00.00Z
    2099-01-01T00:00:00.0000Z 2099-01-01T00:00:00Z 2099-01-01T00:00:00.000+00:00
    2099-01-01T00:00:00.000z 2099-1-1T00:00:00.000Z +002099-01-01T00:00:00.000Z
    -000001-01-01T00:00:00.000Z ２０９９-01-01T00:00:00.000Z 2099-01-01 4070908800000
  `),
  ...values(String.raw`
    "2099-01-01 00:00:00.000Z", " 2099-01-01T00:00:00.000Z", "2099-01-01T00:00:00.000Z\n", "",
    4070908800000, 999999999999, 1000000000000, 9999999999999, 10000000000000, 4070908800000.5,
    -4070908800000, 0, -1, 9007199254740991, 1e300, null, true, [], {}, ["2099-01-01T00:00:00.000Z"]
  `),
]

const urls: ReadonlyArray<unknown> = [
  ...words(`
    https://receiver.example/ https://receiver.example:8443/a?b#c http://receiver.example/
    https://127.0.0.1/ https://[::1]/ https://user:password@receiver.example/ https://xn--/
    https://１２７.0.0.1/ ftp://receiver.example/ javascript:alert(1) //receiver.example/ https://
  `),
  ...values(String.raw`"https://receiver.example/\u0000", "", null, 7, {}`),
  `https://receiver.example/${"x".repeat(5000)}`,
]

const timeZones: ReadonlyArray<unknown> = [
  ...words("UTC utc Europe/Berlin europe/BERLIN Etc/GMT+1 +01:00 GMT+1 Europe/Nowhere BST ＵＴＣ"),
  ...values(String.raw`"", " UTC", "UTC\u0000", null, 7, ["UTC"], {}`),
  `Europe/${"x".repeat(5000)}`,
]

const days: ReadonlyArray<unknown> = [
  ...words(`
    2099-01-31 2096-02-29 2099-02-29 9999-12-30 9999-12-31 0001-01-01 0000-12-31 2000-01-01 2099-1-31
    +002099-01-31 2099-01-31T00:00:00.000Z ２０９９-01-31 20990131 2099-031 2099-W05-6
  `),
  ...values(String.raw`"2099-01-31\n", " 2099-01-31", "", null, 20990131, ["2099-01-31"], {}`),
]

const durations: ReadonlyArray<unknown> = [
  ...words("P1M P1Y P1M1DT1H PT1S P0D P -P1M P1.5M p1m P9999Y P99999999999999999999D PT1M1H P1W"),
  ...values(String.raw`"P1M\n", "", null, 1, ["P1M"]`),
]

const graces: ReadonlyArray<unknown> = [
  ...words(
    "P7D P90D P90DT1S P91D P1W PT1S PT0S P0D P1M P1Y P -P1D P1.5D p1d P99999999999999999999D none",
  ),
  ...values(String.raw`"P7D\n", " P7D", "", null, 7, 0, ["P7D"], {}`),
]

const date = fc.constantFrom(...dates)
const day = fc.constantFrom(...days)
const timeZone = fc.constantFrom(...timeZones)

const odd = fc.constantFrom<unknown[]>(
  ...words("text __proto__ membership.extended payment.completed p1 p2 all admin operator"),
  ...values(String.raw`
    "", "\u0000", "\ud800", "01a202e3-1074-7765-acfd-b456e9c1556c", 0, -0.5, 1e21, true, false, null,
    [], ["p1"], ["p1", "p2"], ["payment.completed", 7], {}, { "a": { "b": [1, null] } }
  `),
  "x".repeat(501),
)

const valuesOf = (names: string, value: fc.Arbitrary<unknown>) =>
  Object.fromEntries(words(names).map((name) => [name, value]))

/** Fields for the other operations, valid ones and others. */
const fields = fc.record(
  {
    ...valuesOf("extend end_date expected_end_date since expires_at until", date),
    ...valuesOf("through", day),
    ...valuesOf("time_zone", timeZone),
    ...valuesOf("extend_by", fc.constantFrom(...durations)),
    ...valuesOf("grace", fc.constantFrom(...graces)),
    ...valuesOf(
      "dry_run create if_absent reason to type data event_id projects role name event_types",
      odd,
    ),
    url: fc.constantFrom(...urls),
  },
  { requiredKeys: [] },
)

/** What some other operations expect. */
const expected = fc.oneof(
  date.map((end_date) => ({ end_date })),
  fc.tuple(date, date).map(([extend, expected_end_date]) => ({ extend, expected_end_date })),
  fc.tuple(date, odd).map(([extend, dry_run]) => ({ extend, dry_run })),
  fc.tuple(date, odd).map(([extend, reason]) => ({ extend, reason })),
  fc.tuple(date, odd).map(([extend, create]) => ({ extend, create })),
  fc.tuple(date, odd).map(([end_date, if_absent]) => ({ end_date, if_absent })),
  odd.map((data) => ({ type: "payment.completed", data })),
  date.map((since) => ({ since })),
  timeZone.map((time_zone) => ({ time_zone })),
  fc.tuple(fc.constantFrom(...graces), odd).map(([grace, dry_run]) => ({ grace, dry_run })),
  fc.tuple(day, timeZone).map(([through, time_zone]) => ({ through, time_zone })),
  fc.tuple(day, date).map(([through, end_date]) => ({ through, end_date })),
  fc.tuple(date, odd).map(([until, reason]) => ({ until, reason })),
  fc.tuple(date, day).map(([until, through]) => ({ until, through })),
  odd.map((to) => ({ to })),
  day.map((through) => ({ through, mode: "never_shorten", dry_run: true })),
  fc
    .tuple(fc.constantFrom(...durations), timeZone)
    .map(([extend_by, time_zone]) => ({ extend_by, time_zone, dry_run: true })),
  odd.map((event_id) => ({ event_id })),
  date.map((expires_at) => ({ projects: ["p1"], role: "client", expires_at })),
  odd.map((projects) => ({ projects, role: "client" })),
)

/** Import lines. */
const lines = fc
  .array(
    fc.oneof(
      fc.nat(5000).map((n) => ({ user_id: `${1001 + n}`, end_date: "2099-01-01T00:00:00.000Z" })),
      fc.tuple(odd, date).map(([user_id, end_date]) => ({ user_id, end_date })),
      fc
        .tuple(fc.nat(5000), day, timeZone)
        .map(([n, through, time_zone]) => ({ user_id: `${1001 + n}`, through, time_zone })),
      fc.tuple(date, date).map(([paused_at, resumes_at]) => ({
        user_id: "2001",
        end_date: "2099-01-01T00:00:00.000Z",
        paused_at,
        resumes_at,
      })),
    ),
    { maxLength: 20 },
  )
  .chain((members) =>
    fc
      .constantFrom("\n", "\r\n", "\n\n", "\u2028", ",")
      .map((separator) => members.map((member) => JSON.stringify(member)).join(separator)),
  )

/** The bodies that the operations expect. */
const objects = fc.oneof(
  date.map((extend) => ({ extend })),
  fc.constantFrom(...urls).map((url) => ({ url })),
  date.map((extend) => ({ extend, url: "x", other: [1, { a: null }] })),
)

const nested = fc
  .tuple(fc.constantFrom(1, 10, 100, 1000, 10_000, 30_000), fc.constantFrom("[", '{"extend":'))
  .map(([depth, opening]) => {
    const closing = opening === "[" ? "]" : "}"
    return `{"extend":${opening.repeat(depth)}1${closing.repeat(depth)}}`
  })

const valid = '{"extend":"2099-01-01T00:00:00.000Z"}'

/** Text that is no valid body, or only just one. */
const texts: ReadonlyArray<string> = [
  ...words(String.raw`
    { } null [] {} undefined NaN extend=1 {"extend":} {"extend":1,} {"extend":01}
    {"extend":4070908800000.0} {"extend":4.0709088e12} {"extend":4070908800000e0} {"extend":1e400}
    {"extend":-0} {"extend":1,"extend":"2099-01-01T00:00:00.000Z"}
    {"extend":"2099-01-01T00:00:00.000Z","extend":1} {"ext\u0065nd":"2099-01-01T00:00:00.000Z"}
    {"__proto__":${valid}} {"constructor":{"prototype":${valid}}}
    {"toString":1,"hasOwnProperty":2,"extend":1} {"extend":"\ud800"} {"extend":"\u0000"}
    ${valid}${valid}
  `),
  "",
  " ",
  `${valid}\u0000`,
  ` \t\r\n${valid}\r\n`,
  `\u00a0${valid}`,
]

const padded = fc
  .integer({ min: 65_500, max: 65_600 })
  .map((length) => Buffer.from(valid.padEnd(length, " ")))

const bytes: ReadonlyArray<Buffer> = [
  Buffer.from([0xff, 0xfe, 0x7b, 0x7d]),
  Buffer.from([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d]),
  Buffer.from(`\ufeff${valid}`),
  Buffer.from(valid, "utf16le"),
  Buffer.from('{"extend":"\u00e9"}', "latin1"),
  Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]),
]

const cut = objects.chain((value) => {
  const text = JSON.stringify(value)
  return fc.nat({ max: text.length }).map((length) => Buffer.from(text).subarray(0, length))
})

const asJson = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))
const asText = (text: string): Buffer => Buffer.from(text)

/** Bodies. */
export const body: fc.Arbitrary<Buffer> = fc.oneof(
  { weight: 12, arbitrary: objects.map(asJson) },
  { weight: 8, arbitrary: expected.map(asJson) },
  { weight: 4, arbitrary: fields.map(asJson) },
  { weight: 3, arbitrary: lines.map(asText) },
  { weight: 4, arbitrary: fc.constantFrom(...texts).map(asText) },
  { weight: 2, arbitrary: fc.constantFrom(...bytes) },
  { weight: 2, arbitrary: cut },
  { weight: 1, arbitrary: nested.map(asText) },
  { weight: 1, arbitrary: padded },
  { weight: 1, arbitrary: fc.json().map(asText) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 64 }).map((array) => Buffer.from(array)) },
)
