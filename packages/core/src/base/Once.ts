/** Idempotency keys: a request that is repeated with its key changes something once. */

import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { ApiKeyId } from "./ApiKeyId.ts"
import * as Argument from "./Argument.ts"
import { encodeUrl } from "./Base64.ts"
import type { InvalidInput } from "./InvalidInput.ts"
import type { Occasion } from "./Origin.ts"
import { sha256 } from "./Sha256.ts"

/** A request with an idempotency key. */
export interface Once {
  /** The id of the API key, or of whom else the host named; `""` for the host. Others have keys of their own. */
  readonly owner: string
  /** The digest of the idempotency key. */
  readonly key: string
  /** The digest of the request. The same key with another one is an error. */
  readonly fingerprint: string
  /** What a replay returns in place of what the store returns by itself. */
  readonly answer?: string | undefined
  /** Called if the request was answered before, and therefore has changed nothing. */
  readonly onReplay?: (() => void) | undefined
}

/** What a store returns in place of making a change that it has made before. */
export interface Replayed {
  readonly _tag: "Replayed"
  /** What the answer needs that is not in the request, such as the number of memberships or an id. */
  readonly answer: string
}

/** Another request has the same idempotency key. */
export class IdempotencyMismatch extends Data.TaggedError("IdempotencyMismatch") {
  override get message(): string {
    return "The idempotency key belongs to another request."
  }
}

/** The first request with the idempotency key has not ended for too long. */
export class IdempotencyInProgress extends Data.TaggedError("IdempotencyInProgress") {
  override get message(): string {
    return "The first request with the idempotency key has not ended yet."
  }
}

/** Why a request with an idempotency key gets no answer. */
export type Conflict = IdempotencyMismatch | IdempotencyInProgress

/** An idempotency key as a host passes it: 1 to 255 visible characters of ASCII. */
export type Input = string | Once

/** What a key looks like, for error messages. */
export const expected = "1 to 255 visible characters of ASCII"

const pattern = /^[\x21-\x7e]{1,255}$/

/** Tells whether text is an idempotency key. */
export const isKey = (text: unknown): text is string =>
  typeof text === "string" && pattern.test(text)

const utf8 = new TextEncoder()

/** Returns the digest of text. */
export const digest = (text: string): string => encodeUrl(sha256(utf8.encode(text)))

/**
 * Converts the idempotency key of a call in process. Fails with `InvalidInput` if it is invalid.
 *
 * @param keyId - whose key it is; `undefined` for the host
 * @param request - the name of the operation and its arguments, which are the same in a repetition
 */
export const fromInput = (
  input: Input,
  keyId: ApiKeyId | undefined,
  ...request: ReadonlyArray<unknown>
): Effect.Effect<Once, InvalidInput> => {
  if (typeof input === "object") return Effect.succeed(input)
  return isKey(input)
    ? Effect.succeed({
        owner: keyId ?? "",
        // A client of the API may choose the same key as the host.
        key: digest(`host ${input}`),
        fingerprint: digest(JSON.stringify(request)),
      })
    : Argument.invalid("idempotencyKey", expected)
}

/** Adds the idempotency key of a call, if it has one, to the occasion of its change; see `fromInput`. */
export const on = (
  occasion: Occasion,
  input: Input | undefined,
  ...request: ReadonlyArray<unknown>
): Effect.Effect<Occasion, InvalidInput> =>
  input === undefined
    ? Effect.succeed(occasion)
    : Effect.map(fromInput(input, occasion.origin.keyId, ...request), (once) => ({
        ...occasion,
        once,
      }))

/** Makes what a store returns for a request that it has answered before. */
export const replayed = (answer = ""): Replayed => ({ _tag: "Replayed", answer })

/** Tells whether a store has returned that in place of making a change. */
export const isReplayed = (result: unknown): result is Replayed =>
  Predicate.hasProperty(result, "_tag") && result._tag === "Replayed"

/** Makes a change, and returns with its result whether it was made before. */
export const noting = <A, E, R>(
  once: Once | undefined,
  change: (once: Once | undefined) => Effect.Effect<A, E, R>,
): Effect.Effect<{ readonly result: A; readonly isReplay: boolean }, E, R> =>
  Effect.suspend(() => {
    let isReplay = false
    const onReplay = () => {
      isReplay = true
      once?.onReplay?.()
    }
    return Effect.map(change(once && { ...once, onReplay }), (result) => ({ result, isReplay }))
  })

/** Tells the caller of a change if it was made before. */
export const tell = ({ once }: Pick<Occasion, "once">, result: unknown): Effect.Effect<void> =>
  isReplayed(result) ? Effect.sync(() => once?.onReplay?.()) : Effect.void
