/** Prints what hosts' libraries have to know about the tables, as the database's catalog has it. */

import prismaParser from "@prisma/prisma-schema-wasm"
import { format } from "oxfmt"

/** A column in the view. */
interface Column {
  readonly name: string
  readonly type: string
  readonly comment: string
}

/** A schema with Tenure's tables. */
export interface Catalog {
  /** The tables, without their partitions. */
  readonly tables: ReadonlyArray<string>
  /** The comment on the view `memberships_current`. */
  readonly comment: string
  readonly columns: ReadonlyArray<Column>
}

/** Returns one row, a `Catalog`, for the schema `$1`. */
export const readCatalog = `
  SELECT ARRAY(
           SELECT t.relname::text FROM pg_class t
           WHERE t.relnamespace = v.relnamespace AND t.relkind IN ('r', 'p') AND NOT t.relispartition
           ORDER BY t.relname COLLATE "C"
         ) AS tables,
         obj_description(v.oid, 'pg_class') AS comment,
         (SELECT json_agg(json_build_object(
                   'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
                   'comment', col_description(a.attrelid, a.attnum)
                 ) ORDER BY a.attnum)
          FROM pg_attribute a WHERE a.attrelid = v.oid AND a.attnum > 0) AS columns
  FROM pg_class v WHERE v.relnamespace = $1::regnamespace AND v.relname = 'memberships_current'
`

interface Names {
  readonly drizzle: string
  readonly typescript: string
  readonly prisma: string
}

const types: Readonly<Record<string, Names>> = {
  text: { drizzle: "text(NAME)", typescript: "string", prisma: "String" },
  bigint: {
    drizzle: 'bigint(NAME, { mode: "bigint" })',
    typescript: "string",
    prisma: "BigInt",
  },
  // Only the kept day, which may be missing.
  smallint: { drizzle: "smallint(NAME)", typescript: "number | null", prisma: "Int? @db.SmallInt" },
  integer: { drizzle: "integer(NAME)", typescript: "number", prisma: "Int" },
  boolean: { drizzle: "boolean(NAME)", typescript: "boolean", prisma: "Boolean" },
  // Only the metadata.
  jsonb: {
    drizzle: "jsonb(NAME).$type<Readonly<Record<string, string>>>()",
    typescript: "Readonly<Record<string, string>>",
    prisma: "Json",
  },
  "timestamp with time zone": {
    drizzle: "timestamp(NAME, { withTimezone: true })",
    typescript: "Date",
    prisma: "DateTime @db.Timestamptz(6)",
  },
}

const namesOf = ({ name, type }: Column): Names => {
  const names = types[type]
  if (names === undefined) throw new Error(`No library has a type for ${name}: ${type}`)
  return names
}

const camelCase = (name: string): string =>
  name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())

const printed = async (name: string, code: string): Promise<string> => {
  const { code: formatted, errors } = await format(name, code, { semi: false, printWidth: 100 })
  if (errors.length > 0) throw new Error(JSON.stringify(errors))
  return formatted
}

/** Prints `tenure/drizzle`. */
export const printDrizzle = ({ columns, comment }: Catalog): Promise<string> => {
  const fields = columns.map((column) => {
    const { drizzle, typescript } = namesOf(column)
    const type = drizzle.replace("NAME", JSON.stringify(column.name))
    const presence = typescript.endsWith("| null") ? "" : ".notNull()"
    return `/** ${column.comment} */\n${camelCase(column.name)}: ${type}${presence},`
  })
  return printed(
    "drizzle.ts",
    `/** Tenure for [Drizzle](https://orm.drizzle.team). Generated from the migrations: \`npm run generate\`. */

import { bigint, boolean, integer, jsonb, pgSchema, pgView, smallint, text, timestamp } from "drizzle-orm/pg-core"

/** Returns \`membershipsCurrent\` for a schema other than \`tenure\`. */
export const membershipsCurrentIn = (schema: string) => {
  // Drizzle has no name for this schema.
  const view = schema === "public" ? pgView : pgSchema(schema).view
  return view("memberships_current", {
    ${fields.join("\n")}
  }).existing()
}

/**
 * ${comment}
 *
 * @example
 * \`\`\`ts
 * import { and, eq } from "drizzle-orm"
 * import type { NodePgDatabase } from "drizzle-orm/node-postgres"
 * import { pgTable, text } from "drizzle-orm/pg-core"
 * import { membershipsCurrent } from "tenure/drizzle"
 *
 * const users = pgTable("users", { id: text().primaryKey(), name: text().notNull() })
 *
 * const findUser = (db: NodePgDatabase, projectId: string, userId: string) =>
 *   db
 *     .select({ name: users.name, endDate: membershipsCurrent.endDate })
 *     .from(users)
 *     .leftJoin(
 *       membershipsCurrent,
 *       and(eq(membershipsCurrent.projectId, projectId), eq(membershipsCurrent.userId, users.id)),
 *     )
 *     .where(eq(users.id, userId))
 * \`\`\`
 */
export const membershipsCurrent = membershipsCurrentIn("tenure")
`,
  )
}

