/** A server in its own process, for flood tests. Prints its URL. */

import { createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { serve } from "../src/server.ts"

const tenure = await createTenure({ stores: memory() })
const { url } = await serve(tenure)
process.stdout.write(`${url}\n`)
