import type { Connection, Param } from "@tenure/core/Transactions"

/** What is used of a transaction of postgres.js. */
export interface PostgresJs {
  unsafe(statement: string, params: Array<Param>): PromiseLike<ReadonlyArray<object>>
}

/**
 * Converts a transaction of [postgres.js](https://github.com/porsager/postgres) for `tenure.within`.
 *
 * @param sql - the argument of the function that is passed to `sql.begin`
 * @example
 * ```ts
 * import type { Sql } from "postgres"
 * import type { Tenure } from "tenure"
 * import { fromPostgresJs } from "tenure/postgres/within"
 *
 * const renew = (tenure: Tenure.Tenure, sql: Sql, userId: string, endDate: Date) =>
 *   sql.begin(async (transaction) => {
 *     await transaction`INSERT INTO payments (user_id) VALUES (${userId})`
 *     const { memberships } = tenure.within(fromPostgresJs(transaction))
 *     await memberships.extend({ projectId: "p1", userId, endDate })
 *   })
 * ```
 */
export const fromPostgresJs = (sql: PostgresJs): Connection => ({
  query: async (statement, params) => ({ rows: await sql.unsafe(statement, params) }),
})
