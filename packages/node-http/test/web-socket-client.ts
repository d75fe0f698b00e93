/** A WebSocket client. */

import { once } from "node:events"
import { expect, onTestFinished } from "vitest"
import { WebSocket } from "ws"

const protocol = "tenure.v1"

/** A client's connection. */
export interface Client {
  readonly webSocket: WebSocket
  readonly send: (frame: unknown) => void
  /** Waits until there are as many frames, and returns them. */
  readonly frames: (count: number) => Promise<ReadonlyArray<Record<string, unknown>>>
  /** Waits for the end, and returns the close frame's code. */
  readonly closed: Promise<number>
}

/** Opens a connection until the test has finished. Rejects with an error that names the status, if it is refused. */
export const connect = async (
  url: string,
  headers: Record<string, string> = {},
  path = "/v2/realtime",
): Promise<Client> => {
  const webSocket = new WebSocket(url.replace("http", "ws") + path, protocol, { headers })
  const received: Array<Record<string, unknown>> = []
  webSocket.on("message", (data) => received.push(JSON.parse(String(data))))
  await once(webSocket, "open")
  onTestFinished(() => webSocket.terminate())
  const closed = once(webSocket, "close").then(([code]) => Number(code))
  return {
    webSocket,
    send: (frame) =>
      webSocket.send(
        typeof frame === "string" || frame instanceof Uint8Array ? frame : JSON.stringify(frame),
      ),
    frames: async (count) => {
      await expect.poll(() => received.length, { interval: 5 }).toBeGreaterThanOrEqual(count)
      return received.slice(0, count)
    },
    closed,
  }
}
