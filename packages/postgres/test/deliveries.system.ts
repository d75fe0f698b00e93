/** Deliveries from stores in PostgreSQL to real receivers. The quick suite has these in memory alone. */

import { nodeTransport } from "@tenure/node-http"
import { deliverySuite } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { inject } from "vitest"
import { postgres } from "../src/index.ts"
import { emptied } from "./harness.ts"

const schema = "deliveries"

const empty = emptied(schema)

deliverySuite("postgres", {
  stores: () =>
    Layer.unwrap(Effect.map(empty, () => postgres({ url: inject("databaseUrl"), schema }))),
  transport: nodeTransport,
})
