import { memory } from "@tenure/memory"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Tenure, createTenure } from "../../src/tenure.ts"

const memberships = "/v2/projects/p1/memberships"
const future = "2099-01-01T00:00:00.000Z"

let tenure: Tenure
let token: string
let webhooks: string

beforeAll(async () => {
  tenure = await createTenure({ stores: memory(), webhooks: { dispatch: false } })
  await tenure.memberships.createProject("p1")
  await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: future })
  const webhook = await tenure.webhooks.create({ projectId: "p1", url: "https://a.example/" })
  webhooks = `/v2/projects/p1/integrations/webhooks/${webhook.id}`
  token = (await tenure.apiKeys.issue({ projects: "all", role: "admin" })).token
})

afterAll(() => tenure.close())

/** Sends a request. Returns the status and the body as text. */
const send = async (method: string, target: string, body?: unknown) => {
  const [path = "", query] = target.split("?")
  const isLines = typeof body === "string"
  const text = isLines ? body : JSON.stringify(body)
  const { body: answer, status } = await tenure.handle({
    method,
    path,
    query,
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": isLines ? "application/x-ndjson" : "application/json",
    },
    body: { _tag: "Bytes", bytes: new TextEncoder().encode(text ?? "") },
    remoteAddress: "127.0.0.1",
  })
  return { status, text: String(answer) }
}

/** Where a client may write an instant, beside the endpoints of the contract. */
const places: ReadonlyArray<
  readonly [string, (instant: unknown) => readonly [string, string, unknown?]]
> = [
  ["end_date", (instant) => ["PUT", `${memberships}/1`, { end_date: instant }]],
  [
    "a line",
    (instant) => [
      "POST",
      `${memberships}/import`,
      JSON.stringify({ user_id: "1", end_date: instant }),
    ],
  ],
  [
    "expected_end_date",
    (instant) => [
      "PATCH",
      `${memberships}/1001/extend`,
      { extend: future, expected_end_date: instant },
    ],
  ],
  ["since", (instant) => ["POST", `${webhooks}/replay`, { since: instant }]],
  [
    "expires_at",
    (at) => ["POST", "/v2/api-keys", { projects: "all", role: "client", expires_at: at }],
  ],
  ["ending_before", (instant) => ["GET", `${memberships}?ending_before=${String(instant)}`]],
  ["extend", (instant) => ["GET", `/v2/projects/p1/ends?extend=${String(instant)}`]],
]

describe("an instant", () => {
  it.each(places)("is no day: %s", async (_, request) => {
    const { status, text } = await send(...request("2097-01-31"))
    expect(status).toBe(422)
    expect(text).toContain("a day is no instant; it begins at 2097-01-31T00:00:00.000Z")
  })

  it.each(places)("is no number of seconds: %s", async (_, request) => {
    const { status, text } = await send(...request(4_000_000_000))
    expect(status).toBe(422)
    expect(text).toMatch(/milliseconds|such as 2027-01-01T00:00:00\.000Z/)
  })

  it.each(places.slice(0, 4))("may be before 1973: %s", async (_, request) => {
    const { status, text } = await send(...request("1969-12-31T23:59:59.999Z"))
    expect([status, text]).toEqual([expect.toSatisfy((code) => code === 200 || code === 409), text])
  })

  it("in the past is answered as the contract says", async () => {
    const answer = await send("PATCH", `${memberships}/1001/extend`, {
      extend: "1970-01-01T00:00:00.000Z",
    })
    expect(answer).toMatchObject({
      status: 422,
      text: expect.stringMatching(/"error":\{.*must be a future/),
    })
  })
})
