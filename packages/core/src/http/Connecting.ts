/** Decides on requests for connections, which count for their address alone. */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { ApiKeyId } from "../base/ApiKeyId.ts"
import { Faults } from "../base/Faults.ts"
import type { Listeners } from "../events/Listeners.ts"
import { RateLimiter } from "../limits/RateLimiter.ts"
import type { Answer, Decide } from "./Answer.ts"
import type { ApiRequest } from "./ApiRequest.ts"
import type { Authentication } from "./Authentication.ts"
import type { Verbatim } from "./Envelope.ts"
import { settle } from "./Outcome.ts"
import type { Session } from "./Realtime.ts"
import type { RefusalOf } from "./Refusal.ts"

/** How the log of requests shows a connection that was admitted. */
const switching: Verbatim = { _tag: "Verbatim", status: 101, headers: {}, body: "" }

/** What the decisions share with those on other requests. */
interface Shared {
  readonly addressOf: (request: ApiRequest) => string
  readonly authentication: Authentication
  readonly refusalOf: RefusalOf
}

/**
 * Makes the decision.
 *
 * @returns a function of what to call with the session of a connection that was admitted
 */
export const make = Effect.fnUntraced(function* ({ addressOf, authentication, refusalOf }: Shared) {
  const faults = yield* Faults
  const limiter = yield* RateLimiter
  const context = yield* Effect.context<Listeners | Scope.Scope>()
  // Loaded with the first connection: many programs have none.
  const loaded = yield* Effect.cached(
    Effect.gen(function* () {
      const { checkHandshake, make: makeRealtime } = yield* Effect.promise(
        () => import("./Realtime.ts"),
      )
      return { checkHandshake, ...(yield* makeRealtime(authentication.renewal)) }
    }).pipe(Effect.provideContext(context)),
  )

  return (opened: (session: Session) => void): Decide =>
    Effect.fnUntraced(function* (request, requestId): Effect.fn.Return<Answer> {
      const address = addressOf(request)
      const decision = yield* limiter.take({ address, keyId: undefined })
      const { report } = decision
      const refusal = refusalOf(decision, undefined)
      if (refusal !== undefined) {
        return { address, keyId: undefined, report, outcome: Result.fail(refusal) }
      }
      let keyId: ApiKeyId | undefined
      const admitted = Effect.flatMap(loaded, ({ admit, checkHandshake }) => {
        // A handshake that fails uses up no ticket.
        const identified = Effect.andThen(checkHandshake(request), authentication.identify(request))
        return Effect.flatMap(identified, (principal) => {
          ;({ keyId } = principal)
          return admit({ request, requestId, principal })
        })
      })
      const outcome = yield* settle(faults, requestId, admitted)
      return {
        address,
        keyId,
        report,
        outcome: Result.map(outcome, (session) => {
          opened(session)
          return switching
        }),
      }
    })
})
