/** A receiver that takes what it is sent for a while, then fails for a while, and so on. */

import { createServer } from "node:http"
import { listen } from "./server.ts"

const [goodMillis, badMillis] = [8000, 4000]

const isFailing = (): boolean => Date.now() % (goodMillis + badMillis) > goodMillis

listen(
  createServer((request, response) => {
    request.resume()
    request.on("end", () => response.writeHead(isFailing() ? 503 : 204).end())
  }),
)
