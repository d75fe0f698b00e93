/** Databases in folders, as `file:` URLs name them. */

import { hasDatabase } from "@tenure/embedded"
import * as Effect from "effect/Effect"
import { type Failure, usage } from "../Failure.ts"

/** The path of the folder that a URL names, if it names one. */
export const pathOf = (url: string): string | undefined =>
  url.startsWith("file:") ? url.slice("file:".length) : undefined

/**
 * Fails if a URL names a folder without a database: opened, it would be a new one, and whatever is looked
 * for not there.
 */
export const requireDatabase = (url: string): Effect.Effect<void, Failure> => {
  const path = pathOf(url)
  return path === undefined || hasDatabase(path)
    ? Effect.void
    : Effect.fail(
        usage(`There is no database in the folder ${path}. tenure migrate makes one there.`),
      )
}
