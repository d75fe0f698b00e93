import type { Connection, Param } from "@tenure/core/Transactions"

/** A statement as Kysely runs it, without a tree of its parts. */
interface RawQuery {
  readonly sql: string
  readonly parameters: ReadonlyArray<Param>
  readonly query: {
    readonly kind: "RawNode"
    readonly sqlFragments: ReadonlyArray<string>
    readonly parameters: ReadonlyArray<never>
  }
  readonly queryId: { readonly queryId: string }
}

interface Executor {
  executeQuery(query: RawQuery): PromiseLike<{ readonly rows: ReadonlyArray<unknown> }>
}

/** What is used of a transaction of Kysely. */
export interface Kysely {
  withoutPlugins(): Executor
}

const rawQuery = (sql: string, parameters: ReadonlyArray<Param>): RawQuery => ({
  sql,
  parameters,
  query: { kind: "RawNode", sqlFragments: [sql], parameters: [] },
  queryId: { queryId: crypto.randomUUID() },
})

/**
 * Converts a transaction of [Kysely](https://kysely.dev) for `tenure.within`.
 *
 * @param transaction - the argument of the function that is passed to `db.transaction().execute`
 * @example
 * ```ts
 * import type { Kysely } from "kysely"
 * import type { Tenure } from "tenure"
 * import { fromKysely } from "tenure/postgres/within"
 *
 * interface Tables {
 *   readonly payments: { readonly user_id: string }
 * }
 *
 * const renew = (tenure: Tenure.Tenure, db: Kysely<Tables>, userId: string, endDate: Date) =>
 *   db.transaction().execute(async (transaction) => {
 *     await transaction.insertInto("payments").values({ user_id: userId }).execute()
 *     const { memberships } = tenure.within(fromKysely(transaction))
 *     await memberships.extend({ projectId: "p1", userId, endDate })
 *   })
 * ```
 */
export const fromKysely = (transaction: Kysely): Connection => {
  const executor = transaction.withoutPlugins()
  return {
    query: async (statement, params) => {
      const { rows } = await executor.executeQuery(rawQuery(statement, params))
      return { rows: rows.map(Object) }
    },
  }
}
