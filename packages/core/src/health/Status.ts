/** How Tenure is doing, for operators. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ApiKeyId } from "../base/ApiKeyId.ts"
import { version } from "../base/Version.ts"
import { RateLimiter } from "../limits/RateLimiter.ts"
import { type Backlog, mostCounted, Outbox } from "../webhooks/Outbox.ts"
import { Readiness, type StoreName } from "./Readiness.ts"

/** How Tenure is doing. */
export interface Report {
  /** The version of Tenure. */
  readonly version: string
  /** Whether each store answers. */
  readonly stores: Readonly<Record<StoreName, boolean>>
  /**
   * How much is left to deliver and what was given up, counted up to 10,000: that stands for as many or
   * more. The oldest delivery is that of the first 10,000 webhooks with due deliveries, and failed ones
   * are those of the first 10,000 webhooks that have any. `undefined` if the store does not answer.
   */
  readonly backlog: Backlog | undefined
  /** The ids of the API keys that this process has suspended, at most 10,000. */
  readonly suspendedKeys: ReadonlyArray<ApiKeyId>
}

/** Tells how Tenure is doing. */
export class Status extends Context.Service<
  Status,
  {
    /** How Tenure is doing. Waits up to 5 seconds for the stores. */
    readonly report: Effect.Effect<Report>
  }
>()("@tenure/core/Status") {
  static readonly layer = (): Layer.Layer<Status, never, Outbox | RateLimiter | Readiness> =>
    Layer.effect(Status, make)
}

const unknown = Effect.succeed(undefined)

/** Asks for a backlog, which is unknown if the answer does not come within 5 seconds. */
export const ifKnown = <E>(
  backlog: Effect.Effect<Backlog, E>,
): Effect.Effect<Backlog | undefined> =>
  backlog.pipe(
    Effect.catchCause(() => unknown),
    Effect.timeoutOrElse({ duration: "5 seconds", orElse: () => unknown }),
  )

const make = Effect.gen(function* () {
  const readiness = yield* Readiness
  const outbox = yield* Outbox
  const { suspended } = yield* RateLimiter
  const backlog = ifKnown(outbox.backlog(mostCounted))
  return {
    report: Effect.map(
      Effect.all([readiness.stores, backlog, suspended], { concurrency: "unbounded" }),
      ([stores, left, suspendedKeys]) => ({ version, stores, backlog: left, suspendedKeys }),
    ),
  }
})
