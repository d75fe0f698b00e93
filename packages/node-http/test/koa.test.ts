/** Koa serves the API as middleware. */

import { adapterSuite } from "@tenure/testing/conformance"
import { koa } from "./koa.ts"

adapterSuite("Koa", { ...koa, testsOperations: false })
