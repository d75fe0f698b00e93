import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { json } from "node:stream/consumers"
import * as Tenure from "@tenure/core/Tenure"
import { memory } from "@tenure/memory"
import { nodeTransport, serve, toNodeHandler } from "@tenure/node-http"
import { adapterSuite, listening } from "@tenure/testing"

const make = (options: Tenure.Options) =>
  Tenure.make({ ...options, stores: memory(), transport: nodeTransport })

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

adapterSuite("node:http as middleware", {
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
})

adapterSuite("node:http alone", {
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
})
