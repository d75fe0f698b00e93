import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { parseTraceparent } from "../../src/base/headers.ts"
import { eventTraceparent } from "../../src/events/event.ts"
import { startApi } from "../support/api.ts"
import { recordingTransport } from "../support/transport.ts"

const traceId = "0af7651916cd43dd8448eb211c80319c"
const parentId = "b7ad6b7169203331"
const trace = `00-${traceId}-${parentId}-01`

describe("a trace context", () => {
  it.each([
    [trace, trace],
    [`00-${traceId}-${parentId}-00`, `00-${traceId}-${parentId}-00`],
    // Flags and versions not yet known.
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
  const { sent, transport } = recordingTransport()
  let api: Awaited<ReturnType<typeof startApi>>

  beforeEach(async () => {
    sent.length = 0
    api = await startApi({ transport, webhooks: { dispatch: false } })
    const endDate = "2090-01-01T00:00:00.000Z"
    await api.tenure.memberships.grant({ projectId: "p1", userId: "1", endDate })
    await api.tenure.webhooks.create({ projectId: "p1", url: "https://example.com/" })
  })

  afterEach(() => api.tenure.close())

  type Headers = Parameters<typeof api.send>[3]

  const extend = (headers: Headers) =>
    api.send("PATCH", "/v2/projects/p1/memberships/1/extend", { extend: endDate }, headers)

  const endDate = "2099-01-01T00:00:00.000Z"

  const publish = (headers: Headers) =>
    api.send("POST", "/v2/projects/p1/events", { type: "a.b", data: {} }, headers)

  it.each([
    ["a change", extend],
    ["an event of the host", publish],
  ])("of %s is in the event, and in the request of its webhook", async (_name, act) => {
    expect((await act({ traceparent: trace })).status).toBe(200)
    await api.tenure.flush()
    expect(sent).toMatchObject([{ headers: { traceparent: trace } }])
    expect(JSON.parse(sent[0]?.body ?? "")).toMatchObject({ traceparent: trace })
  })

  it.each<readonly [string, Headers]>([
    ["missing", {}],
    ["invalid", { traceparent: `${trace}-` }],
    ["sent twice", { traceparent: [trace, trace] }],
  ])("is left out if it is %s", async (_name, headers) => {
    expect((await extend(headers)).status).toBe(200)
    await api.tenure.flush()
    expect(sent[0]?.headers).not.toHaveProperty("traceparent")
    expect(JSON.parse(sent[0]?.body ?? "")).not.toHaveProperty("traceparent")
  })

  it("of a change in process is what the host says, and not in the audit trail", async () => {
    const { events, flush, memberships } = api.tenure
    const member = { projectId: "p1", userId: "1", endDate }
    const event = { projectId: "p1", type: "a.b", data: { timestamp: "x", traceparent: trace } }
    await memberships.extend(member, { traceparent: trace })
    await events.publish({ ...event, traceparent: trace })
    // The event's data says nothing.
    await events.publish(event)
    await flush()
    const traces = sent.map(({ headers }) => headers["traceparent"])
    expect(traces).toEqual([trace, trace, undefined])
    const [row] = await memberships.history(member)
    expect(row?.origin).toEqual({ requestId: undefined, keyId: undefined })
    const wrong = { traceparent: "?" }
    await expect(memberships.extend(member, wrong)).rejects.toMatchObject({
      field: "origin.traceparent",
    })
    await expect(events.publish({ ...event, ...wrong })).rejects.toMatchObject({
      field: "traceparent",
    })
  })

  it("is found in the body alone that Tenure has written", () => {
    const body = (traceparent: string) =>
      `{"type":"a","timestamp":"b","traceparent":"${traceparent}","data":1}`
    const bodies = [body(trace), body("?"), ""]
    expect(bodies.map(eventTraceparent)).toEqual([trace, undefined, undefined])
  })
})
