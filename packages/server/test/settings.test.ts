/** Variables are read, refused, and recognized when they are misspelled. */

import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import { describeMisspelledVariables, readSettings, variables } from "../src/settings.ts"

const messageOf = (environment: Readonly<Record<string, string>>): string | undefined => {
  const result = readSettings(environment)
  return Result.isFailure(result)
    ? result.failure.map(({ message }) => message).join("\n")
    : undefined
}

const valuesOf = (environment: Readonly<Record<string, string>>) =>
  Result.getOrThrow(readSettings(environment))

const url = "postgres://user:hidden@host/database"

const invalid = {
  PORT: ["http", "65536", "-1", "80.5"],
  BASE_PATH: ["api", "/a?b", "/../a", "/%zz"],
  RATE_LIMIT_PER_KEY: ["0", "many"],
  RATE_LIMIT_PER_IP: ["-5"],
  RATE_LIMIT_BURST: ["1.5"],
  TRUSTED_PROXIES: ["10.0.0.1", "10.0.0.0/8,localhost", "10.0.0.0/8,,"],
  WEBHOOK_ALLOWED_NETWORKS: ["127.0.0.0/33"],
  WEBHOOK_RETRY_SCHEDULE: ["5,soon", "1,,2", "-5"],
  WEBHOOK_PROXY: ["http://user:hidden@proxy/path", "socks5://user:hidden@proxy:1080"],
  WEBHOOK_TIMEOUT: ["0"],
  WEBHOOK_REQUIRE_HTTPS: ["yes"],
  BULK_MODE: ["shorten"],
  EXPIRY: ["false"],
  EXPIRY_REMINDERS: ["0", "1 day,soon"],
  EXPIRY_LATE: ["never", "SEND"],
  EXPIRY_HOLD_AFTER_BULK: ["-1", "25 hours", "soon"],
  SUSPENSION_REFUSALS: ["0"],
  DRAIN_DELAY: ["-1"],
  SHUTDOWN_TIMEOUT: ["long"],
  DATABASE_URL: [
    "hidden",
    "file:",
    "servers:",
    "mysql://user:hidden@host/database",
    "postgresql+psycopg://user:hidden@host/database",
  ],
  DATABASE_LISTEN_URL: ["hidden"],
  DATABASE_SCHEMA: ["a b"],
  DATABASE_MIGRATE: ["no"],
  DATABASE_MAX_CONNECTIONS: ["0"],
  TENURE_ENCRYPTION_KEY: ["c2hvcnQ="],
}

