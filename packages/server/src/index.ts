/** The bundled server: runs with the arguments and the environment of the process, until a signal. */

import { Feed, tenureLayer } from "@tenure/core/effect"
import { version } from "@tenure/core/internal"
import { nodeTransport, proxyTransport } from "@tenure/node-http"
import * as Cause from "effect/Cause"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Result from "effect/Result"
import { type Demo, demoIn, describeAnotherKey, formatCurls } from "./demo.ts"
import { serveApi, serveMetrics } from "./listening.ts"
import {
  configureLog,
  flushLog,
  logAccess,
  logFault,
  logInfo,
  logWarning,
  printLine,
  printable,
  tenureLogger,
} from "./log.ts"
import { monitoringLayer, runtimeMetricsLayer, sendsMetrics } from "./monitoring.ts"
import { seedFromFile } from "./seed.ts"
import { type Settings, describeMisspelledVariables, readSettings, variables } from "./settings.ts"
import {
  startErrorFromConfig,
  startErrorFromDatabase,
  startErrorFromInvalidInput,
} from "./start-error.ts"
import {
  type ServerEnd,
  type Signal,
  firstSignal,
  runUntilStopped,
  secondInterrupt,
} from "./stopping.ts"
import { redisLimitsLayer, storesLayer } from "./stores.ts"

/** Provides Tenure with its stores, as the settings say. */
const bundledTenureLayer = (settings: Settings) => {
  const { webhookProxy } = settings
  const hasMetrics = settings.metricsPort !== undefined || sendsMetrics(settings)
  return tenureLayer({
    basePath: settings.basePath,
    trustedProxies: settings.trustedProxies,
    bulk: settings.bulk,
    expiry: settings.expiry === "on" && {
      reminders: settings.reminders,
      late: settings.lateReminders,
      holdAfterBulk: settings.holdAfterBulk,
    },
    rateLimits: {
      perKey: settings.perKey,
      perAddress: settings.perAddress,
      burst: settings.burst,
      suspension: settings.isSuspending && {
        refusals: settings.refusals,
        within: settings.within,
        duration: settings.duration,
      },
    },
    webhooks: {
      requireHttps: settings.requireHttps,
      allowedNetworks: settings.allowedNetworks,
      timeout: settings.timeout,
      retrySchedule: settings.retrySchedule,
      encryption: settings.encryption,
      missingKeys: settings.missingKeys,
    },
    transport: webhookProxy === undefined ? nodeTransport : proxyTransport({ url: webhookProxy }),
    onResponse: logAccess,
    onError: logFault,
    metrics: hasMetrics,
  }).pipe(
    Layer.provideMerge(redisLimitsLayer(settings.redisUrl)),
    Layer.provideMerge(storesLayer(settings)),
    Layer.provideMerge(hasMetrics ? runtimeMetricsLayer : Layer.empty),
    Layer.provideMerge(monitoringLayer(settings)),
  )
}

/** Stores the seed file, or the demo. A database on a server gets no demo, because its key would be valid there. */
const seed = Effect.fnUntraced(function* ({ databaseUrl, seedFile }: Settings) {
  const isServer = databaseUrl._tag === "Server" || databaseUrl._tag === "Servers"
  if (seedFile !== undefined) yield* seedFromFile(seedFile, isServer)
  else if (!isServer)
    return yield* demoIn(databaseUrl._tag === "Folder" ? databaseUrl.path : undefined)
  return undefined
})

/** Describes how to try the server, unless its operator chose the data. */
const hintOf = (
  { databaseUrl, seedFile }: Settings,
  url: string,
  demo: Demo | undefined,
): string | undefined => {
  if (demo !== undefined) return formatCurls(url, demo, Date.now())
  if (seedFile !== undefined || databaseUrl._tag !== "Folder") return undefined
  return describeAnotherKey(url, databaseUrl.path)
}

/** Waits for a signal, and then until load balancers know. After a Ctrl+C, somebody waits for the end instead. */
const untilStopped = Effect.fnUntraced(function* (
  signal: Promise<Signal>,
  drain: Effect.Effect<void>,
  { drainDelay }: Settings,
) {
  if ((yield* Effect.promise(() => signal)) === "SIGINT") return
  yield* drain
  yield* Effect.sleep(drainDelay)
})

