/** A server in a process of its own, for the tests of floods. Prints its URL. */

import * as Tenure from "@tenure/core/Tenure"
import { memory } from "@tenure/memory"
import { serve } from "@tenure/node-http"

const tenure = await Tenure.make({ stores: memory() })
const { url } = await serve(tenure)
process.stdout.write(`${url}\n`)
