/** Tenure with the access log of the bundled server. */

import { serve } from "@tenure/node-http"
import { logAccess } from "@tenure/server/log"
import { makeFilled } from "./filled.ts"
import { announcePort } from "./server.ts"

const { url } = await serve(await makeFilled({ onResponse: logAccess }))
announcePort(url)
