/** The least that node:http can do: read and parse the body, and answer. */

import { createServer } from "node:http"
import { answer, read } from "./by-hand.ts"
import { listen } from "./server.ts"

listen(createServer((request, response) => read(request, (body) => answer(body, response))))
