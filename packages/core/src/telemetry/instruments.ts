/**
 * All metrics by their OpenTelemetry names. Names without the prefix `tenure` follow its semantic
 * conventions.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"

/** A metric's definition. */
interface Instrument {
  readonly type: "counter" | "gauge" | "histogram"
  /**
   * In UCUM: `s` for seconds, `By` for bytes, `1` for a ratio; for counts, the name of the counted
   * things.
   */
  readonly unit: string
  readonly description: string
  /** The attributes' names. Each has few values, whatever clients send. */
  readonly attributes: ReadonlyArray<string>
}

/** The metrics. */
export const instruments = {
  "http.server.request.duration": {
    type: "histogram",
    unit: "s",
    description: "Time until a request is answered. A stream goes on afterwards.",
    attributes: [
      "http.request.method",
      "url.scheme",
      "http.route",
      "http.response.status_code",
      "error.type",
    ],
  },
  "tenure.rate_limit.refusals": {
    type: "counter",
    unit: "{request}",
    description: "Requests refused by a rate limit, by the bucket that was empty longest.",
    attributes: ["tenure.rate_limit.bucket"],
  },
  "tenure.rate_limit.suspended_keys": {
    type: "gauge",
    unit: "{key}",
    description: "API keys that this process has suspended.",
    attributes: [],
  },
  "tenure.rate_limit.without_store": {
    type: "gauge",
    unit: "{process}",
    description:
      "Whether this process limits requests without the store, which does not answer, or has failed in the last ten seconds: 1, or 0.",
    attributes: [],
  },
  "tenure.store.operation.duration": {
    type: "histogram",
    unit: "s",
    description: "Time that a call of a store takes.",
    attributes: ["tenure.store.name", "tenure.store.operation", "error.type"],
  },
  "tenure.store.up": {
    type: "gauge",
    unit: "{store}",
    description: "Whether a store answers: 1, or 0.",
    attributes: ["tenure.store.name", "tenure.database.name"],
  },
  "tenure.webhook.attempt.duration": {
    type: "histogram",
    unit: "s",
    description: "Time that an attempt to deliver an event takes.",
    attributes: ["tenure.webhook.outcome", "error.type"],
  },
  "tenure.webhook.deliveries.waiting": {
    type: "gauge",
    unit: "{delivery}",
    description: "Deliveries that wait, in all projects of a database, counted up to 10,000.",
    attributes: ["tenure.database.name"],
  },
  "tenure.webhook.deliveries.oldest_due": {
    type: "gauge",
    unit: "s",
    description: "How long the oldest delivery that is due has been due; 0 if none is.",
    attributes: ["tenure.database.name"],
  },
  "tenure.webhook.deliveries.late": {
    type: "gauge",
    unit: "s",
    description:
      "How long the oldest delivery has waited for a process to send it, rather than for its receiver; 0 if none does.",
    attributes: ["tenure.database.name"],
  },
  "tenure.webhook.disabled": {
    type: "gauge",
    unit: "{webhook}",
    description: "Webhooks disabled because of failures.",
    attributes: ["tenure.database.name"],
  },
  "tenure.encryption.key.missing": {
    type: "gauge",
    unit: "{key}",
    description:
      "Encryption keys that stored secrets need but this process lacks: 1 for each, 0 once it has it.",
    attributes: ["tenure.encryption.key.id"],
  },
  "db.client.connection.count": {
    type: "gauge",
    unit: "{connection}",
    description: "Connections to the database that are open.",
    attributes: ["db.client.connection.state", "db.client.connection.pool.name"],
  },
  "db.client.connection.max": {
    type: "gauge",
    unit: "{connection}",
    description: "How many connections to the database there may be for statements.",
    attributes: ["db.client.connection.pool.name"],
  },
  "db.client.connection.pending_requests": {
    type: "gauge",
    unit: "{request}",
    description: "Statements that wait for a connection.",
    attributes: ["db.client.connection.pool.name"],
  },
  "nodejs.eventloop.delay.mean": {
    type: "gauge",
    unit: "s",
    description: "How late the event loop was on average, in the last ten seconds.",
    attributes: [],
  },
  "nodejs.eventloop.delay.p99": {
    type: "gauge",
    unit: "s",
    description: "How late the event loop was at most in 99 of 100 cases, in the last ten seconds.",
    attributes: [],
  },
  "nodejs.eventloop.delay.max": {
    type: "gauge",
    unit: "s",
    description: "How late the event loop was at most, in the last ten seconds.",
    attributes: [],
  },
  "process.cpu.time": {
    type: "counter",
    unit: "s",
    description: "Processor time of the process.",
    attributes: ["cpu.mode"],
  },
  "process.memory.usage": {
    type: "gauge",
    unit: "By",
    description: "Memory of the process.",
    attributes: [],
  },
} as const satisfies Readonly<Record<string, Instrument>>

/** A metric's name. */
export type Name = keyof typeof instruments

type NameOf<Type extends Instrument["type"]> = {
  [N in Name]: (typeof instruments)[N]["type"] extends Type ? N : never
}[Name]

type ValuesOf<Attributes extends ReadonlyArray<string>> = {
  readonly [Index in keyof Attributes]: string | undefined
}

/** A metric's attribute values, in order. `undefined` ones are omitted. */
type Values<N extends Name> = ValuesOf<(typeof instruments)[N]["attributes"]>

const table: Readonly<Record<Name, Instrument>> = instruments

