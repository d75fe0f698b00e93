/** Commands that need a database, not a server. Loaded only by them. */

import { PgClient } from "@effect/sql-pg/PgClient"
import * as Databases from "@tenure/postgres/bin/databases"
import { messageOf, open } from "@tenure/postgres/bin/upkeep"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { isSqlError } from "effect/sql/SqlError"
import { requireDatabase } from "../connection/folder.ts"
import { failed, Failure, usage } from "../Failure.ts"

const unavailable = (message: string): Failure => new Failure({ kind: "unavailable", message })

/** A step failed. What is wrong with a connection, which the first statement opens, may pass. */
export const explain = (fault: unknown): Failure => {
  if (fault instanceof Failure) return fault
  const message = messageOf(fault)
  if (isSqlError(fault) && fault.reason._tag === "ConnectionError") return unavailable(message)
  return fault instanceof Error && "_tag" in fault && fault._tag === "InvalidInput"
    ? usage(message)
    : failed(message)
}

const requireOne = (url: string) =>
  Databases.pathOf(url) === undefined
    ? Effect.void
    : Effect.fail(usage("This takes one database: give the URL of one of those in the file."))

/** Opens a database until the scope closes, and creates it if it is in a folder. */
export const connectOrCreate = Effect.fnUntraced(function* (url: string) {
  yield* requireOne(url)
  return yield* open(url, "the URL of the database", () => import("@tenure/embedded")).pipe(
    Layer.build,
    Effect.map(Context.get(PgClient)),
    Effect.mapError((fault) => {
      const failure = explain(fault)
      return failure.kind === "usage" ? failure : unavailable(failure.message)
    }),
  )
})

/** Opens a database that exists, until the scope closes. */
export const connect = (url: string) => Effect.andThen(requireDatabase(url), connectOrCreate(url))