describe("a variable", () => {
  it.each(
    Object.entries(invalid).flatMap(([name, values]) =>
      values.map((value) => [name, value] as const),
    ),
  )("that is invalid is named: %s=%s", (name, value) => {
    const message = messageOf({ DATABASE_URL: url, [name]: value })
    expect(message).toMatch(new RegExp(`^${name}(\\[\\d\\])? must be `))
    expect(message).not.toMatch(/hidden|c2hvcnQ/)
  })

  it.each(Object.values(variables).map(({ name }) => name))(
    "that is empty is refused, and not taken for a missing one: %s",
    (name) => {
      expect(messageOf({ DATABASE_URL: url, [name]: "" })).toBe(
        `${name} is empty: give it a value, or leave it out`,
      )
    },
  )

  it.each([
    ["SCHEMA", "a"],
    ["EVENT_RETENTION", "1"],
    ["FAILED_RETENTION", "1"],
    ["AUDIT_RETENTION", "1 day"],
  ])("of the database needs one: DATABASE_%s", (name, value) => {
    expect(messageOf({ DATABASE_URL: "memory:", [`DATABASE_${name}`]: value })).toBe(
      `DATABASE_${name} needs a database: see DATABASE_URL`,
    )
    valuesOf({ DATABASE_URL: "file:a", [`DATABASE_${name}`]: value })
  })

  it.each([
    ["MIGRATE", "true"],
    ["MAX_CONNECTIONS", "5"],
    ["LISTEN_URL", url],
  ])("of connections to a server needs one: DATABASE_%s", (name, value) => {
    expect(messageOf({ [`DATABASE_${name}`]: value })).toBe(
      `DATABASE_${name} needs a database on a server: see DATABASE_URL`,
    )
  })

  it.each([
    ["memory:", { _tag: "Memory" }],
    ["file:./data", { _tag: "Folder", path: "./data" }],
    ["servers:./servers.json", { _tag: "Servers", path: "./servers.json" }],
    ["file:/var/lib/tenure", { _tag: "Folder", path: "/var/lib/tenure" }],
  ])("says where everything is kept: %s", (given, place) => {
    expect(valuesOf({ DATABASE_URL: given })).toMatchObject({ databaseUrl: place })
  })

  it("that is wrong is named with all others that are", () => {
    const DATABASE_URL = "memory:"
    expect(messageOf({ DATABASE_URL, PORT: "http", BULK_MODE: "", EXPIRY: "no" })).toMatch(
      /^PORT must be .*\nBULK_MODE is empty.*\nEXPIRY must be .*$/,
    )
    const idle = { DATABASE_SCHEMA: "a", DATABASE_MIGRATE: "true" }
    expect(messageOf({ DATABASE_URL, PORT: "80", METRICS_PORT: "80", ...idle })).toMatch(
      /^METRICS_PORT must be another one than PORT, 80\nDATABASE_MIGRATE needs .*\nDATABASE_SCHEMA needs .*$/,
    )
  })

  it.each([
    ["memory:", 0],
    ["file:./data", 0],
    ["postgres://host/database", 3000],
    ["servers:./servers.json", 3000],
  ])(
    "says how long a server drains, by default only if there can be others: %s",
    (given, millis) => {
      expect(valuesOf({ DATABASE_URL: given }).drainDelay).toBe(millis)
      expect(valuesOf({ DATABASE_URL: given, DRAIN_DELAY: "5" }).drainDelay).toBe(5000)
    },
  )

  it("that is missing leaves an option at its default", () => {
    expect(valuesOf({ OTHER: "variables" })).toMatchObject({
      port: 3000,
      basePath: "",
      databaseUrl: { _tag: "Folder", path: "./data" },
      migrate: true,
      bulk: "set",
      perKey: undefined,
      isSuspending: true,
      refusals: 50,
      allowedNetworks: undefined,
      timeout: 15_000,
      requireHttps: false,
    })
  })

  it("is read as what its option takes", () => {
    const values = valuesOf({
      PORT: "80",
      BASE_PATH: "/api/",
      TRUSTED_PROXIES: "10.0.0.0/8, ::1/128",
      DATABASE_URL: url,
      DATABASE_SCHEMA: "members",
      DATABASE_MIGRATE: "false",
      DATABASE_MAX_CONNECTIONS: "3",
      DATABASE_EVENT_RETENTION: "2 days",
      DATABASE_FAILED_RETENTION: "4 days",
      DATABASE_AUDIT_RETENTION: "400 days",
      BULK_MODE: "neverShorten",
      EXPIRY: "off",
      EXPIRY_REMINDERS: "86400, 2 days",
      EXPIRY_LATE: "send",
      EXPIRY_HOLD_AFTER_BULK: "0",
      RATE_LIMIT_PER_IP: "7",
      RATE_LIMIT_BURST: "3",
      SUSPENSION: "false",
      WEBHOOK_REQUIRE_HTTPS: "true",
      WEBHOOK_TIMEOUT: "2.5",
      WEBHOOK_RETRY_SCHEDULE: "0.05, 1 minute,2",
      DRAIN_DELAY: "0",
    })
    expect(values).toMatchObject({
      port: 80,
      basePath: "/api",
      trustedProxies: ["10.0.0.0/8", "::1/128"],
      databaseUrl: { _tag: "Server", url },
      schema: "members",
      expiry: "off",
      reminders: [86_400_000, 2 * 86_400_000],
      lateReminders: "send",
      migrate: false,
      maxConnections: 3,
      eventRetention: 2 * 86_400_000,
      failedRetention: 4 * 86_400_000,
      auditRetention: 400 * 86_400_000,
      bulk: "neverShorten",
      perAddress: { limit: 7, window: "1 minute" },
      burst: { limit: 3, window: "1 second" },
      isSuspending: false,
      requireHttps: true,
      timeout: 2500,
      retrySchedule: [50, 60_000, 2000],
      drainDelay: 0,
    })
  })

  it("leave out reminders, but no attempts", () => {
    expect(valuesOf({ EXPIRY_REMINDERS: "none" })).toMatchObject({ reminders: [] })
    expect(messageOf({ EXPIRY_REMINDERS: "none,1 day" })).toContain("EXPIRY_REMINDERS[0] must be")
    expect(messageOf({ WEBHOOK_RETRY_SCHEDULE: "none" })).toContain("must be")
  })

  it("leave out the limit for addresses, and no other", () => {
    expect(valuesOf({ RATE_LIMIT_PER_IP: "false" })).toMatchObject({ perAddress: false })
    expect(messageOf({ RATE_LIMIT_PER_KEY: "false" })).toContain("RATE_LIMIT_PER_KEY must be")
  })
})

