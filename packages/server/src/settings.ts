/** The server's settings, which it reads from environment variables. */

import { InvalidInput, type KeyringInput, parseKeyring } from "@tenure/core"
import {
  Setting,
  addressPolicyOptions,
  commandVariables,
  describeMisspelled,
  dispatcherOptions,
  encryptionOptions,
  expiryRules,
  handlerOptions,
  keyringFormat,
  membershipsOptions,
  rateLimiterOptions,
  suspensionOptions,
  webhooksOptions,
} from "@tenure/core/internal"
import { Millis } from "@tenure/core/store"
import { proxyTransportOptions, serverOptions } from "@tenure/node-http"
import { connectionOptions } from "@tenure/postgres"
import { serversFile } from "@tenure/postgres/ops/upkeep"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { logFormats, logLevels, loggedRequests } from "./log.ts"
import { samplers } from "./sampling.ts"
import {
  type Environment,
  type Variable,
  type VariableValues,
  durationVariable,
  durationsOrNoneVariable,
  durationsVariable,
  flagVariable,
  limitOrFalseVariable,
  limitVariable,
  numberVariable,
  readVariables,
  textVariable,
  textsVariable,
} from "./variable.ts"

export type { Variable }

const isHttpUrl = (given: string): boolean =>
  URL.canParse(given) && /^https?:$/.test(new URL(given).protocol)

const isRedisUrl = (given: string): boolean =>
  URL.canParse(given) && /^rediss?:$/.test(new URL(given).protocol)

const collectorUrl = Setting.string("the URL of a collector", isHttpUrl)

const database = connectionOptions.fields

/** The place for all data. */
export type Place =
  | { readonly _tag: "Memory" }
  | { readonly _tag: "Folder"; readonly path: string }
  | { readonly _tag: "Server"; readonly url: string }
  /** Cells on several servers; a file lists these. */
  | { readonly _tag: "Servers"; readonly path: string }

const placeExpected = `"memory:", "file:" and the path of a folder, "servers:" and the path of a file, or ${database.url.expected}`

// The error does not show the text, because it may have a password.
const invalidPlace = Setting.custom<string, Place>(
  placeExpected,
  () => undefined,
  () => "another text",
)

const folderUrl = /^file:(.+)$/

/** A place as a URL. */
const placeSetting: Setting.Setting<string, Place> = {
  expected: placeExpected,
  read: (given, name) => {
    if (given === "memory:") return Result.succeed({ _tag: "Memory" })
    if (typeof given !== "string") return invalidPlace.read(given, name)
    const path = folderUrl.exec(given)?.[1]
    if (path !== undefined) return Result.succeed({ _tag: "Folder", path })
    const file = serversFile(given)
    if (file !== undefined) return Result.succeed({ _tag: "Servers", path: file })
    // Also the schemes of SQLAlchemy and JDBC, so that the error is about PostgreSQL.
    if (!/^[\w:]*postgres(ql)?[\w+.-]*:/.test(given)) return invalidPlace.read(given, name)
    return Result.map(database.url.read(given, name), (url) => ({ _tag: "Server", url }))
  },
}

