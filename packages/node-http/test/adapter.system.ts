/**
 * Each server on `node:http` and Koa answers every operation, for every role. The quick suite tests one adapter alone.
 */

import { adapterSuite } from "@tenure/testing/conformance"
import { koa } from "./koa.ts"
import { alone, middleware } from "./servers.ts"

adapterSuite("node:http alone", alone)
adapterSuite("node:http as middleware", middleware)
adapterSuite("Koa", koa)
