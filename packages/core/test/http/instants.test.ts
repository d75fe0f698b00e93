/** Instants in requests, beside the contract's endpoints. */

import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { startApi } from "../support/api.ts"

const memberships = "/v2/projects/p1/memberships"
const extend = "2099-01-01T00:00:00.000Z"

let api: Awaited<ReturnType<typeof startApi>>
let webhookId: string

beforeAll(async () => {
  api = await startApi({
    webhooks: { dispatch: false },
    // The requests are more than the default allows in a second.
    rateLimits: { burst: { limit: 100, window: "1 second" } },
  })
  await api.tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: extend })
  const webhook = { projectId: "p1", url: "https://a.example/" }
  webhookId = (await api.tenure.webhooks.create(webhook)).id
})

afterAll(() => api.tenure.close())

type Request = readonly [method: string, target: string, body?: unknown]

const begins = /a day is no instant; it begins at 2097-01-31T00:00:00\.000Z/
const through = /a day is no instant; for the whole day, send through/
const beside = /a day is no instant; take the end date that the membership has beside its through/

const places: ReadonlyArray<readonly [string, (instant: unknown) => Request, dayMessage: RegExp]> =
  [
    ["end_date", (end_date) => ["PUT", `${memberships}/1`, { end_date }], through],
    [
      "a line",
      (end_date) => ["POST", `${memberships}/import`, JSON.stringify({ user_id: "1", end_date })],
      through,
    ],
    [
      "expected_end_date",
      (expected_end_date) => ["PATCH", `${memberships}/1001/extend`, { extend, expected_end_date }],
      beside,
    ],
    [
      "since",
      (since) => ["POST", `/v2/projects/p1/integrations/webhooks/${webhookId}/replay`, { since }],
      begins,
    ],
    [
      "expires_at",
      (expires_at) => ["POST", "/v2/api-keys", { projects: "all", role: "client", expires_at }],
      begins,
    ],
    [
      "ending_before",
      (instant) => ["GET", `${memberships}?ending_before=${String(instant)}`],
      begins,
    ],
    ["since", (instant) => ["GET", `/v2/projects/p1/audit?since=${String(instant)}`], begins],
    ["until", (instant) => ["GET", `/v2/projects/p1/audit?until=${String(instant)}`], begins],
    ["extend", (instant) => ["GET", `/v2/projects/p1/ends?extend=${String(instant)}`], through],
  ]

const secondsOr = /milliseconds|such as 2027-01-01T00:00:00\.000Z/

describe.each(places)("an instant in %s", (_, request, dayMessage) => {
  it.each([
    ["day", "2097-01-31", dayMessage],
    ["number of seconds", 4_000_000_000, secondsOr],
  ])("is no %s", async (_kind, instant, message) => {
    const { body, status } = await api.send(...request(instant))
    expect([status, String(body)]).toEqual([422, expect.stringMatching(message)])
  })
})

it.each(places.slice(0, 4))("an instant in %s may be before 1973", async (_, request) => {
  const { body, status } = await api.send(...request("1969-12-31T23:59:59.999Z"))
  expect([200, 409], String(body)).toContain(status)
})