/** The server's own options, beside those of the packages. */
export const bundledServerOptions = Setting.object({
  /** The port to listen on; 0 takes a free one. Default: `3000`. */
  port: Setting.withDefault(serverOptions.fields.port, 3000),
  /**
   * The place for all data: a folder, as `file:./data`; a PostgreSQL database, as
   * `postgres://user:password@host:5432/database`; several servers, as `servers:` and the path to a file
   * that lists them; or, until the server stops, memory, as `memory:`. Default: `"file:./data"`.
   */
  databaseUrl: Setting.withDefault(placeSetting, "file:./data"),
  /**
   * The URL of a Redis for the rate limits, such as `redis://localhost:6379`. By default, they are kept with
   * all other data.
   */
  redisUrl: Setting.optional(
    Setting.custom<string, Redacted.Redacted>(
      "a URL such as redis://localhost:6379",
      (given) =>
        typeof given === "string" && isRedisUrl(given) ? Redacted.make(given) : undefined,
      // The error does not show the text, because it may have a password.
      () => "another text",
    ),
  ),
  /** A file with projects, memberships and API keys to create at the start. */
  seedFile: Setting.optional(Setting.string("the path of a file", (path) => path !== "")),
  /**
   * How long `/readyz` is answered 503 after SIGTERM before the port closes. Meanwhile, requests are
   * answered, and each response closes its connection. By default three seconds with databases on servers;
   * and none with a folder or in memory, because no other server could take the requests.
   */
  drainDelay: Setting.optional(Setting.duration({ least: 0 })),
  /**
   * How long the server may take to stop, after that. Requests in flight have half this time. Default:
   * `"20 seconds"`.
   */
  shutdownTimeout: Setting.withDefault(Setting.duration({ least: 0 }), "20 seconds"),
  /**
   * The port for metrics, served at `/metrics` in the text format for Prometheus, to anyone; 0 takes a free
   * one. By default, metrics are not served.
   */
  metricsPort: Setting.optional(Setting.integer({ least: 0, most: 65_535 })),
  /** The address to serve the metrics on. Default: `"127.0.0.1"`. */
  metricsHost: Setting.withDefault(serverOptions.fields.host, "127.0.0.1"),
  /**
   * The URL of an OpenTelemetry collector, such as `http://localhost:4318`. It gets metrics and traces by
   * OTLP over HTTP. By default, nothing is sent.
   */
  otlpEndpoint: Setting.optional(collectorUrl),
  /** The whole URL for metrics alone, such as `http://localhost:4318/v1/metrics`. */
  otlpMetricsEndpoint: Setting.optional(collectorUrl),
  /** The whole URL for traces alone, such as `http://localhost:4318/v1/traces`. */
  otlpTracesEndpoint: Setting.optional(collectorUrl),
  /** How they are encoded: `"http/protobuf"` or `"http/json"`. Default: `"http/protobuf"`. */
  otlpProtocol: Setting.withDefault(Setting.oneOf(["http/protobuf", "http/json"]), "http/protobuf"),
  /**
   * How long the collector has for a response, in milliseconds. Afterwards, the data are dropped. Default:
   * `10000`.
   */
  otlpTimeout: Setting.withDefault(Setting.integer(), 10_000),
  /** Which traces are recorded, by OpenTelemetry's names. Default: `"parentbased_always_on"`. */
  sampler: Setting.withDefault(Setting.oneOf(samplers), "parentbased_always_on"),
  /** The part of all traces to record, for samplers by ratio, from 0 to 1. Default: `1`. */
  samplerRatio: Setting.withDefault(
    Setting.guarded<number>(
      "a number from 0 to 1",
      (given) => typeof given === "number" && given >= 0 && given <= 1,
    ),
    1,
  ),
  /** Whether membership ends are announced: `"on"` or `"off"`. Default: `"on"`. */
  expiry: Setting.withDefault(Setting.oneOf(["on", "off"]), "on"),
  /** The lowest level to log: `"info"`, `"warn"` or `"error"`. Default: `"info"`. */
  logLevel: Setting.withDefault(Setting.oneOf(logLevels), "info"),
  /**
   * Which requests are logged: `"all"`, `"errors"` for a status from 400 on, or `"none"`. Default: `"all"`.
   */
  logRequests: Setting.withDefault(Setting.oneOf(loggedRequests), "all"),
  /** How the log is written: `"json"` or `"text"`. By default as text on a terminal, and otherwise as JSON. */
  logFormat: Setting.optional(Setting.oneOf(logFormats)),
  /** Whether a key is suspended because its requests are refused too often. Default: `true`. */
  suspension: Setting.withDefault(Setting.boolean, true),
  /**
   * The URL of a proxy for webhooks, by HTTP CONNECT, such as `http://user:password@proxy.internal:4750`. It
   * resolves the receivers' names, and must refuse private addresses. Default: none.
   */
  webhookProxy: Setting.optional(proxyTransportOptions.fields.url),
  /**
   * The keys for encrypting webhooks' secrets in the database, each 32 bytes in base64. The first one
   * encrypts, and all decrypt; `plain` in place of the first encrypts nothing.
   */
  encryption: Setting.optional(
    Setting.custom<string, KeyringInput>(
      keyringFormat,
      (given) => (typeof given === "string" ? parseKeyring(given) : undefined),
      // The error does not show the text, because it may be a key.
      () => "another text",
    ),
  ),
})

