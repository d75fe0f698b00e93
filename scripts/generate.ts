/**
 * Writes the uncommitted modules generated from other sources, if these are newer. `npm run setup` and every
 * repository command run it.
 */

import { createHash } from "node:crypto"
import { readFile, readdir, rename, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")

interface Generated {
  readonly path: string
  /** Source files and folders. */
  readonly sources: ReadonlyArray<string>
  readonly print: () => Promise<string>
}

/** The sources for the console page. */
const page = ["packages/console/page", "packages/console/scripts", "packages/client/src"]

const text = (value: unknown): string => JSON.stringify(value, null, 2)

/** Returns a digest for a migration's statements, ignoring comments and white space. */
const digestOf = (statements: ReadonlyArray<string>): string => {
  const bare = statements
    .join("\n")
    .replaceAll(/^\s*--.*$/gm, "")
    .replaceAll(/\s+/g, " ")
  return createHash("sha256").update(bare).digest("hex")
}

/** Statements end with a semicolon, and the next one begins at the left margin. */
const statementsIn = (sql: string): ReadonlyArray<string> =>
  sql
    .trim()
    .replace(/;$/, "")
    .split(/;\n\n(?=\S)/)

const migrations = "packages/postgres/migrations"

const modules: ReadonlyArray<Generated> = [
  {
    path: "packages/postgres/src/schema/migrations.generated.ts",
    sources: [migrations],
    print: async () => {
      const folders = (await readdir(join(root, migrations))).toSorted()
      const statements = folders.map(async (folder) => {
        const files = (await readdir(join(root, migrations, folder))).toSorted()
        const texts = files.map((file) => readFile(join(root, migrations, folder, file), "utf8"))
        return (await Promise.all(texts)).flatMap(statementsIn)
      })
      const all = await Promise.all(statements)
      return `/** The statements of each migration, for the schema \`tenure\`. */
export const migrations: ReadonlyArray<ReadonlyArray<string>> = ${text(all)}

/** A digest of each migration, which the tables keep: two versions of Tenure may have another migration with one number. */
export const digests: ReadonlyArray<string> = ${text(all.map(digestOf))}
`
    },
  },
  {
    path: "packages/core/src/openapi/groups.generated.ts",
    sources: ["packages/core/src", "scripts/http-api"],
    print: async () => {
      const { printHttpApi } = await import("./http-api/print.ts")
      const { resources } = await import("./http-api/resources.ts")
      return printHttpApi(resources)
    },
  },
  {
    path: "packages/core/src/openapi/document.generated.ts",
    sources: ["packages/core/src", "scripts/http-api"],
    print: async () => {
      const { openApi } = await import("../packages/core/src/openapi/document.ts")
      return `/** The OpenAPI document, printed so that servers need not load schemas to show it. */

import type { OpenApiDocument } from "./types.ts"

/** The OpenAPI document of the whole API, for a server that has it at its root. */
export const document: OpenApiDocument = ${text(openApi())}
`
    },
  },
  {
    path: "packages/console/src/files.generated.ts",
    sources: page,
    print: async () => {
      const { makeFiles } = await import("../packages/console/scripts/bundle.ts")
      const { files, html } = await makeFiles()
      const names = Object.keys(files)
        .map((name) => JSON.stringify(name))
        .join(" | ")
      return `/** The page, bundled so that hosts need not build it. */

import type { File } from "./responses.ts"

/** The files that the page loads. Their texts are not a part of their type, which declarations would repeat. */
export const files: Readonly<Record<${names}, File>> = ${text(files)}

/** The page itself. */
export const html: string = ${JSON.stringify(html)}
`
    },
  },
  {
    path: "packages/console/NOTICES.txt",
    sources: [...page, "scripts/notices.ts"],
    print: async () => {
      const { makeFiles } = await import("../packages/console/scripts/bundle.ts")
      return (await makeFiles()).notices
    },
  },
]

/** Returns when a folder's newest file was written, ignoring generated ones. */
const newestIn = async (path: string): Promise<number> => {
  if (path.endsWith(".generated.ts")) return 0
  const { mtimeMs } = await stat(path)
  const entries = await readdir(path).catch(() => [])
  const times = await Promise.all(entries.map((entry) => newestIn(join(path, entry))))
  return Math.max(entries.length === 0 ? mtimeMs : 0, ...times)
}

const isCurrent = async ({ path, sources }: Generated): Promise<boolean> => {
  const written = await stat(join(root, path)).catch(() => undefined)
  const own = await stat(import.meta.filename)
  const times = await Promise.all(sources.map((source) => newestIn(join(root, source))))
  return written !== undefined && written.mtimeMs > Math.max(own.mtimeMs, ...times)
}

const write = async ({ path, print }: Generated): Promise<void> => {
  const target = join(root, path)
  const beside = `${target}.${process.pid}`
  await writeFile(beside, await print())
  // Another command may read it now.
  await rename(beside, target)
}

// In this order, because some are made from others.
for (const one of modules) if (!(await isCurrent(one))) await write(one)
