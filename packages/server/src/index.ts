/** The bundled server. */

import type { IncomingMessage, RequestListener } from "node:http"
import { tenureConsole } from "@tenure/console"
import type { Promises } from "@tenure/core"
import { Feed, RateLimiter, promisesFromEffect, tenureLayer } from "@tenure/core/effect"
import type { StorePorts } from "@tenure/core/store"
import { embedded } from "@tenure/embedded"
import { memory } from "@tenure/memory"
import {
  type ServerOptions,
  nodeTransport,
  proxyTransport,
  serve,
  toNodeHandler,
} from "@tenure/node-http"
import { type PostgresOptions, postgres } from "@tenure/postgres"
import { readServers } from "@tenure/postgres/ops/upkeep"
import * as Cause from "effect/Cause"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Result from "effect/Result"
import { readArguments } from "./arguments.ts"
import { anotherKey, curls } from "./curls.ts"
import { type Demo, demoIn } from "./demo.ts"
import * as Health from "./health.ts"
import { limitsAt } from "./limits.ts"
import * as Log from "./log.ts"
import * as Monitoring from "./monitoring.ts"
import { printable } from "./printable.ts"
import * as RuntimeMetrics from "./runtime-metrics.ts"
import * as Seed from "./seed.ts"
import { type Settings, misspelled, read, variables } from "./settings.ts"
import {
  type StartError,
  fromConfig,
  fromDatabase,
  fromInvalidInput,
  fromListening,
} from "./start-error.ts"
import * as Stopping from "./stopping.ts"

const mainTenureLayer = (settings: Settings) => {
  const { webhookProxy } = settings
  const hasMetrics = settings.metricsPort !== undefined || Monitoring.sendsMetrics(settings)
  return tenureLayer({
    basePath: settings.basePath,
    trustedProxies: settings.trustedProxies,
    bulk: settings.bulk,
    expiry: settings.expiry === "on" && { reminders: settings.reminders },
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
    onResponse: Log.access,
    onError: Log.fault,
    metrics: hasMetrics,
  }).pipe(
    Layer.provideMerge(limitsAt(settings.redisUrl)),
    Layer.provideMerge(storesOf(settings)),
    Layer.provideMerge(hasMetrics ? RuntimeMetrics.layer : Layer.empty),
    Layer.provideMerge(Monitoring.layer(settings)),
  )
}

/** The stores on several servers. */
const severalIn = (path: string, shared: PostgresOptions) =>
  Layer.unwrap(Effect.map(readServers(path), (servers) => postgres({ servers, ...shared }))).pipe(
    Layer.catchTag("InvalidInput", (error) =>
      Layer.effectContext(Effect.fail(fromDatabase(error))),
    ),
  )

type StoreError = Layer.Error<ReturnType<typeof severalIn | typeof postgres | typeof embedded>>

const storesOf = (settings: Settings): Layer.Layer<StorePorts, StoreError> => {
  const { auditRetention, databaseUrl, eventRetention, failedRetention, schema } = settings
  const ofDatabase = { schema, eventRetention, failedRetention, auditRetention }
  switch (databaseUrl._tag) {
    case "Memory":
      return memory()
    case "Folder":
      return embedded({ path: databaseUrl.path, ...ofDatabase })
    case "Server": {
      const { listenUrl, maxConnections, migrate } = settings
      return postgres({ url: databaseUrl.url, ...ofDatabase, migrate, maxConnections, listenUrl })
    }
    case "Servers": {
      const { maxConnections, migrate } = settings
      return severalIn(databaseUrl.path, { ...ofDatabase, migrate, maxConnections })
    }
  }
}

/** Creates what the server starts with. A server's database gets no demo, whose key would be valid there. */
const seed = Effect.fnUntraced(function* ({ databaseUrl, seedFile }: Settings) {
  const isServer = databaseUrl._tag === "Server" || databaseUrl._tag === "Servers"
  if (seedFile !== undefined) yield* Seed.fromFile(seedFile, isServer)
  else if (!isServer)
    return yield* demoIn(databaseUrl._tag === "Folder" ? databaseUrl.path : undefined)
  return undefined
})

/** Says how to try the server, if its operator did not say what is in it. */
const hintOf = (
  { databaseUrl, seedFile }: Settings,
  url: string,
  demo: Demo | undefined,
): string | undefined => {
  if (demo !== undefined) return curls(url, demo, Date.now())
  if (seedFile !== undefined || databaseUrl._tag !== "Folder") return undefined
  return anotherKey(url, databaseUrl.path)
}

/** Tells whether a person opens the server's address in a browser. */
const isVisit = ({ headers, method, url }: IncomingMessage): boolean =>
  method === "GET" && url === "/" && headers.accept?.includes("text/html") === true

/** Answers requests for the console, leads browsers there, and answers requests for the API. */
const listenerOf = (tenure: Promises): RequestListener => {
  const console = toNodeHandler(tenureConsole(tenure, { authorize: "api-key" }))
  const api = toNodeHandler(tenure)
  // Without the first slash, so that it also leads there behind a proxy that removes a prefix.
  const location = `${tenure.basePath}/console/`.slice(1)
  return (request, response) => {
    if (isVisit(request)) response.writeHead(302, { location }).end()
    else console(request, response, () => api(request, response))
  }
}

