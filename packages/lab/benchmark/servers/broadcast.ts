/** A server that sends as many events as it is asked for to all its connections, and keeps none. */

import { randomUUID } from "node:crypto"
import type { Server } from "node:http"
import { listen } from "./server.ts"

/** An event as Tenure has it. */
export interface Sent {
  readonly id: string
  readonly type: string
  readonly timestamp: string
  readonly data: object
}

// Connections take so many events before the next ones.
const atATime = 10

const send = (toAll: (event: Sent) => void, count: number): void => {
  for (let sent = 0; sent < Math.min(count, atATime); sent++) {
    toAll({
      id: randomUUID(),
      type: "payment.completed",
      timestamp: new Date().toISOString(),
      data: { amount: 5 },
    })
  }
  if (count > atATime) setImmediate(send, toAll, count - atATime)
}

/** Listens on a free port, and sends events by a function. Answers with the memory of the process. */
export const broadcast = (server: Server, toAll: (event: Sent) => void): void =>
  listen(server, (question) => {
    send(toAll, Object(question).events ?? 0)
    return process.memoryUsage()
  })
