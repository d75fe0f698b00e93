import { storeSuite } from "@tenure/testing"
import * as Effect from "effect/Effect"
import { beforeAll } from "vitest"
import { execute, harnessOn } from "./harness.ts"

// The database of `DATABASE_URL` may still have the schema of an earlier run.
beforeAll(() => Effect.runPromise(execute("DROP SCHEMA IF EXISTS conformance CASCADE")))

storeSuite("postgres", harnessOn("conformance"))
