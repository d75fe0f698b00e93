import type { Connection } from "@tenure/core/Transactions"

/** What is used of a transaction of Knex. */
export interface Knex {
  readonly client: {
    acquireConnection(): PromiseLike<Connection>
    releaseConnection(connection: Connection): PromiseLike<unknown>
  }
}

/**
 * Converts a transaction of [Knex](https://knexjs.org) for `tenure.within`, with `pg` as its driver.
 *
 * @param transaction - the argument of the function that is passed to `knex.transaction`
 * @example
 * ```ts
 * import type { Knex } from "knex"
 * import type { Tenure } from "tenure"
 * import { fromKnex } from "tenure/postgres/within"
 *
 * const renew = (tenure: Tenure.Tenure, knex: Knex, userId: string, endDate: Date) =>
 *   knex.transaction(async (transaction) => {
 *     await transaction("payments").insert({ user_id: userId })
 *     const { memberships } = tenure.within(fromKnex(transaction))
 *     await memberships.extend({ projectId: "p1", userId, endDate })
 *   })
 * ```
 */
export const fromKnex = ({ client }: Knex): Connection => ({
  // Knex has placeholders of its own. The driver below it takes the statement as it is.
  query: async (statement, params) => {
    const connection = await client.acquireConnection()
    try {
      return await connection.query(statement, params)
    } finally {
      await client.releaseConnection(connection)
    }
  },
})
