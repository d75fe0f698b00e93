/** Converts transactions from a host's library for `tenure.within`. */

import { type Connection, NoTransaction, type Param } from "@tenure/core/store"
import * as Predicate from "effect/Predicate"

/** Runs a statement. If the library wraps the driver's error in its own, rejects with the driver's. */
const rejectWith = async <A>(property: string, run: () => Promise<A>): Promise<A> => {
  try {
    return await run()
  } catch (error) {
    throw Predicate.hasProperty(error, property) ? error[property] : error
  }
}

type Rows = ReadonlyArray<object>

/** A Drizzle transaction, as far as it is used here. */
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

/** The driver's result, which Drizzle passes on: an object from `pg`, or an array of rows. */
const resultOf = (result: unknown): { readonly rows: Rows } =>
  isRows(result) ? { rows: result } : { rows: [], ...Object(result) }

/**
 * Converts a [Drizzle](https://orm.drizzle.team) transaction for `tenure.within`, with `pg` or with
 * postgres.js as its driver.
 *
 * @param transaction - what `db.transaction` passes to its callback
 * @example
 * ```ts
 * import type { NodePgDatabase } from "drizzle-orm/node-postgres"
 * import type { Tenure } from "tenure"
 * import { fromDrizzle } from "tenure/within"
 * import { sql } from "drizzle-orm"
 *
 * const renew = (tenure: Tenure, db: NodePgDatabase, userId: string, endDate: Date) =>
 *   db.transaction(async (transaction) => {
 *     await transaction.execute(sql`INSERT INTO payments (user_id) VALUES (${userId})`)
 *     const { memberships } = tenure.within(fromDrizzle(transaction))
 *     await memberships.extend({ projectId: "p1", userId, endDate })
 *   })
 * ```
 */
export const fromDrizzle = ({ _: { session } }: Drizzle): Connection => ({
  query: (sql, params) =>
    // Drizzle's error has the parameters in its message.
    rejectWith("cause", async () =>
      resultOf(await session.prepareQuery({ sql, params }, undefined, undefined, false).execute()),
    ),
})

/** A Knex transaction, as far as it is used here. */
export interface Knex {
  readonly client: {
    acquireConnection(): PromiseLike<Connection>
    releaseConnection(connection: Connection): PromiseLike<unknown>
  }
}

/**
 * Converts a [Knex](https://knexjs.org) transaction for `tenure.within`, with `pg` as its driver.
 *
 * @param transaction - what `knex.transaction` passes to its callback
 * @example
 * ```ts
 * import type { Knex } from "knex"
 * import type { Tenure } from "tenure"
 * import { fromKnex } from "tenure/within"
 *
 * const renew = (tenure: Tenure, knex: Knex, userId: string, endDate: Date) =>
 *   knex.transaction(async (transaction) => {
 *     await transaction("payments").insert({ user_id: userId })
 *     const { memberships } = tenure.within(fromKnex(transaction))
 *     await memberships.extend({ projectId: "p1", userId, endDate })
 *   })
 * ```
 */
export const fromKnex = ({ client }: Knex): Connection => ({
  // Knex has its own placeholders. Its driver takes the statement as it is.
  query: async (statement, params) => {
    const connection = await client.acquireConnection()
    try {
      return await connection.query(statement, params)
    } finally {
      await client.releaseConnection(connection)
    }
  },
})

/** A raw statement, without a syntax tree, as Kysely runs it. */
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

