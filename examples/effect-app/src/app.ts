/** The application: its own routes and Tenure's, on one server and one client of the database. */

import { ApiKeys } from "@tenure/core/ApiKeys"
import * as HttpRoutes from "@tenure/core/HttpRoutes"
import { Memberships } from "@tenure/core/Memberships"
import * as Tenure from "@tenure/core/Tenure"
import { nodeTransport } from "@tenure/node-http"
import { layer as stores } from "@tenure/postgres"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { HttpRouter, type HttpServer } from "effect/http"
import * as Layer from "effect/Layer"
import * as Courses from "./courses.ts"

/** Tenure, on the client that the application has. */
const TenureLive = Tenure.layer({ basePath: "/members", transport: nodeTransport }).pipe(
  Layer.provide(stores()),
)

/** Creates what has to be there, and on the first start an API key, which is shown once. */
const setUp = Effect.gen(function* () {
  const { createProject, grant } = yield* Memberships
  const apiKeys = yield* ApiKeys
  yield* Courses.createTables
  yield* createProject(Courses.projectId)
  if ((yield* apiKeys.list()).length > 0) return
  yield* grant({ projectId: Courses.projectId, userId: "1001", endDate: Date.UTC(2030, 0) })
  const { token } = yield* apiKeys.issue({ projects: [Courses.projectId] })
  // To the terminal, and not into a log, where it would stay.
  yield* Console.log(`An API key, which is not shown again: ${token}`)
})

/**
 * The application on a server. Tenure and the client of the database stand outside of `serve`, for it
 * to share them: a transaction is one on one client. The server stands inside of both: it listens
 * when they are there, and has answered what is in flight before they go.
 */
export const makeApp = <E>(server: Layer.Layer<HttpServer.HttpServer, E>) =>
  HttpRouter.serve(Layer.mergeAll(HttpRoutes.layer(), Courses.routes)).pipe(
    Layer.provideMerge(server),
    Layer.provide(Layer.effectDiscard(setUp)),
    Layer.provideMerge(TenureLive),
  )
