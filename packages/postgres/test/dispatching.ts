/** A program that delivers until it is told to end. */

import { createTenure } from "@tenure/core"
import { nodeTransport } from "@tenure/node-http"
import { postgres } from "../src/index.ts"

const [url = "", schema = ""] = process.argv.slice(2)

const tenure = await createTenure({
  stores: postgres({ url, schema, maxConnections: 3 }),
  transport: nodeTransport,
  webhooks: { allowedNetworks: ["127.0.0.0/8"], timeout: "1 minute" },
})

process.once("SIGTERM", () => void tenure.close())