/** Prints `tenure/kysely`. */
export const printKysely = ({ columns, comment }: Catalog): Promise<string> => {
  const fields = columns.map(
    (column) =>
      `/** ${column.comment} */\nreadonly ${column.name}: ReadOnly<${namesOf(column).typescript}>`,
  )
  return printed(
    "kysely.ts",
    `/** Tenure for [Kysely](https://kysely.dev). Generated from the migrations: \`npm run generate\`. */

import type { ColumnType } from "kysely"

type ReadOnly<A> = ColumnType<A, never, never>

/** ${comment} */
export interface MembershipsCurrent {
  ${fields.join("\n")}
}

/**
 * What hosts may join, by the name of the schema.
 *
 * @example
 * \`\`\`ts
 * import type { Kysely } from "kysely"
 * import type { Database } from "tenure/kysely"
 *
 * interface Tables extends Database {
 *   readonly users: { readonly id: string; readonly name: string }
 * }
 *
 * const findUser = (db: Kysely<Tables>, projectId: string, userId: string) =>
 *   db
 *     .selectFrom("users")
 *     .leftJoin("tenure.memberships_current as m", (join) =>
 *       join.onRef("m.user_id", "=", "users.id").on("m.project_id", "=", projectId),
 *     )
 *     .select(["users.name", "m.end_date"])
 *     .where("users.id", "=", userId)
 *     .executeTakeFirst()
 * \`\`\`
 */
export type Database<Schema extends string = "tenure"> = {
  readonly [Name in \`\${Schema}.memberships_current\`]: MembershipsCurrent
}
`,
  )
}

/** Prints `tenure/prisma`. */
export const printPrisma = ({ tables }: Catalog): Promise<string> =>
  printed(
    "prisma.ts",
    `/** Tenure for [Prisma](https://www.prisma.io). Generated from the migrations: \`npm run generate\`. */

const tables: ReadonlyArray<string> = ${JSON.stringify(tables)}

/**
 * Returns the tables of Tenure, for \`tables.external\` in \`prisma.config.ts\`: Prisma Migrate leaves them alone.
 *
 * @example
 * \`\`\`ts
 * import { externalTables } from "tenure/prisma"
 *
 * export default {
 *   schema: "prisma",
 *   experimental: { externalTables: true },
 *   tables: { external: externalTables() },
 * }
 * \`\`\`
 */
export const externalTables = (schema = "tenure"): Array<string> =>
  tables.map((table) => \`\${schema}.\${table}\`)
`,
  )

const options = { tabSize: 2, insertSpaces: true }

/** Prints the view for a Prisma schema. */
export const printPrismaSchema = ({ columns, comment }: Catalog): string => {
  const fields = columns.map((column) => {
    const [type, ...attributes] = namesOf(column).prisma.split(" ")
    const name = `@map("${column.name}")`
    return `/// ${column.comment}\n${[camelCase(column.name), type, name, ...attributes].join(" ")}`
  })
  const path = "file:///tenure.prisma"
  const text = `/// ${comment}
view MembershipsCurrent {
  ${fields.join("\n")}

  @@unique([projectId, userId])
  @@map("memberships_current")
  @@schema("tenure")
}
`
  const [[, formatted]] = JSON.parse(
    prismaParser.format(
      JSON.stringify([[path, text]]),
      JSON.stringify({ textDocument: { uri: path }, options }),
    ),
  )
  return formatted
}