const own = bundledServerOptions.fields
const limits = rateLimiterOptions.fields
const suspension = suspensionOptions.fields
const deliveries = dispatcherOptions.fields
/** The variables. */
export const variables = {
  host: textVariable("HOST", serverOptions.fields.host),
  port: numberVariable("PORT", own.port),
  basePath: textVariable("BASE_PATH", handlerOptions.fields.basePath),
  trustedProxies: textsVariable("TRUSTED_PROXIES", handlerOptions.fields.trustedProxies),
  databaseUrl: textVariable("DATABASE_URL", own.databaseUrl),
  schema: textVariable("DATABASE_SCHEMA", database.schema),
  migrate: flagVariable("DATABASE_MIGRATE", database.migrate),
  maxConnections: numberVariable("DATABASE_MAX_CONNECTIONS", database.maxConnections),
  listenUrl: textVariable("DATABASE_LISTEN_URL", database.listenUrl),
  eventRetention: durationVariable("DATABASE_EVENT_RETENTION", database.eventRetention),
  failedRetention: durationVariable("DATABASE_FAILED_RETENTION", database.failedRetention),
  auditRetention: durationVariable("DATABASE_AUDIT_RETENTION", database.auditRetention),
  redisUrl: textVariable("REDIS_URL", own.redisUrl),
  encryption: textVariable("TENURE_ENCRYPTION_KEY", own.encryption),
  missingKeys: textVariable("ENCRYPTION_MISSING", encryptionOptions.fields.missingKeys),
  seedFile: textVariable("SEED_FILE", own.seedFile),
  drainDelay: durationVariable("DRAIN_DELAY", own.drainDelay),
  keepAliveTimeout: durationVariable("KEEP_ALIVE_TIMEOUT", serverOptions.fields.keepAliveTimeout),
  shutdownTimeout: durationVariable("SHUTDOWN_TIMEOUT", own.shutdownTimeout),
  metricsPort: numberVariable("METRICS_PORT", own.metricsPort),
  metricsHost: textVariable("METRICS_HOST", own.metricsHost),
  otlpEndpoint: textVariable("OTEL_EXPORTER_OTLP_ENDPOINT", own.otlpEndpoint),
  otlpProtocol: textVariable("OTEL_EXPORTER_OTLP_PROTOCOL", own.otlpProtocol),
  otlpMetricsEndpoint: textVariable("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", own.otlpMetricsEndpoint),
  otlpTracesEndpoint: textVariable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", own.otlpTracesEndpoint),
  otlpTimeout: numberVariable("OTEL_EXPORTER_OTLP_TIMEOUT", own.otlpTimeout),
  sampler: textVariable("OTEL_TRACES_SAMPLER", own.sampler),
  samplerRatio: numberVariable("OTEL_TRACES_SAMPLER_ARG", own.samplerRatio),
  logLevel: textVariable("LOG_LEVEL", own.logLevel),
  logRequests: textVariable("LOG_REQUESTS", own.logRequests),
  logFormat: textVariable("LOG_FORMAT", own.logFormat),
  bulk: textVariable("BULK_MODE", membershipsOptions.fields.bulk),
  expiry: textVariable("EXPIRY", own.expiry),
  reminders: durationsOrNoneVariable("EXPIRY_REMINDERS", expiryRules.fields.reminders),
  lateReminders: textVariable("EXPIRY_LATE", expiryRules.fields.late),
  holdAfterBulk: durationVariable("EXPIRY_HOLD_AFTER_BULK", expiryRules.fields.holdAfterBulk),
  perKey: limitVariable("RATE_LIMIT_PER_KEY", limits.perKey),
  perAddress: limitOrFalseVariable("RATE_LIMIT_PER_IP", limits.perAddress),
  burst: limitVariable("RATE_LIMIT_BURST", limits.burst),
  isSuspending: flagVariable("SUSPENSION", own.suspension),
  refusals: numberVariable("SUSPENSION_REFUSALS", suspension.refusals),
  within: durationVariable("SUSPENSION_WITHIN", suspension.within),
  duration: durationVariable("SUSPENSION_DURATION", suspension.duration),
  requireHttps: flagVariable("WEBHOOK_REQUIRE_HTTPS", webhooksOptions.fields.requireHttps),
  allowedNetworks: textsVariable(
    "WEBHOOK_ALLOWED_NETWORKS",
    addressPolicyOptions.fields.allowedNetworks,
  ),
  webhookProxy: textVariable("WEBHOOK_PROXY", own.webhookProxy),
  timeout: durationVariable("WEBHOOK_TIMEOUT", deliveries.timeout),
  retrySchedule: durationsVariable("WEBHOOK_RETRY_SCHEDULE", deliveries.retrySchedule),
}

