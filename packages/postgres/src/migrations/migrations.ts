/** The list of migrations. */

import { migration0001 } from "./migration0001.ts"

/** Returns the statements of a migration for a schema, whose name is quoted. */
type Migration = (schema: string) => ReadonlyArray<string>

/** All migrations; the first is number 1. Never change one that has been published: add another. */
export const migrations: ReadonlyArray<Migration> = [migration0001]
