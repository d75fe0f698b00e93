/** The adapter suite's harness for Effect's router on its Node server. */

import { createServer } from "node:http"
import { NodeHttpServer } from "@effect/platform-node"
import { memory } from "@tenure/memory"
import { nodeTransport, orderRequests } from "@tenure/node-http"
import type { AdapterHarness } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import { HttpRouter, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { tenureRouterLayer } from "../../src/http/http-router.ts"
import { promisesFromEffect, tenureLayer } from "../../src/tenure.ts"

/** The host's own routes. */
export const own = Layer.mergeAll(
  HttpRouter.add(
    "POST",
    "/own",
    Effect.gen(function* () {
      const { json } = yield* HttpServerRequest.HttpServerRequest
      return yield* HttpServerResponse.json(yield* json)
    }),
  ),
  HttpRouter.add("GET", "/broken", Effect.die("the host's own")),
  HttpRouter.middleware(
    Effect.catchDefect(() => Effect.succeed(HttpServerResponse.empty({ status: 418 }))),
    { global: true },
  ),
)

/** Reads every body before the routes do. */
const parser = HttpRouter.middleware(
  (routes) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ json }) =>
      Effect.andThen(Effect.ignore(json), routes),
    ),
  { global: true },
)

/** Starts the router on its own port. */
export const routerHarness: AdapterHarness = {
  start: async (options, { isBehindParser, path }) => {
    const api = tenureRouterLayer()
    const routes = isBehindParser ? Layer.mergeAll(parser, api, own) : Layer.mergeAll(api, own)
    const services = tenureLayer({
      ...options,
      basePath: options.basePath ?? path,
      transport: nodeTransport,
    }).pipe(Layer.provide(memory()))
    const app = HttpRouter.serve(routes, { disableLogger: true, disableListenLog: true }).pipe(
      Layer.provideMerge(
        NodeHttpServer.layer(() => orderRequests(createServer()), { port: 0, host: "127.0.0.1" }),
      ),
      Layer.provideMerge(services),
    )
    const runtime = ManagedRuntime.make(app)
    const tenure = await runtime.runPromise(promisesFromEffect)
    const { address } = await runtime.runPromise(HttpServer.HttpServer)
    if (address._tag === "UnixPathAddress") throw new TypeError("not an address of TCP")
    return { url: `http://127.0.0.1:${address.port}`, tenure, close: () => runtime.dispose() }
  },
}
