/** The context of a change: who asked for it, in which request, and with which idempotency key. */

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

/** The origin of a change, as the audit trail keeps it. */
export interface Origin {
  /** Id of the request; `undefined` if the host named none. */
  readonly requestId: string | undefined
  /** Id of the API key, or of the person or program that the host named; `undefined` if it named none. */
  readonly keyId: ApiKeyId | undefined
  /** The request's trace, which the change's event carries and the audit trail does not keep. */
  readonly traceparent?: Traceparent | undefined
}

/** What the audit trail keeps of every change, besides what was changed. */
export interface ChangeContext {
  /** Who asked for the change, and in which request. */
  readonly origin: Origin
  /** When it happens, in milliseconds since the epoch. */
  readonly at: number
  /** The idempotency key, if the change has one. */
  readonly idempotency?: IdempotencyKey | undefined
}

/** What a setting is, or was, as the audit trail shows it. */
type AuditedValue = string | number | boolean | ReadonlyArray<string> | null

/** One setting that a change has replaced. */
export interface FieldChange {
  /** The name of the setting, for example `eventTypes`. */
  readonly field: string
  /** What it was; `null` if it was not set. */
  readonly from: AuditedValue
  /** What it is now; `null` if it is not set any more. */
  readonly to: AuditedValue
}

/** The origin of a change, as hosts pass it. Ids have 1 to 255 characters and no control characters. */
export interface OriginInput {
  /** Id of the request that asked for the change. The change's event carries it as `request_id`. */
  readonly requestId?: string | undefined
  /** Id of the API key, the person or the program that asked for the change. */
  readonly keyId?: string | undefined
  /**
   * The trace that the change is part of, as W3C's header field `traceparent` has it. The change's event
   * carries it, and the requests of webhooks do.
   */
  readonly traceparent?: string | undefined
}

/** The origin of a change for which the host names none. */
export const hostOrigin: Origin = { requestId: undefined, keyId: undefined }

/** Converts what a host passes, or fails with `InvalidInput`. */
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

/** Returns what the audit trail keeps of an origin. */
export const auditedOrigin = (origin: Origin): Origin =>
  origin.traceparent === undefined ? origin : { requestId: origin.requestId, keyId: origin.keyId }

/** Converts what a host passes to the occasion of a change that happens now, or fails with `InvalidInput`. */
export const readChangeContext = (
  input: OriginInput = hostOrigin,
): Effect.Effect<ChangeContext, InvalidInput> =>
  Effect.flatMapEager(readOrigin(input), (origin) =>
    Effect.map(currentUnixMillis, (at) => ({ origin, at })),
  )

/** A request with an idempotency key. */
export interface IdempotencyKey {
  /** The id of the API key, or of whom else the host named; `""` for the host. Others have keys of their own. */
  readonly owner: string
  /** The digest of the idempotency key. */
  readonly key: string
  /**
   * The digest of the request, with its key: whoever reads the store cannot guess a short secret in the request.
   * The same key with another fingerprint is an error.
   */
  readonly fingerprint: string
  /** What a replay returns in place of what the store returns by itself. */
  readonly answer?: string | undefined
  /** Called if the request was answered before, and therefore has changed nothing. */
  readonly onReplay?: (() => void) | undefined
}

/** What a store returns in place of making a change that it has made before. */
export interface ReplayedResponse {
  readonly _tag: "Replayed"
  /** What the answer needs that is not in the request, such as the number of memberships or an id. */
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

/** An idempotency key as a host passes it: 1 to 255 visible characters of ASCII. */
export type IdempotencyKeyInput = string | IdempotencyKey

/** What a key looks like, for error messages. */
export const idempotencyKeyFormat = "1 to 255 visible characters of ASCII"

const pattern = /^[\x21-\x7e]{1,255}$/

/** Tells whether text is an idempotency key. */
export const isIdempotencyKey = (text: unknown): text is string =>
  typeof text === "string" && pattern.test(text)

const utf8 = new TextEncoder()

/** Returns the digest of text. */
export const digestOf = (text: string): string => encodeBase64Url(sha256(utf8.encode(text)))

/**
 * Converts the idempotency key of a call in process. Fails with `InvalidInput` if it is invalid.
 *
 * @param keyId - whose key it is; `undefined` for the host
 * @param request - the name of the operation and its arguments, which are the same in a repetition
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
        // A client of the API may choose the same key as the host.
        key: digestOf(`host ${input}`),
        fingerprint: digestOf(JSON.stringify([input, ...request])),
      })
    : invalidArgument("idempotencyKey", idempotencyKeyFormat)
}

/** Adds the idempotency key of a call, if it has one, to the occasion of its change; see `fromInput`. */
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

/** Makes what a store returns for a request that it has answered before. */
export const replayedResponse = (answer = ""): ReplayedResponse => ({ _tag: "Replayed", answer })

/** Tells whether a store has returned that in place of making a change. */
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

/** Tells the caller of a change if it was made before. */
export const notifyReplay = (
  { idempotency }: Pick<ChangeContext, "idempotency">,
  result: unknown,
): Effect.Effect<void> =>
  isReplayedResponse(result) ? Effect.sync(() => idempotency?.onReplay?.()) : Effect.void

// Who loses so often against other changes gives way.
const maxAttempts = 20
const longestPauseMillis = 1000

/**
 * Makes a change that rests on what it has read, and again if others have changed that since. Pauses in between: of many
 * that repeat at once, all but one would lose again.
 *
 * @param subject - what is changed, as the beginning of a sentence
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
