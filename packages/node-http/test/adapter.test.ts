/** Servers on `node:http` serve the API, alone and as middleware. */

import { adapterSuite } from "@tenure/testing/conformance"
import { alone, middleware } from "./servers.ts"

// The core tests operations on the server alone: `contract.test.ts` compares all responses with the document.
adapterSuite("node:http alone", { ...alone, testsOperations: false })
adapterSuite("node:http as middleware", { ...middleware, testsOperations: false })
