/** The list of migrations. */

import { migration0001 } from "./migration0001.ts"

/** A step to the next version of the tables. */
interface Migration {
  /** Returns the statements for a schema, whose name is quoted. */
  readonly statements: (schema: string) => ReadonlyArray<string>
  /** Whether versions of Tenure that do not know the migration cannot use the tables afterwards. */
  readonly isBreaking: boolean
}

/** All migrations; the first is number 1. Never change one that has been published: add another. */
export const migrations: ReadonlyArray<Migration> = [
  { statements: migration0001, isBreaking: true },
]