type Given = VariableValues<typeof variables>

/** The values of all variables that are set, and the defaults of the others. */
export interface Settings extends Given {
  readonly drainDelay: Millis
}

const ofServer = [variables.listenUrl, variables.migrate, variables.maxConnections]

const ofDatabase = [
  variables.schema,
  variables.eventRetention,
  variables.failedRetention,
  variables.auditRetention,
]

/** Variables without effect, by place, and the place that they need. */
const idleIn = {
  Memory: { idle: [...ofServer, ...ofDatabase], needs: "a database" },
  Folder: { idle: ofServer, needs: "a database on a server" },
  Server: { idle: [], needs: "" },
  Servers: {
    idle: [variables.listenUrl],
    needs: "a single database, and a field of the file otherwise",
  },
}

// With a database on a server, others can take the requests: a load balancer needs 3 seconds to notice.
const drainDelays = {
  Memory: Millis(0),
  Folder: Millis(0),
  Server: Millis(3000),
  Servers: Millis(3000),
}

/** Returns the errors in variables that are valid by themselves. */
const contradictions = (
  { databaseUrl, metricsPort, port }: Given,
  environment: Environment,
): ReadonlyArray<InvalidInput> => {
  const { idle, needs } = idleIn[databaseUrl._tag]
  const set = idle.filter(({ name }) => environment[name] !== undefined)
  const useless = set.map(({ name }) => {
    const problem = `needs ${needs}: see ${variables.databaseUrl.name}`
    return new InvalidInput({ field: name, problem })
  })
  if (metricsPort !== port || port === 0) return useless
  const problem = `must be another one than ${variables.port.name}, ${port}`
  return [new InvalidInput({ field: variables.metricsPort.name, problem }), ...useless]
}

// Other programs have variables such as DATABASE_HOST and LOG_DIR.
const families = ["EXPIRY_", "RATE_LIMIT_", "SUSPENSION_", "TENURE_", "WEBHOOK_"]

/** Returns a warning for each variable that sets nothing and looks misspelled. */
export const describeMisspelledVariables = (environment: Environment): ReadonlyArray<string> =>
  describeMisspelled(
    Object.keys(environment),
    [...Object.values(variables).map(({ name }) => name), ...commandVariables],
    families,
  )

/** Reads the settings from an environment. Fails with all errors; each names its variable. */
export const readSettings = (
  environment: Environment,
): Result.Result<Settings, ReadonlyArray<InvalidInput>> =>
  Result.flatMap(readVariables(variables, environment), (given) => {
    const faults = contradictions(given, environment)
    if (faults.length > 0) return Result.fail(faults)
    const drainDelay = given.drainDelay ?? drainDelays[given.databaseUrl._tag]
    return Result.succeed({ ...given, drainDelay })
  })
