/** Tenure on PostgreSQL, with as many API keys as it is told. */

import { serve } from "@tenure/node-http"
import { postgres } from "@tenure/postgres"
import { makeFilled } from "./filled.ts"
import { announcePort } from "./server.ts"
import { tokensOf } from "./workload.ts"

const [, , databaseUrl = "", schema, keys] = process.argv

const { url } = await serve(
  await makeFilled({
    stores: postgres({ url: databaseUrl, schema }),
    keys: tokensOf(Number(keys)),
    webhooks: { allowedNetworks: ["127.0.0.0/8"] },
  }),
)
announcePort(url)
