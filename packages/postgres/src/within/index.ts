/**
 * The open transactions of libraries for PostgreSQL, as `tenure.within` takes them. A client of `pg` needs
 * no function.
 */

export { fromDrizzle } from "./drizzle.ts"
export { fromKnex } from "./knex.ts"
export { fromKysely } from "./kysely.ts"
export { fromMikroOrm } from "./mikroOrm.ts"
export { fromPostgresJs } from "./postgresJs.ts"
export { fromPrisma, type Prisma } from "./prisma.ts"
export { fromTypeOrm } from "./typeOrm.ts"
