/** Metrics: counts, durations, and the state of the stores. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { InvalidInput } from "../base/errors.ts"
import * as Setting from "../base/setting.ts"
import type { RateLimiter } from "../limits/rate-limiter.ts"
import type { EncryptionKeys } from "../webhooks/encryption-keys.ts"
import type { Outbox } from "../webhooks/outbox.ts"
import type { Readiness } from "./status.ts"

/** Options for metrics. */
export const metricsOptions = Setting.object({
  /**
   * Whether to count and time Tenure's work, for `metrics` and for exporters of Effect's metrics.
   * Default: `false`.
   */
  metrics: Setting.withDefault(Setting.boolean, false),
})

/** The options as a host passes them. */
export interface MetricsOptions extends Setting.InputOf<typeof metricsOptions> {}

/** The options as the library uses them. */
export interface MetricsSettings extends Setting.OutputOf<typeof metricsOptions> {}

/** Shows the metrics. */
export class Metrics extends Context.Service<
  Metrics,
  {
    /**
     * All metrics in the process, in Prometheus's text format. Fails with `InvalidInput` if the option
     * `metrics` is off.
     */
    readonly text: Effect.Effect<string, InvalidInput>
  }
>()("@tenure/core/Metrics") {
  static readonly layer = ({
    metrics,
  }: MetricsSettings): Layer.Layer<
    Metrics,
    never,
    Readiness | Outbox | RateLimiter | EncryptionKeys
  > => (metrics ? Layer.unwrap(Effect.map(loaded, ({ readMetrics: shown }) => shown)) : off)
}

// Programs without metrics do not load them.
const loaded = Effect.promise(() => import("./metering.ts"))

const off = Layer.succeed(Metrics, {
  text: Effect.fail(new InvalidInput({ field: "metrics", problem: "is off: it must be true" })),
})

/** Counts in the context's registry, if metrics are on. */
export const metricsCounterLayer = ({ metrics }: MetricsSettings): Layer.Layer<never> =>
  metrics ? Layer.unwrap(Effect.map(loaded, (metering) => metering.makeMetering)) : Layer.empty
