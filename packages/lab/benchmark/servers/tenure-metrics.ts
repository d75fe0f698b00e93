/** Tenure that counts and times what it does. */

import { serve } from "@tenure/node-http"
import { makeFilled } from "./filled.ts"
import { announcePort } from "./server.ts"

const { url } = await serve(await makeFilled({ metrics: true }))
announcePort(url)
