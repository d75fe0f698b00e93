/** What the statements share that make a change with an idempotency key once. */

import type { Once } from "@tenure/core/Once"
import { noProject } from "../audit/fragments.sql.ts"
import { text, texts } from "../connection/parameters.ts"

/** The parts of a statement that differ if its change has an idempotency key. */
export interface OncePart {
  /** A further condition on the change, after others. */
  readonly condition: string
  /**
   * Common table expressions, after others, which store the key for each row of `source`.
   *
   * @param answer - an expression for what the answer needs
   * @param project - an expression for the number of the project with which the key is forgotten
   */
  readonly keeping: (source: string, answer?: string, project?: string | number) => string
}

/** Whether the project of an answer `k`, if it has one, was not deleted. */
export const isKnown = (schema: string): string => `(
        k.project_number = ${noProject}
        OR EXISTS (SELECT FROM ${schema}.projects o WHERE o.number = k.project_number)
      )`

/**
 * The common table expression `left_over`, which deletes keys of deleted projects: others can have them. Who
 * stores a key counts its rows first, so that they are deleted by then.
 *
 * @param using - the tables besides the answers `k`
 * @param condition - which keys
 */
const clearing = (schema: string, using: string, condition: string): string => `,
  left_over AS (
    DELETE FROM ${schema}.answers k ${using}
    WHERE ${condition} AND k.moved_with = 0 AND NOT ${isKnown(schema)}
    RETURNING 1
  )`

const afterClearing = "(SELECT count(*) FROM left_over) l (deleted)"

/** The parts of a statement without an idempotency key. */
const always: OncePart = { condition: "", keeping: () => "" }

/**
 * The parts of a statement with an idempotency key. It changes nothing if the key is known, and is
 * repeated if another statement stores the key at the same time.
 *
 * @param first - the number of the first of the statement's parameters for the key
 */
const partOf = (schema: string, first: number): OncePart => {
  const owner = `$${first}::text`
  const key = `$${first + 1}::text`
  const fingerprint = `$${first + 2}::text`
  const given = `$${first + 3}::text`
  return {
    condition: `AND NOT EXISTS (
      SELECT FROM ${schema}.answers k
      WHERE k.owner = ${owner} AND k.key = ${key} AND ${isKnown(schema)}
    )`,
    keeping: (
      source,
      answer = "''",
      project = "project_number",
    ) => `${clearing(schema, "", `k.owner = ${owner} AND k.key = ${key}`)},
  kept AS (
    INSERT INTO ${schema}.answers (owner, key, project_number, fingerprint, answer)
    SELECT ${owner}, ${key}, ${project}, ${fingerprint}, coalesce(${given}, ${answer})
    FROM ${afterClearing}, ${source}
  )`,
  }
}

/** The two forms of a statement: for changes without and with an idempotency key. */
export interface Forms {
  readonly always: string
  readonly once: string
}

/**
 * Makes the forms of a statement.
 *
 * @param params - how many parameters both forms have
 */
export const forms = (
  schema: string,
  statement: (schema: string, once: OncePart) => string,
  params: number,
): Forms => ({
  always: statement(schema, always),
  once: statement(schema, partOf(schema, params + 1)),
})

/** The parts of a statement of many changes that differ if each change has an idempotency key. */
export interface OnceEachPart {
  /** The types of further parameters, each with one element for each change. */
  readonly types: string
  /** The columns that these are in the rows `a` of what is asked. */
  readonly columns: string
  /** The condition on what is asked. */
  readonly condition: string
  /**
   * Common table expressions, after others, which store the keys of the rows of `source`.
   *
   * @param answer - an expression for what the answers need
   */
  readonly keeping: (source: string, answer?: string) => string
}

/**
 * The parts of a statement of many changes with different idempotency keys. It makes those whose key is
 * unknown, and is repeated if another statement stores one of the keys at the same time.
 *
 * @param first - the number of the first of the statement's parameters for the keys
 */
const eachPartOf = (schema: string, first: number): OnceEachPart => ({
  types: [0, 1, 2, 3].map((n) => `, $${first + n}::text[]`).join(""),
  columns: ", owner, key, fingerprint, answer",
  condition: `WHERE NOT EXISTS (
      SELECT FROM ${schema}.answers k
      WHERE k.owner = a.owner AND k.key = a.key AND ${isKnown(schema)}
    )`,
  // In the same order in all statements, which avoids deadlocks.
  keeping: (
    source,
    answer = "''",
  ) => `${clearing(schema, "USING asked a", "k.owner = a.owner AND k.key = a.key")},
  kept AS (
    INSERT INTO ${schema}.answers (owner, key, project_number, fingerprint, answer)
    SELECT owner, key, project_number, fingerprint, coalesce(answer, ${answer})
    FROM ${afterClearing}, ${source}
    ORDER BY owner COLLATE "C", key COLLATE "C"
  )`,
})

/**
 * Makes the forms of a statement of many changes.
 *
 * @param params - how many parameters both forms have
 */
export const formsOfEach = (
  schema: string,
  statement: (schema: string, once: OnceEachPart) => string,
  params: number,
): Forms => ({
  always: statement(schema, { types: "", columns: "", condition: "", keeping: () => "" }),
  once: statement(schema, eachPartOf(schema, params + 1)),
})

const onceParams = ({ answer, fingerprint, key, owner }: Once) => [
  text(owner),
  text(key),
  text(fingerprint),
  text(answer),
]

/** Returns the form of a statement that a change needs, and all of its parameters. */
export const formOf = (
  statement: Forms,
  params: ReadonlyArray<unknown>,
  once: Once | undefined,
): readonly [statement: string, params: ReadonlyArray<unknown>] =>
  once === undefined
    ? [statement.always, params]
    : [statement.once, [...params, ...onceParams(once)]]

/** The same for many changes, of which all have an idempotency key or none has. */
export const formOfEach = (
  statement: Forms,
  params: ReadonlyArray<unknown>,
  changes: ReadonlyArray<{ readonly once?: Once | undefined }>,
): readonly [statement: string, params: ReadonlyArray<unknown>] => {
  const onces = changes.flatMap(({ once }) => once ?? [])
  return onces.length === 0
    ? [statement.always, params]
    : [
        statement.once,
        [
          ...params,
          texts(onces.map(({ owner }) => owner)),
          texts(onces.map(({ key }) => key)),
          texts(onces.map(({ fingerprint }) => fingerprint)),
          texts(onces.map(({ answer }) => answer)),
        ],
      ]
}
