/** Hono serves the API by fetch. */

import { adapterSuite } from "@tenure/testing/conformance"
import { hono } from "./hono.ts"

adapterSuite("Hono by fetch", { ...hono, testsOperations: false })
