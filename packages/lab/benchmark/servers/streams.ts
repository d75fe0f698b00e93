/**
 * Streaming servers that do less than Tenure: they keep no events, know no clients, and write to connections whether
 * they take it or not. The argument names one: Server-Sent Events on node:http alone (`sse`), by the library better-sse
 * as its documentation shows it (`better-sse`), or WebSocket connections by the library that Tenure uses (`ws`), which
 * get nothing.
 */

import { randomUUID } from "node:crypto"
import { type ServerResponse, createServer } from "node:http"
import { createChannel, createSession } from "better-sse"
import { WebSocketServer } from "ws"
import { listen } from "./server.ts"

const makeEvent = () => ({
  id: randomUUID(),
  type: "payment.completed",
  timestamp: new Date().toISOString(),
  data: { amount: 5 },
})

type Event = ReturnType<typeof makeEvent>

const server = createServer()

const kinds: Readonly<Record<string, () => (event: Event) => void>> = {
  sse: () => {
    const open = new Set<ServerResponse>()
    server.on("request", (_, response) => {
      response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" })
      response.write(":\n\n")
      open.add(response)
      response.on("close", () => open.delete(response))
    })
    return (event) => {
      const text = `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
      for (const response of open) response.write(text)
    }
  },
  "better-sse": () => {
    const channel = createChannel()
    server.on("request", (request, response) => {
      void createSession(request, response).then((session) => channel.register(session))
    })
    return (event) => void channel.broadcast(event, event.type, { eventId: event.id })
  },
  ws: () => {
    const webSockets = new WebSocketServer({
      noServer: true,
      perMessageDeflate: false,
      handleProtocols: () => "tenure.v1",
    })
    server.on("upgrade", (request, socket, head) =>
      webSockets.handleUpgrade(request, socket, head, () => {}),
    )
    return () => {}
  },
}

const toAll = kinds[process.argv[2] ?? ""]?.()

// Connections take so many events before the next ones.
const atATime = 10

/** Sends as many events as it is asked for to all connections. */
const send = (count: number): void => {
  for (let sent = 0; sent < Math.min(count, atATime); sent++) toAll?.(makeEvent())
  if (count > atATime) setImmediate(send, count - atATime)
}

await listen(server, (question) => {
  send(Object(question).events ?? 0)
  return process.memoryUsage()
})
