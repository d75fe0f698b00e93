/** The libraries with which hosts open transactions, each on the test server. */

import { EntitySchema, MikroORM } from "@mikro-orm/postgresql"
import type { Connection } from "@tenure/core/store"
import { sql } from "drizzle-orm"
import { drizzle as drizzleOnPg } from "drizzle-orm/node-postgres"
import { drizzle as drizzleOnPostgresJs } from "drizzle-orm/postgres-js"
import knexOn from "knex"
import { CamelCasePlugin, Kysely, PostgresDialect, sql as kyselySql } from "kysely"
import pg from "pg"
import postgres from "postgres"
import { DataSource } from "typeorm"
import {
  fromDrizzle,
  fromKnex,
  fromKysely,
  fromMikroOrm,
  fromPostgresJs,
  fromPrisma,
  fromTypeOrm,
} from "../../src/within.ts"
import { connectPrisma } from "./prisma-client.ts"

/** Runs a host statement in its transaction. */
export type Run = (statement: string) => Promise<unknown>

/** A library, connected to a database. */
export interface Library {
  /** Runs work in a transaction, which is rolled back if the work rejects. */
  readonly transaction: (
    work: (connection: Connection, run: Run) => Promise<void>,
  ) => Promise<unknown>
  /** Whether it rolls back after each statement that fails, even if Tenure has undone it. */
  readonly isStrict?: boolean
  /** A connection on which no transaction is open. */
  readonly outside: () => Connection
  readonly close: () => Promise<unknown>
}

const onPg = (url: string): Library => {
  const pool = new pg.Pool({ connectionString: url })
  return {
    transaction: async (work) => {
      const client = await pool.connect()
      try {
        await client.query("BEGIN")
        await work(client, (statement) => client.query(statement))
        await client.query("COMMIT")
      } catch (error) {
        await client.query("ROLLBACK")
        throw error
      } finally {
        client.release()
      }
    },
    outside: () => pool,
    close: () => pool.end(),
  }
}

const onPostgresJs = (url: string): Library => {
  const client = postgres(url, { transform: postgres.camel, onnotice: () => {} })
  return {
    transaction: (work) =>
      client.begin((transaction) =>
        work(fromPostgresJs(transaction), async (statement) => transaction.unsafe(statement)),
      ),
    isStrict: true,
    outside: () => fromPostgresJs(client),
    close: () => client.end(),
  }
}

const onDrizzle = (url: string): Library => {
  const pool = new pg.Pool({ connectionString: url })
  const db = drizzleOnPg(pool)
  return {
    transaction: (work) =>
      db.transaction((transaction) =>
        work(fromDrizzle(transaction), async (statement) =>
          transaction.execute(sql.raw(statement)),
        ),
      ),
    outside: () => fromDrizzle(db),
    close: () => pool.end(),
  }
}

const onDrizzleWithPostgresJs = (url: string): Library => {
  const client = postgres(url, { onnotice: () => {} })
  const db = drizzleOnPostgresJs(client)
  return {
    transaction: (work) =>
      db.transaction((transaction) =>
        work(fromDrizzle(transaction), async (statement) =>
          transaction.execute(sql.raw(statement)),
        ),
      ),
    isStrict: true,
    outside: () => fromDrizzle(db),
    close: () => client.end(),
  }
}

const onKysely = (url: string): Library => {
  const db = new Kysely<object>({
    dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) }),
    plugins: [new CamelCasePlugin()],
  })
  return {
    transaction: (work) =>
      db
        .transaction()
        .execute((transaction) =>
          work(fromKysely(transaction), (statement) =>
            kyselySql.raw(statement).execute(transaction),
          ),
        ),
    outside: () => fromKysely(db),
    close: () => db.destroy(),
  }
}

const onKnex = (url: string): Library => {
  const knex = knexOn({ client: "pg", connection: url })
  return {
    transaction: (work) =>
      knex.transaction((transaction) =>
        work(fromKnex(transaction), async (statement) => transaction.raw(statement)),
      ),
    outside: () => fromKnex(knex),
    close: () => knex.destroy(),
  }
}

const onTypeOrm = async (url: string): Promise<Library> => {
  const source = await new DataSource({ type: "postgres", url }).initialize()
  return {
    transaction: (work) =>
      source.transaction((manager) =>
        work(fromTypeOrm(manager), (statement) => manager.query(statement)),
      ),
    outside: () => fromTypeOrm(source.manager),
    close: () => source.destroy(),
  }
}

const onMikroOrm = async (url: string): Promise<Library> => {
  // It does not start without any entity.
  const entity = new EntitySchema({
    name: "Payment",
    properties: { id: { type: "int", primary: true } },
  })
  const orm = await MikroORM.init({ clientUrl: url, entities: [entity] })
  return {
    transaction: (work) =>
      orm.em
        .fork()
        .transactional((em) => work(fromMikroOrm(em), (statement) => em.execute(statement))),
    outside: () => fromMikroOrm(orm.em.fork()),
    close: () => orm.close(),
  }
}

const onPrisma = (url: string): Library => {
  const prisma = connectPrisma(url)
  const patient = { maxWait: 60_000, timeout: 60_000 }
  return {
    transaction: (work) =>
      prisma.$transaction(
        (transaction) =>
          work(fromPrisma(transaction), async (statement) =>
            transaction.$queryRawUnsafe(statement),
          ),
        patient,
      ),
    outside: () => fromPrisma(prisma),
    close: () => prisma.$disconnect(),
  }
}

/** Connects each library to a database. */
export const libraries: Readonly<Record<string, (url: string) => Library | Promise<Library>>> = {
  pg: onPg,
  "postgres.js": onPostgresJs,
  Drizzle: onDrizzle,
  "Drizzle on postgres.js": onDrizzleWithPostgresJs,
  Kysely: onKysely,
  Knex: onKnex,
  TypeORM: onTypeOrm,
  MikroORM: onMikroOrm,
  Prisma: onPrisma,
}
