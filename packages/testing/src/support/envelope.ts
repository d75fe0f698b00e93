/** Expectations about responses: all documented fields, and only these. */

import * as Predicate from "effect/Predicate"
import { expect } from "vitest"
import type { Incoming } from "./httpClient.ts"

/** The format of ids of requests and webhooks. */
export const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Matches times in responses. */
export const instant: unknown = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

/** Returns the fields of a JSON object, and fails the test if the value is not one. */
export const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  Predicate.isObject(value) ? value : expect.fail(`${JSON.stringify(value)} is not an object`)

/** Returns the id and the secret of the webhook in a response. */
export const webhookOf = ({ body }: Incoming): { readonly id: string; readonly secret: string } => {
  const { id, secret } = fieldsOf(fieldsOf(body)["data"])
  return { id: String(id), secret: String(secret) }
}

/** Expects the headers that every response has. */
export const expectHeaders = ({ headers }: Incoming): void => {
  expect(headers["content-type"]).toBe("application/json")
  expect(headers["x-ratelimit-limit"]).toMatch(/^[1-9][0-9]*$/)
  expect(headers["x-ratelimit-remaining"]).toMatch(/^[0-9]+$/)
  expect(headers["x-ratelimit-reset"]).toMatch(/^[0-9]{10}$/)
}

/** Expects a success. Besides a message, it has only the given fields. */
export const expectSuccess = (
  response: Incoming,
  method: string,
  path: string,
  result: { readonly total?: number; readonly next?: unknown; readonly data: unknown },
): Readonly<Record<string, unknown>> => {
  expectHeaders(response)
  expect(response.status).toBe(200)
  expect(response.body).toStrictEqual({
    ok: true,
    request_id: expect.stringMatching(uuid),
    method,
    path,
    code: 200,
    message: expect.stringMatching(/./),
    ...result,
  })
  return fieldsOf(response.body)
}

/** Expects a page of a list. Returns its items, and the cursor of the next page. */
export const expectPage = (
  response: Incoming,
  method: string,
  path: string,
  page: { readonly next: unknown; readonly data: unknown },
): { readonly next: unknown; readonly data: ReadonlyArray<unknown> } => {
  const { data, next } = fieldsOf(response.body)
  const items = Array.isArray(data) ? data : expect.fail(`${JSON.stringify(data)} is no array`)
  expectSuccess(response, method, path, { total: items.length, ...page })
  return { next, data: items }
}

/**
 * Expects a failure: one `error` with the given code, or several `errors` with the given codes.
 *
 * @param details - the fields of the error besides its code and its message
 */
export const expectFailure = (
  response: Incoming,
  method: string,
  path: string,
  status: number,
  codes: string | ReadonlyArray<string>,
  details: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> => {
  const described = (code: string) => ({
    error_code: code,
    message: expect.stringMatching(/./),
    ...details,
  })
  expectHeaders(response)
  expect(response.status).toBe(status)
  expect(response.body).toStrictEqual({
    ok: false,
    request_id: expect.stringMatching(uuid),
    method,
    path,
    code: status,
    ...(typeof codes === "string" ? { error: described(codes) } : { errors: codes.map(described) }),
  })
  return fieldsOf(response.body)
}

/** Expects a response from outside the API: of the host, or of a server without a host. */
export const expectElsewhere = ({ body, status }: Incoming): void => {
  expect([400, 404]).toContain(status)
  if (Predicate.hasProperty(body, "request_id")) {
    expect(body).toMatchObject({ code: 404, error: { error_code: "ROUTE_NOT_FOUND" } })
  }
}
