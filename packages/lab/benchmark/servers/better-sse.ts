/**
 * Server-Sent Events by the library better-sse, as its documentation shows it. It does less: it keeps no
 * events, knows no clients, and writes to connections whether they take it or not.
 */

import { createServer } from "node:http"
import { createChannel, createSession } from "better-sse"
import { broadcast } from "./broadcast.ts"

const channel = createChannel()

const server = createServer((request, response) => {
  void createSession(request, response).then((session) => channel.register(session))
})

broadcast(server, (event) => channel.broadcast(event, event.type, { eventId: event.id }))
