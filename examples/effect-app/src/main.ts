/** Runs the application until SIGTERM or SIGINT. */

import { createServer } from "node:http"
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import * as Config from "effect/Config"
import * as Layer from "effect/Layer"
import { makeApp } from "./app.ts"

const Server = NodeHttpServer.layerConfig(createServer, {
  host: Config.succeed("127.0.0.1"),
  port: Config.Port("PORT").pipe(Config.withDefault(3000)),
})

const Database = PgClient.layerConfig({ url: Config.Redacted("DATABASE_URL") })

makeApp(Server).pipe(Layer.provide(Database), Layer.launch, NodeRuntime.runMain)
