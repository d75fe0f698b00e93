/** The header fields of responses, and the responses to errors. */

import * as Struct from "effect/Struct"
import * as ApiError from "../ApiError.ts"
import type { Document, Header, Reference, Response, Schema } from "../docs/OpenApi.ts"
import * as Envelope from "../Envelope.ts"
import * as Fields from "./Fields.ts"
import { samples } from "./Samples.ts"
import { isRecord, refTo } from "./Simplified.ts"

const integer: Schema = { type: "integer", minimum: 0 }

/** The header fields of responses. */
export const headers: Document["components"]["headers"] = {
  "X-RateLimit-Limit": {
    description: "The most requests in the current window.",
    required: true,
    schema: { ...integer, examples: [100] },
  },
  "X-RateLimit-Remaining": {
    description: "How many requests are left in the current window.",
    required: true,
    schema: { ...integer, examples: [99] },
  },
  "X-RateLimit-Reset": {
    description: "When the window ends, in seconds since 1970.",
    required: true,
    schema: { ...integer, examples: [4_070_908_800] },
  },
  Allow: {
    description: "The methods that the path allows.",
    required: true,
    schema: { type: "string", examples: ["GET, POST"] },
  },
  "Retry-After": {
    description: "How long to wait, in seconds.",
    required: true,
    schema: { type: "integer", minimum: 1, examples: [3] },
  },
  "WWW-Authenticate": {
    description: "The scheme of authentication.",
    required: true,
    schema: { type: "string", examples: ["Bearer"] },
  },
  "Idempotent-Replayed": {
    description: "Sent if an earlier request with the same idempotency key made the change.",
    required: false,
    schema: { type: "string", enum: ["true"] },
  },
} satisfies Record<string, Header>

/** The header fields of every response. */
export const everywhere = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]

/** Refers to header fields. */
export const headersNamed = (names: ReadonlyArray<string>): Readonly<Record<string, Reference>> =>
  Object.fromEntries(names.map((name) => [name, refTo("headers", name)]))

const subject = {
  requestId: Fields.exampleId,
  method: "PATCH",
  path: "/v2/projects/demo/memberships/1001/extend",
}

/** The response to the example of an error. */
const answerTo = (tag: ApiError.Tag): unknown =>
  JSON.parse(
    Envelope.refuse(
      subject,
      { bucket: "key", limit: 100, remaining: 99, reset: 0, refill: 1 },
      samples[tag].error,
    ).body,
  )

/** The response to errors with the same status. */
export const failureOf = (tags: ReadonlyArray<ApiError.Tag>, schema: Schema): Response => {
  const extra = tags.flatMap((tag) => Object.keys(ApiError.describe(samples[tag].error).headers))
  return {
    description: tags.map((tag) => samples[tag].when).join(" Or: "),
    headers: headersNamed([...everywhere, ...new Set(extra)]),
    content: {
      "application/json": {
        schema,
        examples: Object.fromEntries(
          tags.map((tag) => [tag, { summary: samples[tag].when, value: answerTo(tag) }]),
        ),
      },
    },
  }
}

const tags = Struct.keys(ApiError.table)

/** The errors whose schemas a response has. */
export const tagsIn = (schema: Schema): ReadonlyArray<ApiError.Tag> => {
  const alternatives: ReadonlyArray<unknown> = Array.isArray(schema["anyOf"])
    ? schema["anyOf"]
    : [schema]
  const refs = new Set(alternatives.map((one) => (isRecord(one) ? one["$ref"] : undefined)))
  return tags.filter((tag) => refs.has(refTo("schemas", tag).$ref))
}
