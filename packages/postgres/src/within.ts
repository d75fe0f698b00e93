import { type Connection, NoTransaction, type Param } from "@tenure/core/store"
import * as Predicate from "effect/Predicate"

/**
 * Runs a statement. If it rejects, then with the error of the driver, which is a property of the error
 * of the library.
 */
const rejectWith = async <A>(property: string, run: () => Promise<A>): Promise<A> => {
  try {
    return await run()
  } catch (error) {
    throw Predicate.hasProperty(error, property) ? error[property] : error
  }
}

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
    // Its own error has the parameters in its message.
    rejectWith("cause", async () =>
      resultOf(await session.prepareQuery({ sql, params }, undefined, undefined, false).execute()),
    ),
})

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

/** What is used of a transaction of Prisma. */
export interface Prisma {
  $queryRawUnsafe(statement: string, ...params: Array<Param>): PromiseLike<unknown>
}

const prismaIsRows = (result: unknown): result is ReadonlyArray<object> => Array.isArray(result)

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
    // Its own error has the parameters.
    rejectWith("driverError", async () => ({ rows: await manager.query(statement, params) })),
})
