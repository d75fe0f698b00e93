/** Options that are refused by name. */

import { createServer } from "node:http"
import { createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { expect, it } from "vitest"
import { toNodeHandler } from "../src/handler.ts"
import { orderRequests } from "../src/pipelining.ts"
import { serve } from "../src/server.ts"

it.each([
  ['{"prot":3000}', "prot"],
  ['{"port":"3000"}', "port"],
  ['{"port":65536}', "port"],
  ['{"host":""}', "host"],
  ['{"listener":{}}', "listener"],
  ['{"headersTimeout":"10s"}', "headersTimeout"],
  ['{"requestTimeout":0}', "requestTimeout"],
  ['{"idleTimeout":-1}', "idleTimeout"],
  ['{"shutdownTimeout":"soon"}', "shutdownTimeout"],
  ['{"shutdownTimeout":"25 days"}', "shutdownTimeout"],
  ["null", "options"],
])("a server with the options %s is refused by name", async (options, field) => {
  const tenure = await createTenure({ stores: memory() })
  await expect(serve(tenure, JSON.parse(options))).rejects.toMatchObject({
    _tag: "InvalidInput",
    field,
  })
  await tenure.close()
})

it("a header may take no longer than the whole request", async () => {
  const tenure = await createTenure({ stores: memory() })
  const server = await serve(tenure, { headersTimeout: "1 minute", requestTimeout: 1500.5 })
  await server.close()
  await tenure.close()
})

it("the wrong options of a listener, and of a server that is put in order, are refused by name", async () => {
  const tenure = await createTenure({ stores: memory() })
  expect(() => toNodeHandler(tenure, JSON.parse('{"authentication":1}'))).toThrow(
    expect.objectContaining({ _tag: "InvalidInput", field: "authentication" }),
  )
  expect(() => orderRequests(createServer(), JSON.parse('{"maxRefusals":0}'))).toThrow(
    expect.objectContaining({ _tag: "InvalidInput", field: "maxRefusals" }),
  )
  await tenure.close()
})

it("a missing await is a clear error", async () => {
  const tenure = createTenure({ stores: memory() })
  const message = "tenure is a promise: write `await createTenure(…)`"
  // @ts-expect-error: plain JavaScript does not notice.
  expect(() => toNodeHandler(tenure)).toThrow(new TypeError(message))
  // @ts-expect-error: plain JavaScript does not notice.
  await expect(serve(tenure)).rejects.toThrow(new TypeError(message))
  await (await tenure).close()
})
