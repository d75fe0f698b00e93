/** Express apps with the API as middleware. */

import { createServer } from "node:http"
import { type Tenure, type TenureOptions, createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { nodeTransport } from "@tenure/node-http"
import { type AdapterHarness, listening } from "@tenure/testing/conformance"
import express5 from "express"
import type { Express } from "express"
import express4 from "express4"
import { membershipErrors, membershipMiddleware } from "../src/index.ts"

export const versions: ReadonlyArray<readonly [string, typeof express5]> = [
  ["Express 4", express4],
  ["Express 5", express5],
]

/** Starts a server with an Express app. */
export const start = async (options: TenureOptions, use: (app: Tenure) => Express) => {
  const tenure = await createTenure({ ...options, stores: memory(), transport: nodeTransport })
  return { ...(await listening(createServer(use(tenure)), tenure)), tenure }
}

/** Returns an app with an Express version. */
export const hostOf = (express: typeof express5): AdapterHarness => {
  const json = express.json()
  return {
    isSameBehindParser: true,
    start: (options, { isBehindParser, path }) =>
      start(options, (tenure) => {
        const app = express()
        if (isBehindParser) app.use(json)
        const mount = path === "" ? "/" : path
        app.use(mount, membershipMiddleware(tenure), membershipErrors(tenure))
        app.post("/own", json, (request, response) => void response.json(request.body))
        app.get("/broken", () => {
          throw new Error("the host's own")
        })
        app.use(((_error, _request, response, _next) => {
          response.sendStatus(418)
        }) satisfies express5.ErrorRequestHandler)
        return app
      }),
  }
}
