/**
 * The client of Prisma for a schema without models, as `prisma generate` writes it. The command itself
 * is not installed: it is large, and downloads a program.
 */

import type { PrismaPg } from "@prisma/adapter-pg"
import { getPrismaClient } from "@prisma/client/runtime/client"
import type { Prisma } from "../../src/within.ts"

interface Client extends Prisma {
  $transaction(
    work: (transaction: Prisma) => Promise<void>,
    limits: { readonly maxWait: number; readonly timeout: number },
  ): Promise<void>
  $disconnect(): Promise<void>
}

const compiler = "@prisma/client/runtime/query_compiler_fast_bg.postgresql"

/** The client. */
export const PrismaClient: new (options: { readonly adapter: PrismaPg }) => Client =
  getPrismaClient({
    previewFeatures: [],
    clientVersion: "7.10.0",
    engineVersion: "0edf323efd1d98336f3f0a68684b56f689b900d3",
    activeProvider: "postgresql",
    inlineSchema: 'datasource db {\n  provider = "postgresql"\n}\n',
    runtimeDataModel: { models: {}, enums: {}, types: {} },
    parameterizationSchema: { strings: [], graph: "AAAA" },
    compilerWasm: {
      getRuntime: () => import(`${compiler}.mjs`),
      getQueryCompilerWasmModule: async () => {
        const { wasm } = await import(`${compiler}.wasm-base64.mjs`)
        // The types of Node do not have it.
        const { compile } = Reflect.get(globalThis, "WebAssembly")
        return compile(Buffer.from(wasm, "base64"))
      },
      importName: "./query_compiler_fast_bg.js",
    },
  })
