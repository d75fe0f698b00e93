/** A program that delivers until it is told to end. */

import * as Tenure from "@tenure/core/Tenure"
import { nodeTransport } from "@tenure/node-http"
import { postgres } from "@tenure/postgres"

const [url = "", schema = ""] = process.argv.slice(2)

const tenure = await Tenure.make({
  stores: postgres({ url, schema, maxConnections: 3 }),
  transport: nodeTransport,
  webhooks: { allowedNetworks: ["127.0.0.0/8"], timeout: "1 minute" },
})

process.once("SIGTERM", () => void tenure.close())
