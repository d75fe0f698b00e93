/** The header field `Idempotency-Key`: a request repeated with its key changes something once. */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { ApiError } from "../api/errors.ts"
import { encodeBase64Url, sha256 } from "../base/bytes.ts"
import {
  type IdempotencyKey,
  digestOf,
  idempotencyKeyFormat,
  isIdempotencyKey,
  withReplayFlag,
} from "../base/change-context.ts"
import { singleHeader } from "../base/headers.ts"
import { type Call, projectOf } from "./operation.ts"
import type { ApiRequest, ArrivedBody } from "./request.ts"
import { type OperationResult, type Outcome, failOutcome } from "./response.ts"

const idempotencyName = "idempotency-key"

const malformed: ApiError = {
  _tag: "MalformedRequest",
  message: `The Idempotency-Key header must be sent once, and be ${idempotencyKeyFormat}, with or without quotation marks.`,
}

// A structured field's String (RFC 9651, 3.3.3): the key's form in
// draft-ietf-httpapi-idempotency-key-header-07.
const quoted = /^"((?:[^"\\]|\\["\\])*)"$/

/** Returns the key in a field: in quotation marks, or as it is. `undefined` if the marks do not match. */
const unquote = (value: string): string | undefined =>
  value.startsWith('"') ? quoted.exec(value)?.[1]?.replaceAll(/\\(.)/g, "$1") : value

/** Reads a request's idempotency key from its header field. */
const keyOf = ({ headers }: ApiRequest): Outcome<string> => {
  const field = singleHeader(headers, idempotencyName)
  const key = field._tag === "Value" ? unquote(field.value) : undefined
  return isIdempotencyKey(key) ? Result.succeed(key) : failOutcome(malformed)
}

const utf8 = new TextEncoder()

const textOf = (value: unknown): string => {
  try {
    return JSON.stringify(value)
  } catch {
    // It is nested so deeply that every operation refuses it.
    return ""
  }
}

/** A body's bytes, as far as known. A value parsed by the host is serialized again. */
const bytesOf = (body: ArrivedBody): Uint8Array =>
  body._tag === "Bytes" ? body.bytes : utf8.encode(body._tag === "Parsed" ? textOf(body.value) : "")

/** Returns a digest over a request's idempotency key, method, path with the query, and body. */
const fingerprintOf = (
  key: string,
  { method, path, query = "" }: ApiRequest,
  body: ArrivedBody,
): string => {
  const bytes = bytesOf(body)
  const target = utf8.encode(`${key}\n${method} ${path}?${query}\n`)
  const all = new Uint8Array(target.length + bytes.length)
  all.set(target)
  all.set(bytes, target.length)
  return encodeBase64Url(sha256(all))
}

/** Waits for a request's body. */
const arrivedBody = ({ body }: ApiRequest): Effect.Effect<ArrivedBody> =>
  body._tag === "Deferred" ? Effect.promise(body.read) : Effect.succeed(body)

/** Performs an operation called with an idempotency key. */
const performOnce = Effect.fnUntraced(function* (
  call: Call,
  operation: (call: Call) => Effect.Effect<OperationResult, ApiError>,
) {
  const { params, principal, request } = call
  // The body is read only for a project the principal may use.
  if (params.project_id !== "") yield* projectOf(call)
  const key = yield* Effect.fromResult(keyOf(request))
  const body = yield* arrivedBody(request)
  const known: IdempotencyKey = {
    owner: principal.keyId,
    key: digestOf(key),
    fingerprint: fingerprintOf(key, request, body),
  }
  const { isReplay, result } = yield* withReplayFlag(known, (idempotency) =>
    operation({ ...call, request: { ...request, body }, idempotency }),
  )
  return isReplay ? { ...result, isReplay } : result
})

/** Performs an operation, once if the request has an idempotency key and is not a mere reading. */
export const performWithIdempotency = (
  call: Call,
  operation: (call: Call) => Effect.Effect<OperationResult, ApiError>,
): Effect.Effect<OperationResult, ApiError> =>
  Object.hasOwn(call.request.headers, idempotencyName) && call.request.method !== "GET"
    ? performOnce(call, operation)
    : operation(call)