/** Serves until the scope closes, and then waits for the requests in flight. */
const serving = (
  tenure: Promises,
  options: ServerOptions,
  onFault: (fault: unknown) => StartError,
) =>
  Effect.acquireRelease(
    Effect.tryPromise({ try: () => serve(tenure, options), catch: onFault }),
    ({ close }) => Effect.promise(close),
  )

/** Serves the metrics, if they have a port. */
const serveMetrics = Effect.fnUntraced(function* (settings: Settings) {
  const { metricsHost: host, metricsPort: port } = settings
  if (port === undefined) return
  const tenure = yield* promisesFromEffect
  const { url } = yield* serving(
    tenure,
    { host, port, listener: Monitoring.listener(tenure), shutdownTimeout: 0 },
    fromListening(variables.metricsPort, port, variables.metricsHost, host),
  )
  Log.info(`Metrics are at ${url}/metrics`)
})

/** Listens until the scope closes. */
const listen = Effect.fnUntraced(function* ({
  host,
  keepAliveTimeout,
  port,
  shutdownTimeout,
}: Settings) {
  const tenure = yield* promisesFromEffect
  const limiter = yield* RateLimiter
  const health = yield* Health.make(
    Effect.all({ isReady: Effect.promise(() => tenure.isReady()), limits: limiter.mode(true) }),
    listenerOf(tenure),
  )
  const { drain, url } = yield* serving(
    tenure,
    {
      host,
      port,
      listener: health.listener,
      keepAliveTimeout,
      // The rest is for what the requests need.
      shutdownTimeout: shutdownTimeout / 2,
    },
    fromListening(variables.port, port, variables.host, host),
  )
  return {
    url: `${url}${tenure.basePath}`,
    drain: Effect.andThen(health.drain, Effect.sync(drain)),
  }
})

const signal = Stopping.firstSignal()

/** Waits for a signal, and unless somebody waits for the end, until those who check the readiness know of it. */
const untilStopped = Effect.fnUntraced(function* (
  drain: Effect.Effect<void>,
  { drainDelay }: Settings,
) {
  if ((yield* Effect.promise(() => signal)) === "SIGINT") return
  yield* drain
  yield* Effect.sleep(drainDelay)
})

const server = (settings: Settings, started: Effect.Effect<void>) =>
  Effect.gen(function* () {
    const demo = yield* seed(settings)
    yield* serveMetrics(settings)
    const { drain, url } = yield* listen(settings)
    yield* started
    Log.info(`Tenure listens on ${url}`)
    const hint = hintOf(settings, url, demo)
    if (hint !== undefined) Log.print(hint)
    yield* untilStopped(drain, settings)
    // The server waits for its requests, and these would wait for events.
    yield* Feed.use(({ release }) => release)
  }).pipe(
    // Closes the server before Tenure, which its requests need.
    Effect.scoped,
    Effect.provide(mainTenureLayer(settings)),
    Effect.catchTags({
      InvalidInput: (error) => Effect.fail(fromInvalidInput(error)),
      FolderUnusable: (error) => Effect.fail(fromDatabase(error)),
      DatabaseUnusable: (error) => Effect.fail(fromDatabase(error)),
      SchemaMismatch: (error) => Effect.fail(fromDatabase(error)),
    }),
    Effect.catchDefect((defect) =>
      defect instanceof Config.ConfigError ? Effect.fail(fromConfig(defect)) : Effect.die(defect),
    ),
    Effect.provide(Logger.layer([Log.logger])),
  )

/** Returns what is wrong with an end, or `undefined` if nothing is. */
const faultOf = (end: Stopping.End<unknown>): string | undefined => {
  if (end._tag === "StoppedStarting") return undefined
  if (end._tag === "CutShort")
    return "The server was interrupted twice, and did not wait for requests."
  if (end._tag === "Overdue") return "The server did not stop in time: see SHUTDOWN_TIMEOUT."
  if (Exit.isSuccess(end.exit)) return undefined
  const fault = Cause.squash(end.exit.cause)
  return fault instanceof Error ? fault.message : String(fault)
}

/** Reads the settings, and runs the server to its end. */
const main = async (): Promise<string | undefined> => {
  const settings = read(process.env)
  if (Result.isFailure(settings)) return settings.failure.map(({ message }) => message).join("\n")
  const { drainDelay, shutdownTimeout } = settings.success
  Log.configure(settings.success)
  for (const problem of misspelled(process.env)) Log.warn(problem)
  const end = await Stopping.run(
    (started) => server(settings.success, started),
    signal,
    drainDelay + shutdownTimeout,
    Stopping.secondInterrupt(signal),
  )
  return faultOf(end)
}

const printed = readArguments(process.argv.slice(2))
if (printed !== undefined) {
  const output = printed.code === 0 ? process.stdout : process.stderr
  await new Promise((resolve) => output.write(`${printable(printed.text)}\n`, resolve))
  process.exit(printed.code)
}

const mainFault = await main()
await Log.flush()
if (mainFault !== undefined) process.stderr.write(`${printable(mainFault)}\n`)
process.exit(mainFault === undefined ? 0 : 1)
