/**
 * WebSocket connections by the library that Tenure uses, alone. It does less: it knows no clients, and has
 * nothing to send to them.
 */

import { createServer } from "node:http"
import { WebSocketServer } from "ws"
import { listen } from "./server.ts"

const server = createServer()

const webSockets = new WebSocketServer({
  noServer: true,
  perMessageDeflate: false,
  handleProtocols: () => "tenure.v1",
})
server.on("upgrade", (request, socket, head) =>
  webSockets.handleUpgrade(request, socket, head, () => {}),
)

listen(server, () => process.memoryUsage())
