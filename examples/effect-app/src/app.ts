/** The application: its own routes and Tenure's, on one server and one database client. */

import { ApiKeys, Memberships, tenureLayer } from "@tenure/core/effect"
import { tenureRouterLayer } from "@tenure/core/http-router"
import { nodeTransport } from "@tenure/node-http"
import { postgresLayer as stores } from "@tenure/postgres"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { HttpRouter, type HttpServer } from "effect/http"
import * as Layer from "effect/Layer"
import * as Courses from "./courses.ts"

/** Tenure, on the application's database client. */
const TenureLive = tenureLayer({ basePath: "/members", transport: nodeTransport }).pipe(
  Layer.provide(stores()),
)

/** Creates tables and the project. On the first start, also creates and prints an API key. */
const setUp = Effect.gen(function* () {
  const { createProject, grant } = yield* Memberships
  const apiKeys = yield* ApiKeys
  yield* Courses.createTables
  yield* createProject(Courses.projectId)
  if ((yield* apiKeys.list()).length > 0) return
  yield* grant({ projectId: Courses.projectId, userId: "1001", endDate: Date.UTC(2030, 0) })
  const { token } = yield* apiKeys.issue({ projects: [Courses.projectId] })
  // Printed to the terminal, because a log would keep it.
  yield* Console.log(`API key (shown only once): ${token}`)
})

/**
 * The application on a server.
 *
 * Tenure and the database client are provided outside `HttpRouter.serve`, so that all routes share
 * them: a transaction works on one client. The server is provided inside both, so that it listens
 * once they are built, and has answered the requests in flight before they are released.
 */
export const makeApp = <E>(server: Layer.Layer<HttpServer.HttpServer, E>) =>
  HttpRouter.serve(Layer.mergeAll(tenureRouterLayer(), Courses.routes)).pipe(
    Layer.provideMerge(server),
    Layer.provide(Layer.effectDiscard(setUp)),
    Layer.provideMerge(TenureLive),
  )
