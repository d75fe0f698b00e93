/** The header field `Idempotency-Key`: a request that is repeated with its key changes something once. */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { encodeUrl } from "../base/Base64.ts"
import { single } from "../base/HeaderFields.ts"
import * as Once from "../base/Once.ts"
import { sha256 } from "../base/Sha256.ts"
import type { ApiError } from "./ApiError.ts"
import type { ApiRequest, ArrivedBody } from "./ApiRequest.ts"
import type { Reply } from "./Envelope.ts"
import { type Call, projectOf } from "./Operation.ts"
import * as Outcome from "./Outcome.ts"

const name = "idempotency-key"

const malformed: ApiError = {
  _tag: "MalformedRequest",
  message: `The Idempotency-Key header must be sent once, and be ${Once.expected}.`,
}

/** Reads the idempotency key of a request that has such a field. */
const keyOf = ({ headers }: ApiRequest): Outcome.Outcome<string> => {
  const field = single(headers, name)
  return field._tag === "Value" && Once.isKey(field.value)
    ? Result.succeed(field.value)
    : Outcome.fail(malformed)
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

/** The bytes of a body as far as they are known. A value that a host has parsed is written anew. */
const bytesOf = (body: ArrivedBody): Uint8Array =>
  body._tag === "Bytes" ? body.bytes : utf8.encode(body._tag === "Parsed" ? textOf(body.value) : "")

/** Returns the digest of the request: of its method, its path with the query, and its body. */
const fingerprintOf = ({ method, path, query = "" }: ApiRequest, body: ArrivedBody): string => {
  const bytes = bytesOf(body)
  const target = utf8.encode(`${method} ${path}?${query}\n`)
  const all = new Uint8Array(target.length + bytes.length)
  all.set(target)
  all.set(bytes, target.length)
  return encodeUrl(sha256(all))
}

/** Waits for the body of a request. */
const arrivedBody = ({ body }: ApiRequest): Effect.Effect<ArrivedBody> =>
  body._tag === "Deferred" ? Effect.promise(body.read) : Effect.succeed(body)

/** Performs an operation whose call has an idempotency key. */
const performOnce = Effect.fnUntraced(function* (
  call: Call,
  operation: (call: Call) => Effect.Effect<Reply, ApiError>,
) {
  const { params, principal, request } = call
  // Nobody sends a body for a project that is not theirs.
  if (params.project_id !== "") yield* projectOf(call)
  const key = yield* Effect.fromResult(keyOf(request))
  const body = yield* arrivedBody(request)
  const known: Once.Once = {
    owner: principal.keyId,
    key: Once.digest(key),
    fingerprint: fingerprintOf(request, body),
  }
  const { isReplay, result } = yield* Once.noting(known, (once) =>
    operation({ ...call, request: { ...request, body }, once }),
  )
  return isReplay ? { ...result, isReplay } : result
})

/** Performs an operation, once if the request has an idempotency key and is not a mere reading. */
export const perform = (
  call: Call,
  operation: (call: Call) => Effect.Effect<Reply, ApiError>,
): Effect.Effect<Reply, ApiError> =>
  Object.hasOwn(call.request.headers, name) && call.request.method !== "GET"
    ? performOnce(call, operation)
    : operation(call)
