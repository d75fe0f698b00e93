/** A change's context: its principal, request and idempotency key. */

import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Random from "effect/Random"
import { encodeBase64Url, sha256 } from "./bytes.ts"
import { type InvalidInput, StoreUnavailable } from "./errors.ts"
import { type Traceparent, parseTraceparent, traceparentFormat } from "./headers.ts"
import { invalidArgument } from "./input.ts"
import { TaggedError } from "./tagged-error.ts"
import { currentUnixMillis, sleepAside } from "./time.ts"
import { ApiKeyId, copyOwn, identifierFormat, isIdentifier } from "./values.ts"

/** A change's origin, as the audit trail keeps it. */
export interface Origin {
  /** Request id; `undefined` if the host named none. */
  readonly requestId: string | undefined
  /** API key id, or the id of a person or program named by the host; `undefined` without one. */
  readonly keyId: ApiKeyId | undefined
  /** The request's trace: carried by the change's event, not kept in the audit trail. */
  readonly traceparent?: Traceparent | undefined
}

/** Audited facts about every change, besides the change itself. */
export interface ChangeContext {
  /** The principal and the request behind the change. */
  readonly origin: Origin
  /** When it happens, in milliseconds since the epoch. */
  readonly at: number
  /** The idempotency key, if the change has one. */
  readonly idempotency?: IdempotencyKey | undefined
}

/** A present or earlier setting, as the audit trail shows it. */
type AuditedValue = string | number | boolean | ReadonlyArray<string> | null

/** One setting replaced by a change. */
export interface FieldChange {
  /** The setting's name, for example `eventTypes`. */
  readonly field: string
  /** The earlier value; `null` if it was not set. */
  readonly from: AuditedValue
  /** The new value; `null` if it is not set any more. */
  readonly to: AuditedValue
}

/** A change's origin, as hosts pass it. Ids have 1 to 255 characters and no control characters. */
export interface OriginInput {
  /** Id of the request behind the change. The change's event carries it as `request_id`. */
  readonly requestId?: string | undefined
  /** Id of the API key, the person or the program behind the change. */
  readonly keyId?: string | undefined
  /**
   * The trace the change is part of, as in the W3C header field `traceparent`. The change's event and
   * the webhook requests carry it.
   */
  readonly traceparent?: string | undefined
}

/** The origin for changes without one from the host. */
export const hostOrigin: Origin = { requestId: undefined, keyId: undefined }

/** Converts the host's input, or fails with `InvalidInput`. */
const readOrigin = (input: OriginInput): Effect.Effect<Origin, InvalidInput> => {
  const { keyId, requestId, traceparent } = copyOwn(input)
  if (requestId !== undefined && !isIdentifier(requestId)) {
    return invalidArgument("origin.requestId", identifierFormat)
  }
  if (keyId !== undefined && !ApiKeyId.is(keyId)) {
    return invalidArgument("origin.keyId", ApiKeyId.expected)
  }
  if (traceparent === undefined) return Effect.succeed({ requestId, keyId })
  const trace = parseTraceparent(traceparent)
  return trace === undefined
    ? invalidArgument("origin.traceparent", traceparentFormat)
    : Effect.succeed({ requestId, keyId, traceparent: trace })
}

/** Reduces an origin to its audited fields. */
export const auditedOrigin = (origin: Origin): Origin =>
  origin.traceparent === undefined ? origin : { requestId: origin.requestId, keyId: origin.keyId }

/** Converts the host's input to a change context dated now, or fails with `InvalidInput`. */
export const readChangeContext = (
  input: OriginInput = hostOrigin,
): Effect.Effect<ChangeContext, InvalidInput> =>
  Effect.flatMapEager(readOrigin(input), (origin) =>
    Effect.map(currentUnixMillis, (at) => ({ origin, at })),
  )

/** A request with an idempotency key. */
export interface IdempotencyKey {
  /**
   * The API key's id, or the id of another principal named by the host; `""` for the host. Each owner
   * has its own keys.
   */
  readonly owner: string
  /** The idempotency key's digest. */
  readonly key: string
  /**
   * The digest of the request and its key: a reader of the store cannot guess a short secret in the
   * request. The same key with another fingerprint is an error.
   */
  readonly fingerprint: string
  /** A replay's result, if it differs from the store's own. */
  readonly answer?: string | undefined
  /** Called if the request was answered before, and therefore has changed nothing. */
  readonly onReplay?: (() => void) | undefined
}

/** A store's result for a change it has made before. */
export interface ReplayedResponse {
  readonly _tag: "Replayed"
  /** The result's data missing from the request, such as a membership count or an id. */
  readonly answer: string
}

/** Another request has the same idempotency key. */
export class IdempotencyMismatch extends TaggedError("IdempotencyMismatch") {
  override get message(): string {
    return "The idempotency key belongs to another request."
  }
}

