/** Fastify answers every operation for every role; the quick suite tests one adapter alone. */

import { adapterSuite } from "@tenure/testing/conformance"
import { host } from "./host.ts"

adapterSuite("Fastify 5", host)
