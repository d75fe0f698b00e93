/** A receiver that alternately accepts notifications for a while and fails for a while. */

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
