/** Metrics: how often what happens, how long it takes, and how Tenure is doing. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { InvalidInput } from "../base/InvalidInput.ts"
import * as Setting from "../base/Setting.ts"
import type { RateLimiter } from "../limits/RateLimiter.ts"
import type { Outbox } from "../webhooks/Outbox.ts"
import type { Readiness } from "./Readiness.ts"

/** The options of metrics. */
export const options = Setting.struct({
  /**
   * Whether to count and time what Tenure does, for `metrics` and for exporters of Effect's metrics.
   * Default: `false`.
   */
  metrics: Setting.withDefault(Setting.flag, false),
})

/** The options as a host passes them. */
export interface Options extends Setting.Input<typeof options> {}

/** The options as the library uses them. */
export interface Settings extends Setting.Output<typeof options> {}

/** Shows the metrics. */
export class Metrics extends Context.Service<
  Metrics,
  {
    /**
     * All metrics of the process, in the text format of Prometheus. Fails with `InvalidInput` if the
     * option `metrics` is off.
     */
    readonly text: Effect.Effect<string, InvalidInput>
  }
>()("@tenure/core/Metrics") {
  static readonly layer = ({
    metrics,
  }: Settings): Layer.Layer<Metrics, never, Readiness | Outbox | RateLimiter> =>
    metrics ? Layer.unwrap(Effect.map(loaded, ({ shown }) => shown)) : off
}

// Programs without metrics do not load them.
const loaded = Effect.promise(() => import("./Metering.ts"))

const off = Layer.succeed(Metrics, {
  text: Effect.fail(new InvalidInput({ field: "metrics", problem: "is off: it must be true" })),
})

/** Counts in the registry of the context, if metrics are on. */
export const counting = ({ metrics }: Settings): Layer.Layer<never> =>
  metrics ? Layer.unwrap(Effect.map(loaded, (metering) => metering.counting)) : Layer.empty
