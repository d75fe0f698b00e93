import { memory } from "@tenure/memory"
import { type Server, serve } from "@tenure/node-http"
import * as Effect from "effect/Effect"
import * as HttpApiClient from "effect/http-api/HttpApiClient"
import * as OpenApi from "effect/http-api/OpenApi"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { apiErrors } from "../../src/api/errors.ts"
import { timestampFormat } from "../../src/base/input.ts"
import { instantPattern } from "../../src/base/time.ts"
import { routes } from "../../src/http/routes.ts"
import { userIdPattern } from "../../src/memberships/membership.ts"
import { Api, complete, openApi } from "../../src/openapi/document.ts"
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
    // No operation answers an unknown path.
    const { RouteNotFound: _path, UpgradeRequired: _upgrade, ...errors } = apiErrors
    const expected = Object.values(errors).map(({ code, status }) => `${status} ${code}`)
    expect(new Set(documented)).toEqual(new Set(expected))
  })

  it("has a bearer token and the common errors in each operation", () => {
    for (const { operationId, requestBody, responses, security } of operations) {
      const needsKey = !operationId.startsWith("docs.")
      expect(security).toEqual(needsKey ? [{ bearer: [] }] : [])
      const common = ["200", "400", "405", "408", "429", "431", "500", "503"]
      if (needsKey) common.push("401")
      if (requestBody !== undefined) common.push("413", "415")
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(common))
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

  it("has no schema twice, and not two of one name", () => {
    const spec = OpenApi.fromApi(Api)
    const withRole9 = (schema: OpenApi.OpenAPIComponents["schemas"][string]) => {
      const schemas = { ...spec.components.schemas, Role_9: schema }
      return complete({ ...spec, components: { ...spec.components, schemas } })
    }
    expect(withRole9({ ...spec.components.schemas["Role"] })).toEqual(complete(spec))
    expect(() => withRole9({ type: "string" })).toThrow("Role")
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

  const params = { project_id: "p1" }
  const member = { ...params, user_id: "1001" }
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

  it("reads errors as documented, and a refusal, which has a body of its own shape", async () => {
    const { memberships, webhooks } = await client()
    const stranger = await client("wrong")
    const invalid = { error_code: "VALIDATION_ERROR" }
    const extend = (parts: object, body = payload) =>
      memberships.extend({ params: { ...member, ...parts }, payload: body })
    const missing = { ...params, webhook_id: crypto.randomUUID() }
    const failures: ReadonlyArray<readonly [Effect.Effect<unknown, unknown>, object]> = [
      [extend({ project_id: "p9" }), { code: 404, error: { error_code: "PROJECT_NOT_FOUND" } }],
      [extend({ user_id: "9" }), { error: { error_code: "MEMBERSHIP_NOT_FOUND" } }],
      [
        extend({}, { extend: "2099-02-30T00:00:00.000Z" }),
        { code: 422, errors: [invalid, invalid] },
      ],
      [extend({}, { extend: "2001-01-01T00:00:00.000Z" }), { code: 422, error: invalid }],
      [webhooks.delete({ params: missing }), { error: { error_code: "WEBHOOK_NOT_FOUND" } }],
      [stranger.webhooks.list({ params }), { code: 401 }],
    ]
    for (const [call, failure] of failures) {
      expect(await run(Effect.flip(call))).toMatchObject(failure)
    }
    const list = webhooks.list({ params })
    await run(Effect.replicateEffect(Effect.ignore(list), 15))
    expect(await run(Effect.flip(list))).toMatchObject({
      code: 429,
      error: { code: "RATE_LIMIT_EXCEEDED", retry_after: expect.any(Number) },
    })
  })
})