/** Describes a series: a metric with attribute values. */
const describe = (name: Name, values: ReadonlyArray<string | undefined>) => {
  const { attributes, description, unit } = table[name]
  // Effect's exporters read the unit from an attribute. Prometheus does not show it.
  const all: Record<string, string> = { unit }
  attributes.forEach((attribute, index) => {
    const value = values[index]
    if (value !== undefined) all[attribute] = value
  })
  return { description, attributes: all }
}

// From a call in memory to one close to its timeout, in seconds.
const boundaries = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
]

/** Updates a series. */
export type Update = (amount: number) => void

type Make = (name: Name, description: ReturnType<typeof describe>) => Metric.Metric<number, unknown>

/** Adds a series to a context's registry, and returns a function to update it without a look-up. */
const open = (series: ReturnType<Make>, context: Context.Context<never>): Update => {
  const registry = Context.get(context, Metric.MetricRegistry)
  // Only a registry exposes a series' key and hooks; this one is used for nothing else.
  const alone: Metric.MetricRegistry = new Map()
  series.valueUnsafe(Context.add(context, Metric.MetricRegistry, alone))
  const [entry] = alone
  if (entry === undefined) return (amount) => series.updateUnsafe(amount, context)
  const [key, made] = entry
  const shared = registry.get(key) ?? made
  registry.set(key, shared)
  return (amount) => shared.hooks.update(amount, context)
}

// The limit in OpenTelemetry's SDKs. The attributes have fewer values together, unless a transport
// invents error codes.
const maxSeries = 2000

/**
 * Creates a function to return an updater for the series with some attribute values. A series begins
 * with its first update.
 */
const seriesOf = <N extends Name>(
  name: N,
  make: Make,
  context: Context.Context<never>,
): ((...values: Values<N>) => Update) => {
  const known = new Map<string, Update>()
  const { attributes, description } = describe(name, [])
  const overflow = make(name, {
    description,
    attributes: { ...attributes, "otel.metric.overflow": "true" },
  })
  const updating = (series: ReturnType<Make>): Update => {
    let update: Update | undefined
    return (amount) => (update ??= open(series, context))(amount)
  }

  return (...values) => {
    const key = values.join("\n")
    const found = known.get(key)
    if (found !== undefined) return found
    if (known.size >= maxSeries) return updating(overflow)
    const update = updating(make(name, describe(name, values)))
    known.set(key, update)
    return update
  }
}

/** Creates a function to return an adder for a counter's series. */
export const counter = <N extends NameOf<"counter">>(
  name: N,
  context: Context.Context<never>,
): ((...values: Values<N>) => Update) =>
  seriesOf(name, (id, of) => Metric.counter(id, { ...of, incremental: true }), context)

/** Creates a function to return a recorder for a histogram's series. */
export const histogram = <N extends NameOf<"histogram">>(
  name: N,
  context: Context.Context<never>,
): ((...values: Values<N>) => Update) =>
  seriesOf(name, (id, of) => Metric.histogram(id, { ...of, boundaries }), context)

/** Creates a function to set a gauge, or to remove it if the value is unknown. */
export const gauge = <N extends NameOf<"gauge">>(
  name: N,
  context: Context.Context<never>,
  ...values: Values<N>
): ((value: number | undefined) => void) => {
  const metric = Metric.gauge(name, describe(name, values))
  return (value) => {
    if (value === undefined) Metric.removeUnsafe(metric, context)
    else metric.updateUnsafe(value, context)
  }
}

/** Shows a function's result as a metric's state, until the scope closes. */
const register = <State>(metric: Metric.Metric<number, State>, get: () => State) =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.map(Effect.context(), (context) =>
        Metric.registerUnsafe(metric, context, { get, update: () => {}, modify: () => {} }),
      ),
      ({ remove }) => Effect.sync(remove),
    ),
  )

/**
 * Shows a gauge until the scope closes. Reading the metrics calls the function.
 *
 * @param read - returns the value
 */
export const observeGauge = <N extends NameOf<"gauge">>(
  name: N,
  read: () => number,
  ...values: Values<N>
): Effect.Effect<void, never, Scope.Scope> =>
  register(Metric.gauge(name, describe(name, values)), () => ({ value: read() }))

/**
 * Shows a counter until the scope closes. Reading the metrics calls the function.
 *
 * @param read - returns the total
 */
export const observeCounter = <N extends NameOf<"counter">>(
  name: N,
  read: () => number,
  ...values: Values<N>
): Effect.Effect<void, never, Scope.Scope> =>
  register(Metric.counter(name, { ...describe(name, values), incremental: true }), () => ({
    count: read(),
    incremental: true,
  }))

const suffixes: ReadonlyMap<string, string> = new Map([
  ["s", "_seconds"],
  ["By", "_bytes"],
  ["1", "_ratio"],
])

const prometheusKnown = new Map<string, { readonly type: string; readonly unit: string }>(
  Object.entries(instruments),
)

/**
 * Returns a metric's name in Prometheus, by OpenTelemetry's rules: with its unit, and a counter with
 * `_total`. Metrics from elsewhere keep their names.
 * @example
 * ```ts
 * import { prometheusName } from "@tenure/core/internal"
 *
 * prometheusName("http.server.request.duration") // "http_server_request_duration_seconds"
 * ```
 */
export const prometheusName = (name: string): string => {
  const instrument = prometheusKnown.get(name)
  if (instrument === undefined) return name
  const unit = suffixes.get(instrument.unit) ?? ""
  return name.replaceAll(".", "_") + unit + (instrument.type === "counter" ? "_total" : "")
}

/** The text's content type. */
export const prometheusContentType = "text/plain; version=0.0.4; charset=utf-8"
