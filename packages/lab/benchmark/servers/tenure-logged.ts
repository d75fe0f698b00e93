/** Tenure with the access log of the bundled server. */

import { serve } from "@tenure/node-http"
import * as Log from "../../../../examples/node-server/src/log.ts"
import { makeFilled } from "./filled.ts"
import { announcePort } from "./server.ts"

const { url } = await serve(await makeFilled({ onResponse: Log.access }))
announcePort(url)
