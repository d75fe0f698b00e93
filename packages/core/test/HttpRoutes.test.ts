import { createServer } from "node:http"
import { NodeHttpServer } from "@effect/platform-node"
import * as HttpRoutes from "@tenure/core/HttpRoutes"
import * as Tenure from "@tenure/core/Tenure"
import { memory } from "@tenure/memory"
import { nodeTransport } from "@tenure/node-http"
import { adapterSuite } from "@tenure/testing"
import * as Effect from "effect/Effect"
import { HttpRouter, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"

/** The host's own routes. */
const own = Layer.mergeAll(
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

/** Reads every body before any route gets to see it. */
const parser = HttpRouter.middleware(
  (routes) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ json }) =>
      Effect.andThen(Effect.ignore(json), routes),
    ),
  { global: true },
)

adapterSuite("Effect's NodeHttpServer", {
  start: async (options, { isBehindParser, path }) => {
    const api = HttpRoutes.layer()
    const routes = isBehindParser ? Layer.mergeAll(parser, api, own) : Layer.mergeAll(api, own)
    const services = Tenure.layer({
      ...options,
      basePath: options.basePath ?? path,
      transport: nodeTransport,
    }).pipe(Layer.provide(memory()))
    const app = HttpRouter.serve(routes, { disableLogger: true, disableListenLog: true }).pipe(
      Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" })),
      Layer.provideMerge(services),
    )
    const runtime = ManagedRuntime.make(app)
    const tenure = await runtime.runPromise(Tenure.promises)
    const { address } = await runtime.runPromise(HttpServer.HttpServer)
    if (address._tag === "UnixPathAddress") throw new TypeError("not an address of TCP")
    return { url: `http://127.0.0.1:${address.port}`, tenure, close: () => runtime.dispose() }
  },
})
