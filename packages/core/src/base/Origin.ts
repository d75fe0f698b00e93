/** Where a change comes from: who asked for it, and in which request. */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { ApiKeyId } from "./ApiKeyId.ts"
import * as Argument from "./Argument.ts"
import * as Identifier from "./Identifier.ts"
import type { InvalidInput } from "./InvalidInput.ts"
import type { Once } from "./Once.ts"
import { owned } from "./Own.ts"
import * as Traceparent from "./Traceparent.ts"

/** The origin of a change, as the audit trail keeps it. */
export interface Origin {
  /** Id of the request; `undefined` if the host named none. */
  readonly requestId: string | undefined
  /** Id of the API key, or of the person or program that the host named; `undefined` if it named none. */
  readonly keyId: ApiKeyId | undefined
  /** The trace of the request. The event of the change carries it; the audit trail does not keep it. */
  readonly traceparent?: Traceparent.Traceparent | undefined
}

/** What the audit trail keeps of every change, besides what was changed. */
export interface Occasion {
  /** Who asked for the change, and in which request. */
  readonly origin: Origin
  /** When it happens, in milliseconds since the epoch. */
  readonly at: number
  /** The idempotency key, if the change has one. */
  readonly once?: Once | undefined
}

/** The origin of a change, as hosts pass it. Ids have 1 to 255 characters and no control characters. */
export interface Input {
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
export const host: Origin = { requestId: undefined, keyId: undefined }

/** Converts what a host passes, or fails with `InvalidInput`. */
export const fromInput = (input: Input): Effect.Effect<Origin, InvalidInput> => {
  const { keyId, requestId, traceparent } = owned(input)
  if (requestId !== undefined && !Identifier.isIdentifier(requestId)) {
    return Argument.invalid("origin.requestId", Identifier.expected)
  }
  if (keyId !== undefined && !ApiKeyId.is(keyId)) {
    return Argument.invalid("origin.keyId", ApiKeyId.expected)
  }
  if (traceparent === undefined) return Effect.succeed({ requestId, keyId })
  const trace = Traceparent.parse(traceparent)
  return trace === undefined
    ? Argument.invalid("origin.traceparent", Traceparent.expected)
    : Effect.succeed({ requestId, keyId, traceparent: trace })
}

/** Returns what the audit trail keeps of an origin. */
export const kept = (origin: Origin): Origin =>
  origin.traceparent === undefined ? origin : { requestId: origin.requestId, keyId: origin.keyId }

/** Converts what a host passes to the occasion of a change that happens now, or fails with `InvalidInput`. */
export const occasionOf = (input: Input = host): Effect.Effect<Occasion, InvalidInput> =>
  Effect.flatMap(fromInput(input), (origin) =>
    Effect.map(Clock.currentTimeMillis, (at) => ({ origin, at })),
  )
