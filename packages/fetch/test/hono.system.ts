/** Hono answers every operation by fetch for every role; the quick suite tests one adapter alone. */

import { adapterSuite } from "@tenure/testing/conformance"
import { hono } from "./hono.ts"

adapterSuite("Hono by fetch", hono)
