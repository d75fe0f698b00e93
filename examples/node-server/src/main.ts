/** The bundled server. */

import type { RequestListener, ServerResponse } from "node:http"
import { pathOf } from "@tenure/core/ApiRequest"
import type * as Keyring from "@tenure/core/Keyring"
import * as Tenure from "@tenure/core/Tenure"
import { memory } from "@tenure/memory"
import { nodeTransport, serve, toNodeHandler } from "@tenure/node-http"
import { postgres } from "@tenure/postgres"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { encryption, fromInvalidInput, type Settings, settings } from "./config.ts"
import { curls } from "./curls.ts"
import * as Log from "./log.ts"
import * as Seed from "./seed.ts"
import { fromConfig, fromDatabase, fromListening } from "./StartError.ts"

const tenureLayer = (config: Settings, keys: Keyring.Given | undefined) =>
  Tenure.layer({
    basePath: config.basePath,
    trustedProxies: config.trustedProxies,
    rateLimits: {
      perKey: { limit: config.perKey, window: "1 minute" },
      perAddress: { limit: config.perAddress, window: "1 minute" },
      burst: { limit: config.burst, window: "1 second" },
    },
    webhooks: {
      allowedNetworks: config.allowedNetworks,
      encryption: keys,
      ...(config.retrySchedule.length > 0 && { retrySchedule: config.retrySchedule }),
    },
    transport: nodeTransport,
    onResponse: Log.access,
  }).pipe(Layer.provide(storesOf(config)))

const storesOf = ({ databaseUrl }: Settings) =>
  databaseUrl === undefined ? memory() : postgres({ url: databaseUrl })

/** Answers health checks, and passes all other requests to the API. */
const withHealth = Effect.fnUntraced(function* (tenure: Tenure.Promises) {
  const api = toNodeHandler(tenure)
  // Anyone may ask, so that all requests of a second share one answer of the database.
  const isReady = yield* Effect.cachedWithTTL(
    Effect.promise(() => tenure.isReady()),
    "1 second",
  )
  const listener: RequestListener = (request, response) => {
    const isProbe = request.method === "GET" || request.method === "HEAD"
    const path = isProbe ? pathOf(request.url ?? "") : undefined
    if (path === "/healthz") response.end()
    else if (path === "/readyz") void answerReadiness(isReady, response)
    else api(request, response)
  }
  return listener
})

const answerReadiness = async (isReady: Effect.Effect<boolean>, response: ServerResponse) => {
  response.statusCode = (await Effect.runPromise(isReady)) ? 200 : 503
  response.end()
}

/** Listens until the scope closes, and then waits for the requests in flight. */
const server = Effect.fnUntraced(function* (config: Settings) {
  const tenure = yield* Tenure.promises
  const listener = yield* withHealth(tenure)
  const { url } = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        serve(tenure, {
          host: config.host,
          port: config.port,
          listener,
        }),
      catch: fromListening,
    }),
    ({ close }) => Effect.promise(close),
  )
  return url
})

const stopSignal = new Promise<void>((resolve) => {
  for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => resolve())
})

const program = Effect.gen(function* () {
  const config = yield* Effect.mapError(settings, fromConfig)
  const keys = yield* encryption
  yield* Effect.gen(function* () {
    const demo =
      config.seedFile === undefined ? yield* Seed.demo : yield* Seed.fromFile(config.seedFile)
    const url = yield* server(config)
    Log.print(`Tenure listens on ${url}${config.basePath}`)
    if (demo !== undefined) Log.print(curls(`${url}${config.basePath}`, demo, Date.now()))
    yield* Effect.promise(() => stopSignal)
  }).pipe(
    // Closes the server before Tenure, which its requests need.
    Effect.scoped,
    Effect.provide(tenureLayer(config, keys)),
    Effect.catchTags({
      InvalidInput: (error) => Effect.fail(fromInvalidInput(error)),
      SqlError: (error) => Effect.fail(fromDatabase(error)),
      SchemaMismatch: (error) => Effect.fail(fromDatabase(error)),
    }),
  )
}).pipe(Effect.provide(Logger.layer([Log.logger])))

const exit = await Effect.runPromiseExit(program)
await Log.flush()
if (Exit.isFailure(exit)) {
  const fault = Cause.squash(exit.cause)
  process.stderr.write(`${fault instanceof Error ? fault.message : String(fault)}\n`)
}
process.exit(Exit.isSuccess(exit) ? 0 : 1)
