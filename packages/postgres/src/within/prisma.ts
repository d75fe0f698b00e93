import type { Connection, Param } from "@tenure/core/Transactions"
import * as Predicate from "effect/Predicate"

/** What is used of a transaction of Prisma. */
export interface Prisma {
  $queryRawUnsafe(statement: string, ...params: Array<Param>): PromiseLike<unknown>
}

const isRows = (result: unknown): result is ReadonlyArray<object> => Array.isArray(result)

/** Returns the error with the SQLSTATE as its `code`, which Prisma keeps deep inside of its own. */
const withSqlState = (error: unknown): unknown => {
  if (!Predicate.hasProperty(error, "meta")) return error
  if (!Predicate.hasProperty(error.meta, "driverAdapterError")) return error
  const { driverAdapterError: failed } = error.meta
  if (!Predicate.hasProperty(failed, "cause")) return error
  if (!Predicate.hasProperty(failed.cause, "originalCode")) return error
  const code = failed.cause.originalCode
  return Object.assign(new Error("A statement failed", { cause: error }), { code })
}

/**
 * Converts an interactive transaction of [Prisma](https://www.prisma.io) 7 for `tenure.within`, with
 * `@prisma/adapter-pg`.
 *
 * @param transaction - the argument of the function that is passed to `prisma.$transaction`
 * @example
 * ```ts
 * import type { Tenure } from "tenure"
 * import { fromPrisma, type Prisma } from "tenure/postgres/within"
 *
 * // In your program, the client that Prisma generates.
 * interface PrismaClient {
 *   $transaction<A>(work: (transaction: Prisma) => Promise<A>): Promise<A>
 * }
 *
 * const renew = (tenure: Tenure.Tenure, prisma: PrismaClient, userId: string, endDate: Date) =>
 *   prisma.$transaction(async (transaction) => {
 *     const { memberships } = tenure.within(fromPrisma(transaction))
 *     await memberships.extend({ projectId: "p1", userId, endDate })
 *   })
 * ```
 */
export const fromPrisma = (transaction: Prisma): Connection => ({
  query: async (statement, params) => {
    try {
      const rows = await transaction.$queryRawUnsafe(statement, ...params)
      return { rows: isRows(rows) ? rows : [] }
    } catch (error) {
      throw withSqlState(error)
    }
  },
})
