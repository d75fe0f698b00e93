/** Fastify with @fastify/rate-limit, and JSON schemas for the request and the response. */

import rateLimit from "@fastify/rate-limit"
import fastify from "fastify"
import { highLimit, isRealInstant } from "./workload.ts"

const body = {
  type: "object",
  required: ["extend"],
  properties: {
    extend: {
      anyOf: [
        { type: "integer", minimum: 1_000_000_000_000, maximum: 9_999_999_999_999 },
        { type: "string", format: "end-date" },
      ],
    },
  },
} as const

const text = { type: "string" } as const

const response = {
  200: {
    type: "object",
    properties: {
      ok: { type: "boolean" },
      request_id: text,
      method: text,
      path: text,
      code: { type: "integer" },
      total: { type: "integer" },
      message: text,
      data: { type: "object", properties: { new_end_date: text } },
    },
  },
} as const

/** The types of an extension. */
export interface ExtendRoute {
  readonly Params: { readonly project: string; readonly user: string }
  readonly Body: { readonly extend: number | string }
}

/** The schemas of an extension. */
export const extendSchema = { body, response }

/** Creates an application without routes. */
export const makeApp = async () => {
  const app = fastify({
    ajv: {
      customOptions: { coerceTypes: false, formats: { "end-date": { validate: isRealInstant } } },
    },
  })
  await app.register(rateLimit, {
    max: highLimit,
    timeWindow: "1 hour",
    cache: 100_000,
    keyGenerator: ({ headers, ip }) => headers.authorization ?? ip,
  })
  return app
}
