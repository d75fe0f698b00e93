/** Tenure by itself: in memory, with authentication and all three limits. */

import { serve } from "@tenure/node-http"
import { makeFilled } from "./filled.ts"
import { announce } from "./server.ts"

const { url } = await serve(await makeFilled())
announce(Number(new URL(url).port))
