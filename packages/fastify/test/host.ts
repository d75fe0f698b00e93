/** A Fastify app with the API as a plugin. */

import { createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { nodeTransport } from "@tenure/node-http"
import type { AdapterHarness } from "@tenure/testing/conformance"
import fastify from "fastify"
import { membershipPlugin } from "../src/index.ts"

export const host: AdapterHarness = {
  // The plugin is encapsulated, so that a host's parser runs neither before nor after it.
  start: async (options, { path }) => {
    const tenure = await createTenure({ ...options, stores: memory(), transport: nodeTransport })
    const app = fastify({ forceCloseConnections: true })
    app.setErrorHandler((_error, _request, reply) => reply.code(418).send())
    await app.register(membershipPlugin, { prefix: path, tenure })
    app.post("/own", async ({ body }) => body)
    app.get("/broken", async () => {
      throw new Error("the host's own")
    })
    const url = await app.listen({ port: 0, host: "127.0.0.1" })
    const close = async () => {
      await app.close()
      await tenure.close()
    }
    return { url, tenure, close }
  },
}
