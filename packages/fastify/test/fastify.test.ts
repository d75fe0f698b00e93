import * as Tenure from "@tenure/core/Tenure"
import { membershipPlugin } from "@tenure/fastify"
import { memory } from "@tenure/memory"
import { nodeTransport } from "@tenure/node-http"
import { adapterSuite } from "@tenure/testing"
import fastify from "fastify"

adapterSuite("Fastify 5", {
  // The plugin is in an encapsulation of its own: a parser of the host's comes neither before nor after.
  start: async (options, { path }) => {
    const tenure = await Tenure.make({ ...options, stores: memory(), transport: nodeTransport })
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
})
