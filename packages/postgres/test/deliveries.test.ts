import { nodeTransport } from "@tenure/node-http"
import { deliverySuite } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { inject } from "vitest"
import { postgres } from "../src/index.ts"
import { execute } from "./harness.ts"

const schema = "deliveries"

deliverySuite("postgres", {
  stores: () =>
    Layer.unwrap(
      Effect.map(execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`), () =>
        postgres({ url: inject("databaseUrl"), schema }),
      ),
    ),
  transport: nodeTransport,
})
