import * as Tenure from "@tenure/core/Tenure"
import { memory } from "@tenure/memory"
import { nodeTransport, serve } from "@tenure/node-http"
import { adapterSuite } from "@tenure/testing"

adapterSuite("node:http", {
  start: async (options) => {
    const tenure = await Tenure.make({ ...options, stores: memory(), transport: nodeTransport })
    const server = await serve(tenure)
    return {
      url: server.url,
      tenure,
      close: async () => {
        await server.close()
        await tenure.close()
      },
    }
  },
})
