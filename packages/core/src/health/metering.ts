/** Metrics: occurrences are counted as they happen, and each cell's gauges are read when somebody asks. */

import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import { format } from "effect/observability/PrometheusMetrics"
import { sleepPoll } from "../base/time.ts"
import { type Cell, Cells } from "../cells/cell.ts"
import { RateLimiter } from "../limits/rate-limiter.ts"
import { countingLayer } from "../telemetry/counting.ts"
import { gauge, prometheusName } from "../telemetry/instruments.ts"
import { EncryptionKeys } from "../webhooks/encryption-keys.ts"
import { type Backlog, Outbox, maxCountedBacklog } from "../webhooks/outbox.ts"
import { maxKeyUses } from "../webhooks/store.ts"
import { Metrics } from "./metrics.ts"
import { Readiness, askAll, orNull } from "./status.ts"

/** Writes all metrics in the registry. */
export const prometheusText: Effect.Effect<string> = format({ metricNameMapper: prometheusName })

/** How a database, or a cell of several, is doing. */
export interface DatabaseReport {
  /** Its name; `undefined` for the only one, and for the shared stores. */
  readonly name: string | undefined
  /** Whether its stores answer, by name. */
  readonly stores: Readonly<Record<string, boolean>>
  /** `undefined` if it does not answer, or has no deliveries. */
  readonly backlog: Backlog | undefined
}

const databasesReport = (
  name: string | undefined,
  stores: Effect.Effect<DatabaseReport["stores"]>,
  backlog: Effect.Effect<DatabaseReport["backlog"]>,
): Effect.Effect<DatabaseReport> =>
  Effect.map(Effect.all([stores, backlog], { concurrency: "unbounded" }), ([answers, left]) => ({
    name,
    stores: answers,
    backlog: left,
  }))

const reportOn = ({ memberships, name, outbox, webhooks }: Cell): Effect.Effect<DatabaseReport> =>
  databasesReport(
    name,
    askAll({ memberships: memberships.ping, webhooks: webhooks.ping, deliveries: outbox.ping }),
    orNull(outbox.backlog(maxCountedBacklog)),
  )

/** Creates an effect to ask every database, each for up to 5 seconds. */
const makeDatabaseReport = Effect.gen(function* () {
  const { stores } = yield* Readiness
  const outbox = yield* Outbox
  const cells = yield* Cells
  const only = databasesReport(undefined, stores, orNull(outbox.backlog(maxCountedBacklog)))
  // The stores outside projects.
  const shared = Effect.map(stores, ({ apiKeys, rateLimits }) => ({ apiKeys, rateLimits }))
  const reports =
    cells.length === 0
      ? [only]
      : [databasesReport(undefined, shared, Effect.undefined), ...cells.map(reportOn)]
  return Effect.all(reports, { concurrency: "unbounded" })
})

/** Shows how a database is doing as gauges. */
const show = ({ backlog, name, stores }: DatabaseReport, context: Context.Context<never>): void => {
  const ownGauge = gauge
  const dueFor = backlog && (backlog.dueForMillis ?? 0) / 1000
  const lateFor = backlog && (backlog.lateForMillis ?? 0) / 1000
  ownGauge("tenure.webhook.deliveries.waiting", context, name)(backlog?.waiting)
  ownGauge("tenure.webhook.deliveries.oldest_due", context, name)(dueFor)
  ownGauge("tenure.webhook.deliveries.late", context, name)(lateFor)
  ownGauge("tenure.webhook.disabled", context, name)(backlog?.disabledWebhooks)
  for (const [store, isUp] of Object.entries(stores)) {
    ownGauge("tenure.store.up", context, store, name)(Number(isUp))
  }
}

/** Creates a function to show the ids of missing encryption keys. Those that were missing before stay, with 0. */
const makeMissingKeys = (context: Context.Context<never>) => {
  const shown = new Set<string>()
  return (missing: ReadonlyArray<string> | undefined): void => {
    // While the store does not answer, nothing is known to have changed.
    if (missing === undefined) return
    for (const id of missing) if (shown.size < maxKeyUses) shown.add(id)
    for (const id of shown) {
      gauge("tenure.encryption.key.missing", context, id)(Number(missing.includes(id)))
    }
  }
}

// How often to ask the stores for programs with their own exporter.
const readPauseMillis = 10_000

const make = Effect.gen(function* () {
  const { mode, suspended } = yield* RateLimiter
  const reports = yield* makeDatabaseReport
  const registry = yield* Metric.MetricRegistry
  const context = yield* Effect.context()
  const suspendedKeys = gauge("tenure.rate_limit.suspended_keys", context)
  const withoutStore = gauge("tenure.rate_limit.without_store", context)
  const { missing } = yield* EncryptionKeys
  const showMissing = makeMissingKeys(context)
  const questions = { databases: reports, keys: suspended, lacking: orNull(missing) }
  const read = Effect.flatMap(
    Effect.all(questions, { concurrency: "unbounded" }),
    ({ databases, keys, lacking }) => {
      for (const report of databases) show(report, context)
      suspendedKeys(keys.length)
      showMissing(lacking)
      const answers = databases.every(({ stores: { rateLimits } }) => rateLimits !== false)
      return Effect.map(mode(answers), (current) => withoutStore(Number(current !== "store")))
    },
  )
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(read, sleepPoll(readPauseMillis))))
  return Metrics.of({
    text: Effect.andThen(read, prometheusText).pipe(
      Effect.provideService(Metric.MetricRegistry, registry),
    ),
  })
})

/** Counts in the context's registry. */
export const makeMetering = countingLayer

/** Shows the metrics in the context's registry. */
export const readMetrics: Layer.Layer<
  Metrics,
  never,
  Readiness | Outbox | RateLimiter | EncryptionKeys
> = Layer.effect(Metrics, make)
