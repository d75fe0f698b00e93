/** The database in a folder, which only those who have one install. */

import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import { usage } from "../Failure.ts"

const engine = "@electric-sql/pglite"

const isAbsent = (fault: unknown): boolean =>
  Predicate.hasProperty(fault, "code") &&
  fault.code === "ERR_MODULE_NOT_FOUND" &&
  String(fault).includes(engine)

/** Loads `@tenure/embedded`. Fails if what it needs is not installed. */
export const loadEmbedded = Effect.tryPromise({
  try: () => import("@tenure/embedded"),
  catch: (fault) =>
    usage(isAbsent(fault) ? `A folder needs a package: npm install ${engine}` : String(fault)),
})
