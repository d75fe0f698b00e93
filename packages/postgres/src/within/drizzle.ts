import type { Connection, Param } from "@tenure/core/Transactions"
import { rejectWith } from "./rejectWith.ts"

type Rows = ReadonlyArray<object>

/** What is used of a transaction of Drizzle. */
export interface Drizzle {
  readonly _: {
    readonly session: {
      prepareQuery(
        query: { sql: string; params: Array<Param> },
        fields: undefined,
        name: undefined,
        isResponseInArrayMode: boolean,
      ): { execute(): PromiseLike<unknown> }
    }
  }
}

const isRows = (result: unknown): result is Rows => Array.isArray(result)

/** Each of the drivers below Drizzle has a result of its own: that of `pg`, or an array of rows. */
const resultOf = (result: unknown): { readonly rows: Rows } =>
  isRows(result) ? { rows: result } : { rows: [], ...Object(result) }

/**
 * Converts a transaction of [Drizzle](https://orm.drizzle.team) for `tenure.within`, with `pg` or with
 * postgres.js as its driver.
 *
 * @param transaction - the argument of the function that is passed to `db.transaction`
 * @example
 * ```ts
 * import { sql } from "drizzle-orm"
 * import type { NodePgDatabase } from "drizzle-orm/node-postgres"
 * import type { Tenure } from "tenure"
 * import { fromDrizzle } from "tenure/postgres/within"
 *
 * const renew = (tenure: Tenure.Tenure, db: NodePgDatabase, userId: string, endDate: Date) =>
 *   db.transaction(async (transaction) => {
 *     await transaction.execute(sql`INSERT INTO payments (user_id) VALUES (${userId})`)
 *     const { memberships } = tenure.within(fromDrizzle(transaction))
 *     await memberships.extend({ projectId: "p1", userId, endDate })
 *   })
 * ```
 */
export const fromDrizzle = ({ _: { session } }: Drizzle): Connection => ({
  query: (sql, params) =>
    // Its own error has the parameters in its message.
    rejectWith("cause", async () =>
      resultOf(await session.prepareQuery({ sql, params }, undefined, undefined, false).execute()),
    ),
})