/** The first request with the idempotency key has not ended for too long. */
export class IdempotencyInProgress extends TaggedError("IdempotencyInProgress") {
  override get message(): string {
    return "The first request with the idempotency key has not ended yet."
  }
}

/** Why a request with an idempotency key gets no answer. */
export type IdempotencyConflict = IdempotencyMismatch | IdempotencyInProgress

/** An idempotency key as a host passes it: 1 to 255 visible ASCII characters. */
export type IdempotencyKeyInput = string | IdempotencyKey

/** A valid key's form, for error messages. */
export const idempotencyKeyFormat = "1 to 255 visible characters of ASCII"

const pattern = /^[\x21-\x7e]{1,255}$/

/** Tells whether text is an idempotency key. */
export const isIdempotencyKey = (text: unknown): text is string =>
  typeof text === "string" && pattern.test(text)

const utf8 = new TextEncoder()

export const digestOf = (text: string): string => encodeBase64Url(sha256(utf8.encode(text)))

/**
 * Converts an in-process call's idempotency key. Fails with `InvalidInput` if it is invalid.
 *
 * @param keyId - the key's owner; `undefined` for the host
 * @param request - the operation's name and arguments, the same in a repetition
 */
export const readIdempotencyKey = (
  input: IdempotencyKeyInput,
  keyId: ApiKeyId | undefined,
  ...request: ReadonlyArray<unknown>
): Effect.Effect<IdempotencyKey, InvalidInput> => {
  if (typeof input === "object") return Effect.succeed(input)
  return isIdempotencyKey(input)
    ? Effect.succeed({
        owner: keyId ?? "",
        // An API client may choose the same key as the host.
        key: digestOf(`host ${input}`),
        fingerprint: digestOf(JSON.stringify([input, ...request])),
      })
    : invalidArgument("idempotencyKey", idempotencyKeyFormat)
}

/** Adds the call's idempotency key, if any, to its change context; see `fromInput`. */
export const attachIdempotencyKey = (
  context: ChangeContext,
  input: IdempotencyKeyInput | undefined,
  ...request: ReadonlyArray<unknown>
): Effect.Effect<ChangeContext, InvalidInput> =>
  input === undefined
    ? Effect.succeed(context)
    : Effect.map(readIdempotencyKey(input, context.origin.keyId, ...request), (idempotency) => ({
        ...context,
        idempotency,
      }))

/** Makes a store's result for a replayed request. */
export const replayedResponse = (answer = ""): ReplayedResponse => ({ _tag: "Replayed", answer })

/** Tells whether a store has replayed a result instead of making a change. */
export const isReplayedResponse = (result: unknown): result is ReplayedResponse =>
  Predicate.hasProperty(result, "_tag") && result._tag === "Replayed"

/** Makes a change, and returns with its result whether it was made before. */
export const withReplayFlag = <A, E, R>(
  idempotency: IdempotencyKey | undefined,
  change: (idempotency: IdempotencyKey | undefined) => Effect.Effect<A, E, R>,
): Effect.Effect<{ readonly result: A; readonly isReplay: boolean }, E, R> =>
  Effect.suspend(() => {
    let isReplay = false
    const onReplay = () => {
      isReplay = true
      idempotency?.onReplay?.()
    }
    return Effect.map(change(idempotency && { ...idempotency, onReplay }), (result) => ({
      result,
      isReplay,
    }))
  })

/** Tells a change's caller if it was made before. */
export const notifyReplay = (
  { idempotency }: Pick<ChangeContext, "idempotency">,
  result: unknown,
): Effect.Effect<void> =>
  isReplayedResponse(result) ? Effect.sync(() => idempotency?.onReplay?.()) : Effect.void

// A change outrun this often by others gives way.
const maxAttempts = 20
const longestPauseMillis = 1000

/**
 * Reads and makes a change, and repeats both if others have changed the read data since. Pauses in
 * between: if many repeat at once, all but one would lose again.
 *
 * @param subject - the changed thing, to begin a sentence
 * @param attempt - reads and changes. Returns `undefined` if others were faster
 */
export const repeatUntilMade = <A, E, R>(
  subject: string,
  attempt: Effect.Effect<A | undefined, E, R>,
  attempts = 1,
): Effect.Effect<A, E | StoreUnavailable, R> =>
  Effect.flatMap(attempt, (made) => {
    if (made !== undefined) return Effect.succeed(made)
    if (attempts === maxAttempts) {
      const problem = `${subject} was changed too often meanwhile.`
      return Effect.fail(new StoreUnavailable({ cause: "conflicts", problem }))
    }
    const pause = Effect.flatMap(Random.next, (random) =>
      sleepAside(random * Math.min(2 ** attempts, longestPauseMillis)),
    )
    return Effect.andThen(pause, repeatUntilMade(subject, attempt, attempts + 1))
  })
