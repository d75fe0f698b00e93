import { memory } from "@tenure/memory"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import { afterEach, describe, expect, it } from "vitest"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { prometheusText } from "../../src/health/metering.ts"
import { type ApiRequest, emptyBody } from "../../src/http/request.ts"
import { MembershipStore } from "../../src/memberships/store.ts"
import { counter, instruments, prometheusName } from "../../src/telemetry/instruments.ts"
import type { CreateTenureOptions, Tenure } from "../../src/tenure.ts"
import { TransportError } from "../../src/webhooks/transport.ts"
import { startApi } from "../support/api.ts"
import { recordingTransport } from "../support/transport.ts"
import { type Series, parsed } from "./parsed.ts"

const extension = "/v2/projects/:project_id/memberships/:user_id/extend"
const member = { projectId: "p1", userId: "1001" }
const endDate = "2099-01-01T00:00:00.000Z"

const opened: Array<Tenure> = []

afterEach(async () => {
  await Promise.all(opened.splice(0).map((tenure) => tenure.close()))
})

const start = async (options: Partial<CreateTenureOptions> = {}) => {
  const { tenure, token } = await startApi({ metrics: true, ...options })
  opened.push(tenure)
  return {
    tenure,
    send: (request: Partial<ApiRequest>) =>
      tenure.handle({
        method: "PATCH",
        path: "/v2/projects/p1/memberships/1001/extend",
        headers: { authorization: `Bearer ${token}` },
        body: emptyBody,
        remoteAddress: "192.0.2.1",
        ...request,
      }),
    metric: async (name: string): Promise<ReadonlyArray<Series>> =>
      parsed(await tenure.metrics()).get(name) ?? [],
  }
}

