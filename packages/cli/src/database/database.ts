/** Commands that need a database, not a server. Loaded only by them. */

import { PgClient } from "@effect/sql-pg/PgClient"
import { messageOf, open } from "@tenure/postgres/bin/upkeep"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { requireDatabase } from "../connection/folder.ts"
import { failed, Failure, usage } from "../Failure.ts"

/** A step failed. What is wrong with a connection may pass. */
export const explain = (fault: unknown): Failure => {
  if (fault instanceof Failure) return fault
  const message = messageOf(fault)
  return fault instanceof Error && "_tag" in fault && fault._tag === "InvalidInput"
    ? usage(message)
    : failed(message)
}

/** Opens a database until the scope closes, and creates it if it is in a folder. */
export const connectOrCreate = (url: string) =>
  open(url, "the URL of the database", () => import("@tenure/embedded")).pipe(
    Layer.build,
    Effect.map(Context.get(PgClient)),
    Effect.mapError(
      (fault) => new Failure({ kind: "unavailable", message: explain(fault).message }),
    ),
  )

/** Opens a database that exists, until the scope closes. */
export const connect = (url: string) => Effect.andThen(requireDatabase(url), connectOrCreate(url))
