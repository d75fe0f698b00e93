/** The server's settings: the variables of the environment that it reads. */

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
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Log from "./log.ts"
import * as Place from "./place.ts"
import * as Sampling from "./sampling.ts"
import * as Variable from "./variable.ts"

const isHttpUrl = (given: string): boolean =>
  URL.canParse(given) && /^https?:$/.test(new URL(given).protocol)

const isRedisUrl = (given: string): boolean =>
  URL.canParse(given) && /^rediss?:$/.test(new URL(given).protocol)

const collector = Setting.string("the URL of a collector", isHttpUrl)

/** The options that the server has beside those of the packages. */
export const options = Setting.object({
  /** The port to listen on; 0 takes a free one. Default: `3000`. */
  port: Setting.withDefault(serverOptions.fields.port, 3000),
  /**
   * Where everything is kept: in a folder, as `file:./data`; in a PostgreSQL database, as
   * `postgres://user:password@host:5432/database`; on several servers, as `servers:` and the path of a file
   * that names them; or nowhere but in memory, as `memory:`, until the server stops. Default: `"file:./data"`.
   */
  databaseUrl: Setting.withDefault(Place.setting, "file:./data"),
  /**
   * The URL of a Redis that keeps the rate limits, such as `redis://localhost:6379`. By default, they are
   * kept with everything else.
   */
  redisUrl: Setting.optional(
    Setting.custom<string, Redacted.Redacted>(
      "a URL such as redis://localhost:6379",
      (given) =>
        typeof given === "string" && isRedisUrl(given) ? Redacted.make(given) : undefined,
      // What is invalid may still contain a password.
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
   * How long the server may take to stop, after that. Requests in flight have half of it. Default:
   * `"20 seconds"`.
   */
  shutdownTimeout: Setting.withDefault(Setting.duration({ least: 0 }), "20 seconds"),
  /**
   * The port of the metrics, which are served at `/metrics` in the text format of Prometheus, to anyone who
   * reaches it; 0 takes a free one. By default, they are not served.
   */
  metricsPort: Setting.optional(Setting.integer({ least: 0, most: 65_535 })),
  /** The address to serve the metrics on. Default: `"127.0.0.1"`. */
  metricsHost: Setting.withDefault(serverOptions.fields.host, "127.0.0.1"),
  /**
   * The URL of a collector of OpenTelemetry, such as `http://localhost:4318`. It gets metrics and traces by
   * OTLP over HTTP. By default, nothing is sent.
   */
  otlpEndpoint: Setting.optional(collector),
  /** The whole URL for metrics alone, such as `http://localhost:4318/v1/metrics`. */
  otlpMetricsEndpoint: Setting.optional(collector),
  /** The whole URL for traces alone, such as `http://localhost:4318/v1/traces`. */
  otlpTracesEndpoint: Setting.optional(collector),
  /** How they are encoded: `"http/protobuf"` or `"http/json"`. Default: `"http/protobuf"`. */
  otlpProtocol: Setting.withDefault(Setting.oneOf(["http/protobuf", "http/json"]), "http/protobuf"),
  /**
   * How long the collector has for an answer, in milliseconds. What it does not take is dropped. Default:
   * `10000`.
   */
  otlpTimeout: Setting.withDefault(Setting.integer(), 10_000),
  /** Which traces are recorded, by the names of OpenTelemetry. Default: `"parentbased_always_on"`. */
  sampler: Setting.withDefault(Setting.oneOf(Sampling.samplers), "parentbased_always_on"),
  /** The part of the traces that a sampler by ratio records, from 0 to 1. Default: `1`. */
  samplerRatio: Setting.withDefault(
    Setting.guarded<number>(
      "a number from 0 to 1",
      (given) => typeof given === "number" && given >= 0 && given <= 1,
    ),
    1,
  ),
  /** Whether the ends of memberships are announced: `"on"` or `"off"`. Default: `"on"`. */
  expiry: Setting.withDefault(Setting.oneOf(["on", "off"]), "on"),
  /** The least level of the lines of the log: `"info"`, `"warn"` or `"error"`. Default: `"info"`. */
  logLevel: Setting.withDefault(Setting.oneOf(Log.levels), "info"),
  /**
   * Which requests have a line in the log: `"all"`, `"errors"` for those that are answered 400 or above, or `"none"`.
   * Default: `"all"`.
   */
  logRequests: Setting.withDefault(Setting.oneOf(Log.loggedRequests), "all"),
  /** How lines of the log are written: `"json"` or `"text"`. By default as text on a terminal, and otherwise as JSON. */
  logFormat: Setting.optional(Setting.oneOf(Log.formats)),
  /** Whether a key is suspended because its requests are refused too often. Default: `true`. */
  suspension: Setting.withDefault(Setting.boolean, true),
  /**
   * The URL of a proxy that webhooks are sent through, by HTTP CONNECT, such as
   * `http://user:password@proxy.internal:4750`. It resolves the names of receivers, and must refuse
   * private addresses. Default: none.
   */
  webhookProxy: Setting.optional(proxyTransportOptions.fields.url),
  /**
   * The keys that encrypt the secrets of webhooks in the database, each the base64 of 32 bytes. The
   * first one encrypts, and all of them decrypt; `plain` in place of the first encrypts nothing.
   */
  encryption: Setting.optional(
    Setting.custom<string, KeyringInput>(
      keyringFormat,
      (given) => (typeof given === "string" ? parseKeyring(given) : undefined),
      // What is invalid may still be a key.
      () => "another text",
    ),
  ),
})

const own = options.fields
const limits = rateLimiterOptions.fields
const suspension = suspensionOptions.fields
const deliveries = dispatcherOptions.fields
const database = connectionOptions.fields

/** The variables. */
export const variables = {
  host: Variable.text("HOST", serverOptions.fields.host),
  port: Variable.number("PORT", own.port),
  basePath: Variable.text("BASE_PATH", handlerOptions.fields.basePath),
  trustedProxies: Variable.texts("TRUSTED_PROXIES", handlerOptions.fields.trustedProxies),
  databaseUrl: Variable.text("DATABASE_URL", own.databaseUrl),
  schema: Variable.text("DATABASE_SCHEMA", database.schema),
  migrate: Variable.flag("DATABASE_MIGRATE", database.migrate),
  maxConnections: Variable.number("DATABASE_MAX_CONNECTIONS", database.maxConnections),
  listenUrl: Variable.text("DATABASE_LISTEN_URL", database.listenUrl),
  eventRetention: Variable.duration("DATABASE_EVENT_RETENTION", database.eventRetention),
  failedRetention: Variable.duration("DATABASE_FAILED_RETENTION", database.failedRetention),
  auditRetention: Variable.duration("DATABASE_AUDIT_RETENTION", database.auditRetention),
  redisUrl: Variable.text("REDIS_URL", own.redisUrl),
  encryption: Variable.text("TENURE_ENCRYPTION_KEY", own.encryption),
  missingKeys: Variable.text("ENCRYPTION_MISSING", encryptionOptions.fields.missingKeys),
  seedFile: Variable.text("SEED_FILE", own.seedFile),
  drainDelay: Variable.duration("DRAIN_DELAY", own.drainDelay),
  keepAliveTimeout: Variable.duration("KEEP_ALIVE_TIMEOUT", serverOptions.fields.keepAliveTimeout),
  shutdownTimeout: Variable.duration("SHUTDOWN_TIMEOUT", own.shutdownTimeout),
  metricsPort: Variable.number("METRICS_PORT", own.metricsPort),
  metricsHost: Variable.text("METRICS_HOST", own.metricsHost),
  otlpEndpoint: Variable.text("OTEL_EXPORTER_OTLP_ENDPOINT", own.otlpEndpoint),
  otlpProtocol: Variable.text("OTEL_EXPORTER_OTLP_PROTOCOL", own.otlpProtocol),
  otlpMetricsEndpoint: Variable.text(
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    own.otlpMetricsEndpoint,
  ),
  otlpTracesEndpoint: Variable.text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", own.otlpTracesEndpoint),
  otlpTimeout: Variable.number("OTEL_EXPORTER_OTLP_TIMEOUT", own.otlpTimeout),
  sampler: Variable.text("OTEL_TRACES_SAMPLER", own.sampler),
  samplerRatio: Variable.number("OTEL_TRACES_SAMPLER_ARG", own.samplerRatio),
  logLevel: Variable.text("LOG_LEVEL", own.logLevel),
  logRequests: Variable.text("LOG_REQUESTS", own.logRequests),
  logFormat: Variable.text("LOG_FORMAT", own.logFormat),
  bulk: Variable.text("BULK_MODE", membershipsOptions.fields.bulk),
  expiry: Variable.text("EXPIRY", own.expiry),
  reminders: Variable.durationsOrNone("EXPIRY_REMINDERS", expiryRules.fields.reminders),
  perKey: Variable.limit("RATE_LIMIT_PER_KEY", limits.perKey),
  perAddress: Variable.limitOrFalse("RATE_LIMIT_PER_IP", limits.perAddress),
  burst: Variable.limit("RATE_LIMIT_BURST", limits.burst),
  isSuspending: Variable.flag("SUSPENSION", own.suspension),
  refusals: Variable.number("SUSPENSION_REFUSALS", suspension.refusals),
  within: Variable.duration("SUSPENSION_WITHIN", suspension.within),
  duration: Variable.duration("SUSPENSION_DURATION", suspension.duration),
  requireHttps: Variable.flag("WEBHOOK_REQUIRE_HTTPS", webhooksOptions.fields.requireHttps),
  allowedNetworks: Variable.texts(
    "WEBHOOK_ALLOWED_NETWORKS",
    addressPolicyOptions.fields.allowedNetworks,
  ),
  webhookProxy: Variable.text("WEBHOOK_PROXY", own.webhookProxy),
  timeout: Variable.duration("WEBHOOK_TIMEOUT", deliveries.timeout),
  retrySchedule: Variable.durations("WEBHOOK_RETRY_SCHEDULE", deliveries.retrySchedule),
}

type Given = Variable.Values<typeof variables>

/** The values of all variables, or the defaults of their options. */
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

/** The variables that say nothing of a place, and what they need. */
const idleIn = {
  Memory: { idle: [...ofServer, ...ofDatabase], needs: "a database" },
  Folder: { idle: ofServer, needs: "a database on a server" },
  Server: { idle: [], needs: "" },
  Servers: {
    idle: [variables.listenUrl],
    needs: "a single database, and a field of the file otherwise",
  },
}

// How long a load balancer needs to notice, if there is another server that it can ask.
const drainDelays = {
  Memory: Millis(0),
  Folder: Millis(0),
  Server: Millis(3000),
  Servers: Millis(3000),
}

/** Returns what is wrong with variables that are valid by themselves. */
const contradictions = (
  { databaseUrl, metricsPort, port }: Given,
  environment: Variable.Environment,
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

/** Returns warnings of variables that set nothing, and are probably misspelled. */
export const misspelled = (environment: Variable.Environment): ReadonlyArray<string> =>
  describeMisspelled(
    Object.keys(environment),
    [...Object.values(variables).map(({ name }) => name), ...commandVariables],
    families,
  )

/** Reads the settings from an environment. Fails with all errors, which name their variables. */
export const read = (
  environment: Variable.Environment,
): Result.Result<Settings, ReadonlyArray<InvalidInput>> =>
  Result.flatMap(Variable.readAll(variables, environment), (given) => {
    const faults = contradictions(given, environment)
    if (faults.length > 0) return Result.fail(faults)
    const drainDelay = given.drainDelay ?? drainDelays[given.databaseUrl._tag]
    return Result.succeed({ ...given, drainDelay })
  })
