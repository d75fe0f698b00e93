import type { Connection, Param } from "@tenure/core/Transactions"
import { rejectWith } from "./rejectWith.ts"

/** What is used of an entity manager, or a query runner, of TypeORM. */
export interface TypeOrm {
  query(statement: string, params: Array<Param>): Promise<ReadonlyArray<object>>
}

/**
 * Converts a transaction of [TypeORM](https://typeorm.io) for `tenure.within`.
 *
 * @param manager - the argument of the function that is passed to `dataSource.transaction`, or a query
 *   runner with an open transaction
 * @example
 * ```ts
 * import type { Tenure } from "tenure"
 * import { fromTypeOrm } from "tenure/postgres/within"
 * import type { DataSource } from "typeorm"
 *
 * const renew = (tenure: Tenure.Tenure, source: DataSource, userId: string, endDate: Date) =>
 *   source.transaction(async (manager) => {
 *     await manager.query("INSERT INTO payments (user_id) VALUES ($1)", [userId])
 *     const { memberships } = tenure.within(fromTypeOrm(manager))
 *     await memberships.extend({ projectId: "p1", userId, endDate })
 *   })
 * ```
 */
export const fromTypeOrm = (manager: TypeOrm): Connection => ({
  query: (statement, params) =>
    // Its own error has the parameters.
    rejectWith("driverError", async () => ({ rows: await manager.query(statement, params) })),
})
