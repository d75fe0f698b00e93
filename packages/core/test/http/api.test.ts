import { memory } from "@tenure/memory"
import { type Server, serve } from "@tenure/node-http"
import * as Effect from "effect/Effect"
import * as HttpApiClient from "effect/http-api/HttpApiClient"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { instantPattern } from "../../src/base/time.ts"
import { apiErrors } from "../../src/http/errors.ts"
import { routes } from "../../src/http/routes.ts"
import { timestampFormat } from "../../src/memberships/end-date.ts"
import { userIdPattern } from "../../src/memberships/membership.ts"
import { Api, openApi } from "../../src/openapi/document.ts"
import { Authorization } from "../../src/openapi/schemas.ts"
import { type Tenure, createTenure } from "../../src/tenure.ts"

const document = openApi()

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
)

describe("the OpenAPI document", () => {
  it("has exactly the operations of the table of routes", () => {
    const documented = operations.map(({ method, operationId, path }) => [
      operationId,
      `${method.toUpperCase()} ${path}`,
    ])
    const ownRoutes = Object.entries(routes).map(([operation, { method, pattern }]) => [
      operation,
      `${method} ${pattern.replaceAll(/:(\w+)/g, "{$1}")}`,
    ])
    expect(Object.fromEntries(documented)).toEqual(Object.fromEntries(ownRoutes))
  })

  it("has exactly the errors of the table of errors", () => {
    const { responses } = document.components
    const documented = operations.flatMap((operation) =>
      Object.entries(operation.responses).flatMap(([status, response]) => {
        const name = "$ref" in response ? response.$ref.replace(/.*\//, "") : ""
        const examples = responses[name]?.content?.["application/json"]?.examples ?? {}
        const codes = JSON.stringify(examples).matchAll(/"(?:error_)?code":"(\w+)"/g)
        return [...codes].map(([, code]) => `${status} ${code}`)
      }),
    )
    // No operation answers a path that the API does not have.
    const { RouteNotFound: _path, UpgradeRequired: _upgrade, ...errors } = apiErrors
    const expected = Object.values(errors).map(({ code, status }) => `${status} ${code}`)
    expect(new Set(documented)).toEqual(new Set(expected))
  })

  it("has a bearer token and the common errors in each operation", () => {
    for (const { operationId, requestBody, responses, security } of operations) {
      const needsKey = !operationId.startsWith("docs.")
      expect(security).toEqual(needsKey ? [{ bearer: [] }] : [])
      const common = [
        200,
        400,
        405,
        408,
        429,
        431,
        500,
        503,
        ...(needsKey ? [401] : []),
        ...(requestBody === undefined ? [] : [413, 415]),
      ]
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(common.map(String)))
    }
  })

  it("has the limits and patterns of the values that clients send", () => {
    const text = JSON.stringify(document)
    const { maximum, minimum } = timestampFormat
    for (const { source } of [instantPattern, userIdPattern]) {
      expect(text).toContain(`"pattern":${JSON.stringify(source)}`)
    }
    expect(text).toContain(`"minimum":${minimum},"maximum":${maximum}`)
  })
})

describe("the typed client", () => {
  let tenure: Tenure
  let server: Server
  let token: string

  const client = (given = token) =>
    HttpApiClient.make(Api, { baseUrl: server.url }).pipe(
      Effect.provide(Authorization.layerClient(Redacted.make(given))),
      Effect.provide(FetchHttpClient.layer),
      Effect.runPromise,
    )
  const run = Effect.runPromise
  const failureOf = <A, E>(effect: Effect.Effect<A, E>) => run(Effect.flip(effect))

  const member = { project_id: "p1", user_id: "1001" }
  const payload = { extend: "2099-01-01T00:00:00.000Z" }

  beforeAll(async () => {
    tenure = await createTenure({
      stores: memory(),
      rateLimits: { burst: { limit: 15, window: "1 hour" } },
    })
    server = await serve(tenure)
    await tenure.memberships.createProject("p1")
    const grant = { projectId: "p1", userId: "1001", endDate: 1_000_000_000_000 }
    await tenure.memberships.grant(grant)
    token = (await tenure.apiKeys.issue({ projects: ["p1"] })).token
  })

  afterAll(async () => {
    await server.close()
    await tenure.close()
  })

  it("reads the result of each operation", async () => {
    const { memberships, webhooks } = await client()
    const params = { project_id: "p1" }
    const one = await run(memberships.extend({ params: member, payload }))
    expect(one).toMatchObject({ total: 1, data: { new_end_date: payload.extend } })
    const all = await run(memberships.extendAll({ params, payload: { extend: 1_999_999_999_999 } }))
    expect(all).toMatchObject({ total: 1, data: { new_end_date: "2033-05-18T03:33:19.999Z" } })
    const url = "https://receiver.example/"
    const { data } = await run(webhooks.create({ params, payload: { url } }))
    expect(await run(webhooks.list({ params }))).toMatchObject({ total: 1, data: [data] })
    const deleted = await run(webhooks.delete({ params: { ...params, webhook_id: data.id } }))
    expect(deleted.data).toBeNull()
  })

  it("reads errors as documented", async () => {
    const { memberships, webhooks } = await client()
    const foreign = { ...member, project_id: "p9" }
    expect(await failureOf(memberships.extend({ params: foreign, payload }))).toMatchObject({
      code: 404,
      error: { error_code: "PROJECT_NOT_FOUND" },
    })
    const unknown = { ...member, user_id: "9" }
    expect(await failureOf(memberships.extend({ params: unknown, payload }))).toMatchObject({
      error: { error_code: "MEMBERSHIP_NOT_FOUND" },
    })
    const unreal = { extend: "2099-02-30T00:00:00.000Z" }
    expect(await failureOf(memberships.extend({ params: member, payload: unreal }))).toMatchObject({
      code: 422,
      errors: [{ error_code: "VALIDATION_ERROR" }, { error_code: "VALIDATION_ERROR" }],
    })
    const past = { extend: 1_000_000_000_000 }
    expect(await failureOf(memberships.extend({ params: member, payload: past }))).toMatchObject({
      code: 422,
      error: { error_code: "VALIDATION_ERROR" },
    })
    const missing = { project_id: "p1", webhook_id: crypto.randomUUID() }
    expect(await failureOf(webhooks.delete({ params: missing }))).toMatchObject({
      error: { error_code: "WEBHOOK_NOT_FOUND" },
    })
    const stranger = await client("wrong")
    expect(await failureOf(stranger.webhooks.list({ params: { project_id: "p1" } }))).toMatchObject(
      { code: 401 },
    )
  })

  it("reads a refusal, which has a body of its own shape", async () => {
    const { webhooks } = await client()
    const list = webhooks.list({ params: { project_id: "p1" } })
    for (let count = 0; count < 15; count++) await run(Effect.ignore(list))
    expect(await failureOf(list)).toMatchObject({
      code: 429,
      error: { code: "RATE_LIMIT_EXCEEDED", retry_after: expect.any(Number) },
    })
  })
})