// Variables from shells, containers, Kubernetes, Mesos, systemd, platforms, build tools and other programs.
const foreign = `
  PATH HOME HOSTNAME USER LOGNAME SHELL SHLVL PWD OLDPWD TERM LANG LC_ALL TZ MAIL EDITOR PAGER DISPLAY HOSTTYPE
  OSTYPE COLUMNS LINES TMPDIR LD_LIBRARY_PATH SSL_CERT_FILE SSL_CERT_DIR HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY
  XDG_CONFIG_HOME XDG_DATA_DIRS SSH_AUTH_SOCK DEBIAN_FRONTEND GOPATH JAVA_HOME CLASSPATH PYTHONPATH SASS_PATH
  BASH_ENV CDPATH MANPATH INFOPATH FPATH PS1 HISTFILE HISTSIZE MAKEFLAGS DOCKER_HOST COMPOSE_FILE
  NODE_ENV NODE_VERSION NODE_PATH NODE_OPTIONS NODE_EXTRA_CA_CERTS NODE_COMPILE_CACHE YARN_VERSION UV_THREADPOOL_SIZE
  npm_config_loglevel npm_config_registry npm_lifecycle_event npm_package_name INIT_CWD
  PGHOST PGPORT PGUSER PGPASSWORD PGDATABASE PGSSLMODE PGAPPNAME POSTGRES_USER POSTGRES_PASSWORD POSTGRES_DB
  DATABASE_HOST DATABASE_NAME DATABASE_USER DATABASE_PASSWORD DATABASE_SSL DATABASE_PRIVATE_URL DATABASE_PUBLIC_URL
  DATABASE_URL_UNPOOLED DATABASE_CONNECTION_POOL_URL REDIS_HOST REDIS_PORT REDIS_PASSWORD REDIS_SSL REDIS_TTL REDIS_DB
  REDIS_TLS_URL REDISCLOUD_URL LOG_DIR LOG_FILE LOG_GROUP METRICS_PATH METRICS_ENABLED
  KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT KUBERNETES_SERVICE_PORT_HTTPS KUBERNETES_PORT
  KUBERNETES_PORT_443_TCP KUBERNETES_PORT_443_TCP_ADDR KUBERNETES_PORT_443_TCP_PORT KUBERNETES_PORT_443_TCP_PROTO
  WEBHOOK_SERVICE_HOST WEBHOOK_SERVICE_PORT WEBHOOK_SERVICE_PORT_HTTP WEBHOOK_PORT WEBHOOK_PORT_80_TCP_ADDR
  TENURE_SERVICE_HOST TENURE_PORT TENURE_PORT_3000_TCP METRIC_PORT METRIC_SERVICE_HOST POD_NAME POD_IP NODE_NAME
  PORTS PORT0 PORT1 PORT_8080 TASK_HOST MESOS_TASK_ID MARATHON_HOST NOMAD_PORT_http NOMAD_HOST_PORT_http
  INVOCATION_ID JOURNAL_STREAM NOTIFY_SOCKET LISTEN_FDS SYSTEMD_EXEC_PID CREDENTIALS_DIRECTORY
  DYNO FLY_APP_NAME FLY_REGION RENDER_SERVICE_ID RAILWAY_STATIC_URL K_SERVICE K_REVISION WEBSITE_HOSTNAME
  VERCEL_URL AWS_REGION AWS_EXECUTION_ENV ECS_CONTAINER_METADATA_URI GOOGLE_CLOUD_PROJECT CI GITHUB_ACTIONS GITHUB_REF
  OTEL_SERVICE_NAME OTEL_RESOURCE_ATTRIBUTES OTEL_TRACES_EXPORTER OTEL_METRICS_EXPORTER OTEL_LOGS_EXPORTER
  OTEL_LOG_LEVEL OTEL_EXPORTER_OTLP_HEADERS OTEL_EXPORTER_OTLP_LOGS_ENDPOINT OTEL_EXPORTER_OTLP_METRICS_PROTOCOL
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT OTEL_EXPORTER_OTLP_TRACES_HEADERS OTEL_BSP_SCHEDULE_DELAY
  TENURE_URL TENURE_TOKEN TENURE_PROJECT TENURE_DATABASE_URL TENURE_PROFILE TENURE_SCHEMA TENURE_WEBHOOK_SECRET
`

