/**
 * Server-Sent Events on node:http alone. It does less: it keeps no events, knows no clients, and writes to
 * connections whether they take it or not.
 */

import { type ServerResponse, createServer } from "node:http"
import { broadcast } from "./broadcast.ts"

const open = new Set<ServerResponse>()

const server = createServer((_, response) => {
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" })
  response.write(":\n\n")
  open.add(response)
  response.on("close", () => open.delete(response))
})

broadcast(server, (event) => {
  const text = `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
  for (const response of open) response.write(text)
})
