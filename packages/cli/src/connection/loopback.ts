/** Servers on the loopback interface, for notifications to this machine. */

import { createServer, type IncomingMessage } from "node:http"
import * as Effect from "effect/Effect"
import { failed } from "../Failure.ts"

/**
 * Starts a server until the scope closes, and returns its URL, without a path.
 *
 * @param answer - returns the status of the response to a request
 */
export const listen = Effect.fnUntraced(function* (
  answer: (request: IncomingMessage) => number | Promise<number>,
) {
  const server = createServer(async (request, response) => {
    response.writeHead(await answer(request)).end()
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      }),
  )
  const address = server.address()
  if (address === null || typeof address === "string")
    return yield* failed("The receiver has no port.")
  return `http://127.0.0.1:${address.port}`
})
