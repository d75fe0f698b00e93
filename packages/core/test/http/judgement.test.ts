/** The order in which the API checks a request, and its refusals, for every endpoint. */

import { memory } from "@tenure/memory"
import * as Struct from "effect/Struct"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type ApiRequest, type Body, emptyBody } from "../../src/http/request.ts"
import { type Operation, makeRoutes, requiredRole, routes } from "../../src/http/routes.ts"
import { type Tenure, createTenure } from "../../src/tenure.ts"

const admin = { keyId: "admin", role: "admin", projects: "all" } as const
const operator = { keyId: "operator", role: "operator", projects: ["p1"] } as const

let tenure: Tenure
beforeAll(async () => {
  const policy = { limit: 1000, window: "1 minute" } as const
  const rateLimits = { perKey: policy, perAddress: policy, burst: policy }
  tenure = await createTenure({ stores: memory(), rateLimits })
  await tenure.memberships.createProject("p1")
})
afterAll(() => tenure.close())

const json = (value: unknown): Body => ({ _tag: "Parsed", value })

const uuid = "019aa5f1-3c54-7b02-9d53-1f0c4f9b2a77"

const pathOf = (operation: Operation): string =>
  routes[operation].pattern
    .replace(":project_id", "p1")
    .replace(":user_id", "1001")
    .replaceAll(/:\w+/g, uuid)

const answer = async (operation: Operation, parts: Partial<ApiRequest> = {}) => {
  const { body, ...response } = await tenure.handle({
    method: routes[operation].method,
    path: pathOf(operation),
    headers: {},
    body: emptyBody,
    remoteAddress: "203.0.113.7",
    authenticate: () => admin,
    ...parts,
  })
  return { ...response, body: JSON.parse(String(body)) }
}

const contract = makeRoutes("contract", false)
const isOfContract = (operation: Operation): boolean =>
  contract.match(pathOf(operation), "")?.value.get(routes[operation].method) === operation

const others = Struct.keys(routes).filter(
  (operation) => !isOfContract(operation) && requiredRole(operation) !== "none",
)

it.each(others)("an unknown query parameter is refused by %s", async (operation) => {
  const { body, status } = await answer(operation, { query: "unknown=1" })
  expect([status, body.error.error_code]).toEqual([422, "VALIDATION_ERROR"])
  expect(body.error.message).toMatch(/^unknown is unknown/)
})

it("an invalid parameter of the feed is named as the request has it", async () => {
  const { body } = await answer("events.list", { query: "types=a,,b" })
  expect(body.error.message).toMatch(/^types must be event types, .+; received "a,,b"$/)
})

it.each([
  ["whose key is not valid any more", undefined, "UNAUTHORIZED"],
  ["whose key has lost the project", { ...operator, projects: ["p2"] }, "PROJECT_NOT_FOUND"],
] as const)("a request that may wait for events, and %s, gets none", async (_, later, code) => {
  await tenure.events.publish({ projectId: "p1", type: "a", data: {} })
  const identities = [operator, later]
  const authenticate = () => identities.shift()
  const { body } = await answer("events.list", { query: "after=start&wait=20", authenticate })
  expect(body).toMatchObject({ error: { error_code: code } })
  expect(body).not.toHaveProperty("data")
})

it.each(["dry_run", "expected_end_date"])(
  "a grant takes no %s, which it does not have",
  async (name) => {
    const end_date = "2001-01-01T00:00:00.000Z"
    const body = json({ end_date, [name]: name === "dry_run" ? true : end_date })
    expect((await answer("memberships.grant", { body })).status).toBe(422)
  },
)

describe("the data of an event", () => {
  const nested = (levels: number) => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`)
  const publish = (data: unknown, headers = {}) =>
    answer("events.publish", { headers, body: json({ type: "a.b", data }) })

  it("is nested 99 levels deep at most, whatever its texts contain", async () => {
    const { body } = await publish([nested(98), '[[["\\"[' + "{".repeat(200)])
    const path = `/v2/projects/p1/events/${body.data.id}`
    expect(await answer("events.get", { path })).toMatchObject({ status: 200 })
    for (const levels of [100, 5000, 20_000]) {
      const refused = await publish(nested(levels), { "idempotency-key": "a" })
      const message = "data must not be nested deeper than 99 levels"
      expect([refused.status, refused.body.error.message]).toEqual([422, message])
    }
  })

  it("is refused with a whole number that was rounded before it came to the API", async () => {
    const refused = await publish({ order: JSON.parse("12345678901234567890") })
    const message = expect.stringMatching(/^data\.order must be a number that/)
    expect([refused.status, refused.body.error.message]).toEqual([422, message])
    for (const sound of [Number.MAX_SAFE_INTEGER, 1e21, 0.1, "12345678901234567890"]) {
      expect((await publish({ order: sound })).status).toBe(200)
    }
  })
})
