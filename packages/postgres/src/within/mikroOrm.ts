import { type Connection, NoTransaction } from "@tenure/core/Transactions"
import { fromKysely, type Kysely } from "./kysely.ts"

/** What is used of an entity manager of MikroORM. */
export interface MikroOrm {
  getTransactionContext(): object | undefined
}

const isKysely = (transaction: object): transaction is Kysely =>
  "withoutPlugins" in transaction && typeof transaction.withoutPlugins === "function"

/**
 * Converts a transaction of [MikroORM](https://mikro-orm.io) 7 for `tenure.within`. Throws `NoTransaction`
 * if none is open.
 *
 * @param em - the argument of the function that is passed to `em.transactional`
 * @example
 * ```ts
 * import type { EntityManager } from "@mikro-orm/postgresql"
 * import type { Tenure } from "tenure"
 * import { fromMikroOrm } from "tenure/postgres/within"
 *
 * const renew = (tenure: Tenure.Tenure, em: EntityManager, userId: string, endDate: Date) =>
 *   em.transactional(async (transaction) => {
 *     await transaction.execute("INSERT INTO payments (user_id) VALUES (?)", [userId])
 *     const { memberships } = tenure.within(fromMikroOrm(transaction))
 *     await memberships.extend({ projectId: "p1", userId, endDate })
 *   })
 * ```
 */
export const fromMikroOrm = (em: MikroOrm): Connection => {
  const transaction = em.getTransactionContext()
  if (transaction === undefined || !isKysely(transaction)) throw new NoTransaction()
  return fromKysely(transaction)
}
