/** `node:http` servers with the API. */

import { type IncomingMessage, type ServerResponse, createServer } from "node:http"
import { json } from "node:stream/consumers"
import { type TenureOptions, createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { type AdapterHarness, listening } from "@tenure/testing/conformance"
import { toNodeHandler } from "../src/handler.ts"
import { serve } from "../src/server.ts"
import { nodeTransport } from "../src/transport.ts"

const make = (options: TenureOptions) =>
  createTenure({ ...options, stores: memory(), transport: nodeTransport })

/** A host without a framework. */
const host = async (
  request: IncomingMessage & { body?: unknown },
  response: ServerResponse,
): Promise<void> => {
  if (request.method === "POST" && request.url === "/own") {
    const body = request.body ?? (await json(request))
    return void response.setHeader("content-type", "application/json").end(JSON.stringify(body))
  }
  if (request.url === "/broken") throw new Error("the host's own")
  response.writeHead(404).end()
}

/** A `node:http` host with the API as middleware. */
export const middleware: AdapterHarness = {
  start: async (options, { isBehindParser, path }) => {
    const tenure = await make({ ...options, basePath: options.basePath ?? path })
    const api = toNodeHandler(tenure)
    return listening(
      createServer(async (request: IncomingMessage & { body?: unknown }, response) => {
        const isJson = request.headers["content-type"] === "application/json"
        if (isBehindParser && isJson) request.body = await json(request)
        api(request, response, () => {
          host(request, response).catch(() => response.writeHead(418).end())
        })
      }),
      tenure,
    )
  },
}

/** A server with the API alone. */
export const alone: AdapterHarness = {
  isStandalone: true,
  start: async (options) => {
    const tenure = await make(options)
    const server = await serve(tenure)
    const close = async () => {
      await server.close()
      await tenure.close()
    }
    return { url: server.url, tenure, close }
  },
}