/** A Kysely transaction, as far as it is used here. */
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
 * Converts a [Kysely](https://kysely.dev) transaction for `tenure.within`.
 *
 * @param transaction - what `db.transaction().execute` passes to its callback
 * @example
 * ```ts
 * import type { Kysely } from "kysely"
 * import type { Tenure } from "tenure"
 * import { fromKysely } from "tenure/within"
 *
 * interface Tables {
 *   readonly payments: { readonly user_id: string }
 * }
 *
 * const renew = (tenure: Tenure, db: Kysely<Tables>, userId: string, endDate: Date) =>
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

/** A MikroORM entity manager, as far as it is used here. */
export interface MikroOrm {
  getTransactionContext(): object | undefined
}

const isKysely = (transaction: object): transaction is Kysely =>
  "withoutPlugins" in transaction && typeof transaction.withoutPlugins === "function"

/**
 * Converts a [MikroORM](https://mikro-orm.io) 7 transaction for `tenure.within`. Throws `NoTransaction` if
 * none is open.
 *
 * @param em - what `em.transactional` passes to its callback
 * @example
 * ```ts
 * import type { EntityManager } from "@mikro-orm/postgresql"
 * import type { Tenure } from "tenure"
 * import { fromMikroOrm } from "tenure/within"
 *
 * const renew = (tenure: Tenure, em: EntityManager, userId: string, endDate: Date) =>
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

/** A postgres.js transaction, as far as it is used here. */
export interface PostgresJs {
  unsafe(statement: string, params: Array<Param>): PromiseLike<ReadonlyArray<object>>
}

/**
 * Converts a [postgres.js](https://github.com/porsager/postgres) transaction for `tenure.within`.
 *
 * @param sql - what `sql.begin` passes to its callback
 * @example
 * ```ts
 * import type { Sql } from "postgres"
 * import type { Tenure } from "tenure"
 * import { fromPostgresJs } from "tenure/within"
 *
 * const renew = (tenure: Tenure, sql: Sql, userId: string, endDate: Date) =>
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

/** A Prisma transaction, as far as it is used here. */
export interface Prisma {
  $queryRawUnsafe(statement: string, ...params: Array<Param>): PromiseLike<unknown>
}

const prismaIsRows = (result: unknown): result is ReadonlyArray<object> => Array.isArray(result)

/** Returns an error with the SQLSTATE as its `code`, which Prisma keeps deep inside its own error. */
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
 * Converts an interactive [Prisma](https://www.prisma.io) 7 transaction for `tenure.within`, with
 * `@prisma/adapter-pg`.
 *
 * @param transaction - what `prisma.$transaction` passes to its callback
 * @example
 * ```ts
 * import type { Tenure } from "tenure"
 * import { type Prisma, fromPrisma } from "tenure/within"
 *
 * // In your program, the client that Prisma generates.
 * interface PrismaClient {
 *   $transaction<A>(work: (transaction: Prisma) => Promise<A>): Promise<A>
 * }
 *
 * const renew = (tenure: Tenure, prisma: PrismaClient, userId: string, endDate: Date) =>
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
      return { rows: prismaIsRows(rows) ? rows : [] }
    } catch (error) {
      throw withSqlState(error)
    }
  },
})

/** A TypeORM entity manager or query runner, as far as it is used here. */
export interface TypeOrm {
  query(statement: string, params: Array<Param>): Promise<ReadonlyArray<object>>
}

/**
 * Converts a [TypeORM](https://typeorm.io) transaction for `tenure.within`.
 *
 * @param manager - what `dataSource.transaction` passes to its callback, or a query runner with an open
 *   transaction
 * @example
 * ```ts
 * import type { DataSource } from "typeorm"
 * import type { Tenure } from "tenure"
 * import { fromTypeOrm } from "tenure/within"
 *
 * const renew = (tenure: Tenure, source: DataSource, userId: string, endDate: Date) =>
 *   source.transaction(async (manager) => {
 *     await manager.query("INSERT INTO payments (user_id) VALUES ($1)", [userId])
 *     const { memberships } = tenure.within(fromTypeOrm(manager))
 *     await memberships.extend({ projectId: "p1", userId, endDate })
 *   })
 * ```
 */
export const fromTypeOrm = (manager: TypeOrm): Connection => ({
  query: (statement, params) =>
    // TypeORM's error has the parameters.
    rejectWith("driverError", async () => ({ rows: await manager.query(statement, params) })),
})
