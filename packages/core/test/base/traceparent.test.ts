import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { parseTraceparent } from "../../src/base/headers.ts"
import { eventTraceparent } from "../../src/events/event.ts"
import { type Tenure, createTenure } from "../../src/tenure.ts"
import { type TransportRequest, WebhookTransport } from "../../src/webhooks/transport.ts"

const traceId = "0af7651916cd43dd8448eb211c80319c"
const parentId = "b7ad6b7169203331"
const trace = `00-${traceId}-${parentId}-01`

describe("a trace context", () => {
  it.each([
    [trace, trace],
    [`00-${traceId}-${parentId}-00`, `00-${traceId}-${parentId}-00`],
    // Flags and versions that are not known yet.
    [`00-${traceId}-${parentId}-ff`, trace],
    [`cc-${traceId}-${parentId}-01`, trace],
    [`cc-${traceId}-${parentId}-01-what-the-future-will-be`, trace],
  ])("%s is %s", (given, expected) => {
    expect(parseTraceparent(given)).toBe(expected)
  })

  it.each([
    "",
    "00",
    `ff-${traceId}-${parentId}-01`,
    `00-${"0".repeat(32)}-${parentId}-01`,
    `00-${traceId}-${"0".repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${parentId}-01`,
    `00-${traceId}-${parentId}-01-more`,
    `00-${traceId}-${parentId}-01 `,
    ` ${trace}`,
    `${trace}\n`,
    `cc-${traceId}-${parentId}-01.more`,
    `cc-${traceId}-${parentId}-01-${"x".repeat(300)}`,
    `00-${traceId}-${parentId}-0"`,
  ])("%j is none", (given) => {
    expect(parseTraceparent(given)).toBeUndefined()
  })
})

describe("the trace of a request", () => {
  const sent: Array<TransportRequest> = []
  let tenure: Tenure
  let token: string

  beforeEach(async () => {
    sent.length = 0
    const transport = Layer.succeed(WebhookTransport, {
      sendsHttpToNames: true,
      send: (request) => {
        sent.push(request)
        return Effect.succeed({ status: 204, retryAfter: undefined, body: "" })
      },
    })
    tenure = await createTenure({ stores: memory(), transport, webhooks: { dispatch: false } })
    await tenure.memberships.createProject("p1")
    await tenure.memberships.grant({
      projectId: "p1",
      userId: "1",
      endDate: "2090-01-01T00:00:00.000Z",
    })
    await tenure.webhooks.create({ projectId: "p1", url: "https://example.com/" })
    ;({ token } = await tenure.apiKeys.issue({ projects: ["p1"], role: "operator" }))
  })

  afterEach(() => tenure.close())

  const send = (method: string, path: string, body: unknown, headers: object) =>
    tenure.handle({
      method,
      path: `/v2/projects/p1/${path}`,
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        ...headers,
      },
      body: { _tag: "Bytes", bytes: new TextEncoder().encode(JSON.stringify(body)) },
      remoteAddress: undefined,
    })

  const extend = (headers: object) =>
    send("PATCH", "memberships/1/extend", { extend: "2099-01-01T00:00:00.000Z" }, headers)

  const publish = (headers: object) => send("POST", "events", { type: "a.b", data: {} }, headers)

  it.each([
    ["a change", extend],
    ["an event of the host", publish],
  ])("of %s is in the event, and in the request of its webhook", async (_name, act) => {
    expect((await act({ traceparent: trace })).status).toBe(200)
    await tenure.flush()
    expect(sent).toMatchObject([{ headers: { traceparent: trace } }])
    expect(JSON.parse(sent[0]?.body ?? "")).toMatchObject({ traceparent: trace })
  })

  it.each([
    ["missing", {}],
    ["invalid", { traceparent: `${trace}-` }],
    ["sent twice", { traceparent: [trace, trace] }],
  ])("is left out if it is %s", async (_name, headers) => {
    expect((await extend(headers)).status).toBe(200)
    await tenure.flush()
    expect(sent[0]?.headers).not.toHaveProperty("traceparent")
    expect(JSON.parse(sent[0]?.body ?? "")).not.toHaveProperty("traceparent")
  })

  it("is not what the data of an event says", async () => {
    const data = { timestamp: "x", traceparent: trace }
    await tenure.events.publish({ projectId: "p1", type: "a.b", data })
    await tenure.flush()
    expect(sent[0]?.headers).not.toHaveProperty("traceparent")
  })

  it("of a change in process is what the host says, and not in the audit trail", async () => {
    const member = { projectId: "p1", userId: "1", endDate: "2099-01-01T00:00:00.000Z" }
    const { events, memberships } = tenure
    await memberships.extend(member, { traceparent: trace })
    await events.publish({ projectId: "p1", type: "a.b", data: 1, traceparent: trace })
    await tenure.flush()
    expect(sent.map(({ headers }) => headers["traceparent"])).toEqual([trace, trace])
    const [row] = await memberships.history(member)
    expect(row?.origin).toEqual({ requestId: undefined, keyId: undefined })
    await expect(memberships.extend(member, { traceparent: "?" })).rejects.toMatchObject({
      field: "origin.traceparent",
    })
    const invalid = { projectId: "p1", type: "a.b", data: 1, traceparent: "?" }
    await expect(events.publish(invalid)).rejects.toMatchObject({ field: "traceparent" })
  })

  it("is found in the body alone that Tenure has written", () => {
    const body = (traceparent: string) =>
      `{"type":"a","timestamp":"b","traceparent":"${traceparent}","data":1}`
    expect(eventTraceparent(body(trace))).toBe(trace)
    expect(eventTraceparent(body("?"))).toBeUndefined()
    expect(eventTraceparent("")).toBeUndefined()
  })
})