describe("metrics", () => {
  it("are off by default", async () => {
    const { tenure } = await start({ metrics: undefined })
    await expect(tenure.metrics()).rejects.toMatchObject({ _tag: "InvalidInput", field: "metrics" })
  })

  it("are those that are known", async () => {
    const { tenure } = await start()
    const known = Object.keys(instruments).map(prometheusName)
    expect(known).toEqual(expect.arrayContaining([...parsed(await tenure.metrics()).keys()]))
  })

  it("of two in a process are apart", async () => {
    const [one, other] = [await start(), await start()]
    await one.send({})
    expect(await one.metric("http_server_request_duration_seconds")).toHaveLength(1)
    expect(await other.metric("http_server_request_duration_seconds")).toEqual([])
  })

  it("count requests by route and status, whatever clients send", async () => {
    const { metric, send } = await start({ basePath: "/api", rateLimits: { perAddress: false } })
    const requests = Array.from({ length: 10 }, (_, index) => [
      { path: `/api/v2/projects/p1/memberships/${index}/extend` },
      { path: `/api/v2/${index}` },
      { path: "/nowhere", method: `BREW${index}` },
      { path: "/api/v2/realtime", method: "GET" },
    ])
    for (const request of requests.flat()) await send({ headers: {}, ...request })
    const series = await metric("http_server_request_duration_seconds")
    expect(series.map(({ labels, value }) => [...Object.values(labels), value])).toEqual([
      ["PATCH", "http", `/api${extension}`, "401", 10],
      ["PATCH", "http", "404", 10],
      ["_OTHER", "http", "404", 10],
      ["GET", "http", "/api/v2/realtime", "426", 10],
    ])
  })

  it("count refusals by what refuses", async () => {
    const { metric, send } = await start({
      rateLimits: {
        perAddress: { limit: 12, window: "1 hour" },
        perKey: { limit: 9, window: "1 hour" },
        burst: { limit: 4, window: "2 seconds", capacity: 8 },
        suspension: { refusals: 2 },
      },
    })
    for (let n = 0; n < 12; n++) await send({})
    await send({ headers: {} })
    for (let n = 0; n < 5; n++) await send({ headers: {} })
    const series = await metric("tenure_rate_limit_refusals_total")
    const seen = series.map(({ labels, value }) => [labels["tenure_rate_limit_bucket"], value])
    expect(Object.fromEntries(seen)).toEqual({ burst: 1, suspension: 3, address: 2 })
    expect(await metric("tenure_rate_limit_suspended_keys")).toEqual([{ labels: {}, value: 1 }])
  })

  it("time the calls of stores, and count those that are not answered", async () => {
    let answer: Effect.Effect<never, StoreUnavailable> | undefined
    const store = Layer.effect(
      MembershipStore,
      Effect.map(MembershipStore, (right) => ({
        ...right,
        extend: (change) => answer ?? right.extend(change),
      })),
    )
    const { metric, send, tenure } = await start({ stores: [memory(), store] })
    await tenure.memberships.grant({ ...member, endDate })
    await tenure.memberships.extend({ ...member, endDate })
    const failing = async (userId: string) =>
      expect(tenure.memberships.extend({ ...member, userId, endDate })).rejects.toBeDefined()
    // "No such member" is an answer, and so not an outage.
    await failing("2")
    answer = Effect.fail(new StoreUnavailable({ cause: "down" }))
    await failing("1001")
    answer = Effect.die("a defect")
    await failing("1001")
    const series = await metric("tenure_store_operation_duration_seconds")
    const seen = series
      .filter(({ labels }) => labels["tenure_store_operation"] === "extend")
      .map(({ labels, value }) => [labels["tenure_store_name"], labels["error_type"], value])
    expect(seen).toEqual([
      ["memberships", undefined, 2],
      ["memberships", "StoreUnavailable", 1],
      ["memberships", "Defect", 1],
    ])
    await send({ body: { _tag: "Parsed", value: { extend: endDate } } })
    const requests = await metric("http_server_request_duration_seconds")
    expect(requests.map(({ labels }) => labels["error_type"])).toEqual(["500"])
  })

  it("count attempts by outcome and error", async () => {
    const { transport } = recordingTransport(({ url }) => {
      if (url.endsWith("/bad")) return Effect.fail(new TransportError({ reason: "ECONNREFUSED" }))
      return Effect.succeed(url.endsWith("/gone") ? 410 : 204)
    })
    const { metric, tenure } = await start({
      transport,
      logger: { info: () => {}, warn: () => {}, error: () => {} },
      webhooks: { dispatch: false, retrySchedule: [] },
    })
    for (const path of ["good", "gone", "bad"]) {
      await tenure.webhooks.create({ projectId: "p1", url: `https://example.com/${path}` })
    }
    await tenure.events.publish({ projectId: "p1", type: "a.b", data: {} })
    // The 410 response disables one webhook, and the others receive that event.
    await tenure.flush()
    const series = await metric("tenure_webhook_attempt_duration_seconds")
    const seen = series.map(({ labels, value }) => [
      labels["tenure_webhook_outcome"],
      labels["error_type"],
      value,
    ])
    expect(seen).toEqual(
      expect.arrayContaining([
        ["delivered", undefined, 2],
        ["disabled", "410", 1],
        ["failed", "ECONNREFUSED", 2],
      ]),
    )
    expect(await metric("tenure_webhook_disabled")).toEqual([{ labels: {}, value: 1 }])
  })

  /** Returns the refusals counted in their own registry. */
  const refusalsOf = async (
    count: (context: Context.Context<never>) => void,
  ): Promise<ReadonlyArray<Series> | undefined> => {
    const counted = Effect.gen(function* () {
      count(yield* Effect.context())
      return yield* prometheusText
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
    return parsed(await Effect.runPromise(counted)).get("tenure_rate_limit_refusals_total")
  }

  it("of two in one registry are counted together", async () => {
    const series = await refusalsOf((context) => {
      for (let n = 0; n < 2; n++) counter("tenure.rate_limit.refusals", context)("key")(1)
    })
    expect(series).toEqual([{ labels: { tenure_rate_limit_bucket: "key" }, value: 2 }])
  })

  it("have no more series than a bound, and count what is beyond it as one", async () => {
    const series = await refusalsOf((context) => {
      const count = counter("tenure.rate_limit.refusals", context)
      for (let n = 0; n < 3000; n++) count(`bucket ${n}`)(1)
    })
    expect(series).toHaveLength(2001)
    expect(series?.at(-1)).toEqual({ labels: { otel_metric_overflow: "true" }, value: 1000 })
  })
})
