/** The declarations for Drizzle, Kysely and Prisma are what the migrations create. */

import { fileURLToPath } from "node:url"
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { expect } from "vitest"
import { migrate } from "../../src/index.ts"
import { clientLayer, execute, sql } from "../harness.ts"
import {
  type Catalog,
  printDrizzle,
  printKysely,
  printPrisma,
  printPrismaSchema,
  readCatalog,
} from "./printer.ts"

const schema = "catalog"

it.live("the declarations of Drizzle, Kysely and Prisma are what the migrations create", () =>
  Effect.gen(function* () {
    yield* execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
    yield* migrate({ schema })
    const [catalog] = yield* sql<Catalog>(readCatalog, [schema])
    if (catalog === undefined) return yield* Effect.die("There is no view")
    const files = {
      "src/drizzle.ts": yield* Effect.promise(() => printDrizzle(catalog)),
      "src/kysely.ts": yield* Effect.promise(() => printKysely(catalog)),
      "src/prisma.ts": yield* Effect.promise(() => printPrisma(catalog)),
      "../tenure/tenure.prisma": printPrismaSchema(catalog),
    }
    for (const [path, text] of Object.entries(files)) {
      const file = fileURLToPath(new URL(`../../${path}`, import.meta.url))
      yield* Effect.promise(() => expect(text).toMatchFileSnapshot(file))
    }
  }).pipe(Effect.provide(clientLayer())),
)
