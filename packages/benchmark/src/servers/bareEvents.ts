/**
 * Server-Sent Events on node:http alone. It does less: it keeps no events, knows no clients, and writes to
 * connections whether they take it or not. It sends as many events as it is asked for.
 */

import { randomUUID } from "node:crypto"
import { createServer, type ServerResponse } from "node:http"
import { listen } from "./server.ts"

const open = new Set<ServerResponse>()

const server = createServer((_, response) => {
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" })
  response.write(":\n\n")
  open.add(response)
  response.on("close", () => open.delete(response))
})

// Connections take so many events before the next ones.
const atATime = 10

const send = (count: number): void => {
  for (let sent = 0; sent < Math.min(count, atATime); sent++) {
    const event = {
      id: randomUUID(),
      type: "payment.completed",
      timestamp: new Date().toISOString(),
      data: { amount: 5 },
    }
    const text = `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
    for (const response of open) response.write(text)
  }
  if (count > atATime) setImmediate(send, count - atATime)
}

listen(server, (question) => {
  send(Object(question).events ?? 0)
  return process.memoryUsage()
})