/** Serves until a signal. Calls `started` when it listens. */
const serveUntil = (signal: Promise<Signal>, settings: Settings, started: Effect.Effect<void>) =>
  Effect.gen(function* () {
    const demo = yield* seed(settings)
    yield* serveMetrics(settings)
    const { drain, url } = yield* serveApi(settings)
    yield* started
    logInfo(`Tenure listens on ${url}`)
    const hint = hintOf(settings, url, demo)
    if (hint !== undefined) printLine(hint)
    yield* untilStopped(signal, drain, settings)
    // The server waits for its requests, and followers would wait for events.
    yield* Feed.use(({ release }) => release)
  }).pipe(
    // Closes the server before Tenure, because requests need Tenure.
    Effect.scoped,
    Effect.provide(bundledTenureLayer(settings)),
    Effect.catchTags({
      InvalidInput: (error) => Effect.fail(startErrorFromInvalidInput(error)),
      FolderUnusable: (error) => Effect.fail(startErrorFromDatabase(error)),
      DatabaseUnusable: (error) => Effect.fail(startErrorFromDatabase(error)),
      SchemaMismatch: (error) => Effect.fail(startErrorFromDatabase(error)),
    }),
    Effect.catchDefect((defect) =>
      defect instanceof Config.ConfigError
        ? Effect.fail(startErrorFromConfig(defect))
        : Effect.die(defect),
    ),
    Effect.provide(Logger.layer([tenureLogger])),
  )

/** Describes why the server failed, or returns `undefined` if it stopped as it should. */
const describeFailure = (end: ServerEnd<unknown>): string | undefined => {
  if (end._tag === "StoppedStarting") return undefined
  if (end._tag === "CutShort")
    return "The server was interrupted twice, and did not wait for requests."
  if (end._tag === "Overdue") return "The server did not stop in time: see SHUTDOWN_TIMEOUT."
  if (Exit.isSuccess(end.exit)) return undefined
  const fault = Cause.squash(end.exit.cause)
  return fault instanceof Error ? fault.message : String(fault)
}

/** Reads the settings, and runs the server to its end. Returns why it failed, or `undefined`. */
const runConfigured = async (signal: Promise<Signal>): Promise<string | undefined> => {
  const settings = readSettings(process.env)
  if (Result.isFailure(settings)) return settings.failure.map(({ message }) => message).join("\n")
  const { drainDelay, shutdownTimeout } = settings.success
  configureLog(settings.success)
  for (const problem of describeMisspelledVariables(process.env)) logWarning(problem)
  const end = await runUntilStopped(
    (started) => serveUntil(signal, settings.success, started),
    signal,
    drainDelay + shutdownTimeout,
    secondInterrupt(signal),
  )
  return describeFailure(end)
}

/** A text to print instead of running the server. */
interface PrintedText {
  readonly text: string
  /** The exit code: 2 if the arguments are wrong. */
  readonly code: 0 | 2
}

const usageWidth = 78

/** Divides words into lines. */
const wrap = (words: ReadonlyArray<string>): string => {
  const lines = [""]
  for (const word of words) {
    const line = lines.at(-1) ?? ""
    if (line.length + word.length > usageWidth) lines.push(`  ${word}`)
    else lines[lines.length - 1] = line === "" ? `  ${word}` : `${line} ${word}`
  }
  return lines.join("\n")
}

const usage = [
  "Usage: node server.mjs [--help] [--version]",
  "",
  "Runs Tenure until it gets SIGTERM, SIGINT or SIGHUP. Without settings, it listens on",
  "http://127.0.0.1:3000, and keeps everything in the folder ./data.",
  "",
  "Settings are variables of the environment, such as PORT=4000:",
  "",
  wrap(Object.values(variables).map(({ name }) => name)),
  "",
  "https://github.com/tenure/tenure/blob/main/docs/options.md describes them.",
].join("\n")

/** Reads the arguments. Returns a text to print, or `undefined` to run the server. */
const readArguments = (args: ReadonlyArray<string>): PrintedText | undefined => {
  const [first] = args
  if (first === undefined) return undefined
  if (args.some((one) => one === "--help" || one === "-h")) return { text: usage, code: 0 }
  if (args.length === 1 && (first === "--version" || first === "-v"))
    return { text: `tenure ${version}`, code: 0 }
  return { text: `The server takes no argument ${JSON.stringify(first)}.\n\n${usage}`, code: 2 }
}

/** Runs the server until a signal, and ends the process with the exit code 0, or 1 after a failure. */
export const runServer = async (): Promise<never> => {
  const signal = firstSignal()
  const printed = readArguments(process.argv.slice(2))
  if (printed !== undefined) {
    const output = printed.code === 0 ? process.stdout : process.stderr
    await new Promise((resolve) => output.write(`${printable(printed.text)}\n`, resolve))
    process.exit(printed.code)
  }
  const failure = await runConfigured(signal)
  await flushLog()
  if (failure !== undefined) process.stderr.write(`${printable(failure)}\n`)
  process.exit(failure === undefined ? 0 : 1)
}