const namedIn = (names: ReadonlyArray<string>): ReadonlyArray<string> =>
  describeMisspelledVariables(Object.fromEntries(names.map((name) => [name, "x"])))

describe("a variable that is misspelled", () => {
  it.each([
    ["PROT", "PORT"],
    ["HOSTS", "HOST"],
    ["TRUSTED_PROXY", "TRUSTED_PROXIES"],
    ["EXPIRY_REMINDER", "EXPIRY_REMINDERS"],
    ["LOGLEVEL", "LOG_LEVEL"],
    ["DATABASE_URI", "DATABASE_URL"],
    ["DATABSE_SCHMA", "DATABASE_SCHEMA"],
    ["RATE_LIMIT_PER_MINUTE", "RATE_LIMIT_PER_IP"],
    ["WEBHOOK_FOO", "WEBHOOK_PROXY"],
    ["WEBHOOKS_TIMEOUT", "WEBHOOK_TIMEOUT"],
    ["TENURE_PROJCT", "TENURE_PROJECT"],
    ["TENURE_ENCRYPTION_KEYS", "TENURE_ENCRYPTION_KEY"],
  ])("is named with the nearest known one: %s", (name, known) => {
    expect(namedIn([name])).toEqual([`There is no variable ${name}. Did you mean ${known}?`])
  })

  it("is counted only if ten others are named", () => {
    const names = Array.from({ length: 1000 }, (_, n) => `TENURE_PROJCT_${n}`)
    const [tenth, more, ...rest] = namedIn(names).slice(9)
    expect(tenth).toMatch(/^There is no variable TENURE_PROJCT_9\. /)
    expect([more, ...rest]).toEqual(["Other variables that are probably misspelled: 990."])
    expect(namedIn(names.slice(0, 10))).toHaveLength(10)
  })

  it("is none that others have", () => {
    const known = Object.values(variables).map(({ name }) => name)
    expect(namedIn([...known, ...foreign.trim().split(/\s+/)])).toEqual([])
  })
})
