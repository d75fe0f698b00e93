/**
 * The Prisma client for a schema, as `prisma generate` writes it. The command itself is not installed: it is large, and
 * downloads a program.
 */

import { PrismaPg } from "@prisma/adapter-pg"
import { getPrismaClient } from "@prisma/client/runtime/client"
import prismaParser from "@prisma/prisma-schema-wasm"
import type { Prisma } from "../../src/within.ts"

interface Client extends Prisma {
  $transaction(
    work: (transaction: Prisma) => Promise<void>,
    limits: { readonly maxWait: number; readonly timeout: number },
  ): Promise<void>
  $on(
    event: "query",
    listener: (query: { readonly query: string; readonly params: string }) => void,
  ): void
  $disconnect(): Promise<void>
}

interface Model {
  readonly name: string
}

const compiler = "@prisma/client/runtime/query_compiler_fast_bg.postgresql"

/** Returns the client class for a schema's files. Throws what is wrong with them. */
const prismaClientFor = (files: Readonly<Record<string, string>>) => {
  const prismaSchema = Object.entries(files)
  const { datamodel } = JSON.parse(
    prismaParser.get_dmmf(JSON.stringify({ prismaSchema, noColor: true })),
  )
  const models = datamodel.models.map(({ name, ...model }: Model) => [name, model])
  return getPrismaClient({
    previewFeatures: [],
    clientVersion: "7.10.0",
    engineVersion: "0edf323efd1d98336f3f0a68684b56f689b900d3",
    activeProvider: "postgresql",
    inlineSchema: Object.values(files).join("\n"),
    runtimeDataModel: { models: Object.fromEntries(models), enums: {}, types: {} },
    parameterizationSchema: { strings: [], graph: "AAAA" },
    compilerWasm: {
      getRuntime: () => import(`${compiler}.mjs`),
      getQueryCompilerWasmModule: async () => {
        const { wasm } = await import(`${compiler}.wasm-base64.mjs`)
        // Node's types do not have it.
        const { compile } = Reflect.get(globalThis, "WebAssembly")
        return compile(Buffer.from(wasm, "base64"))
      },
      importName: "./query_compiler_fast_bg.js",
    },
  })
}

const withoutModels = { "schema.prisma": 'datasource db {\n  provider = "postgresql"\n}\n' }

/** Connects a client to a database, with the models in a schema's files. */
export const connectPrisma = (
  url: string,
  files: Readonly<Record<string, string>> = withoutModels,
): Client => {
  const PrismaClient = prismaClientFor(files)
  return new PrismaClient({
    adapter: new PrismaPg({ connectionString: url }),
    log: [{ emit: "event", level: "query" }],
  })
}
