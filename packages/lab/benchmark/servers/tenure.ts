/** Tenure by itself: in memory, with authentication and all three limits. */

import { serve } from "@tenure/node-http"
import { makeFilled } from "./filled.ts"
import { announcePort } from "./server.ts"

const { url } = await serve(await makeFilled())
announcePort(url)
