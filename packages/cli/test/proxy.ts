/** A proxy in front of a server, which breaks connections as a test wants it. */

import {
  type IncomingMessage,
  type ServerResponse,
  createServer,
  request as requestOf,
} from "node:http"
import { freePort } from "@tenure/testing/conformance"
import { onTestFinished } from "vitest"

/** What happens with a request: it is passed on, its answer is lost, or the test answers it or does not. */
type Passing = "passed" | "lost" | "kept"

/** Starts one until the test ends, and returns its URL. */
export const startProxy = async (
  server: string,
  decide: (request: IncomingMessage, response: ServerResponse) => Passing,
): Promise<string> => {
  const proxy = createServer((request, response) => {
    const passing = decide(request, response)
    if (passing === "kept") return
    const { headers, method = "GET", url = "/" } = request
    const onward = requestOf(new URL(url, server), { method, headers }, (answer) => {
      if (passing === "lost") return void request.socket.destroy()
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(response)
    })
    onward.on("error", () => request.socket.destroy())
    request.pipe(onward)
  })
  const port = await freePort()
  await new Promise<void>((resolve) => proxy.listen(port, "127.0.0.1", resolve))
  onTestFinished(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  return `http://127.0.0.1:${port}`
}
