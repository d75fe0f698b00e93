/** A receiver of webhooks on loopback. */

import * as Http from "node:http"
import { text } from "node:stream/consumers"

/** A request that was received. */
export interface Notification {
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: string
  readonly at: number
}

/** A receiver that listens. */
export interface Receiver {
  readonly url: string
  readonly received: ReadonlyArray<Notification>
  /** Waits until so many requests were received. */
  readonly until: (count: number) => Promise<void>
  readonly close: () => void
}

/** Answers a request: with a status, or in its own way. */
export type Answer = (response: Http.ServerResponse, notification: Notification) => void

const noContent: Answer = (response) => void response.writeHead(204).end()

/** Starts a receiver. */
export const startReceiver = async (answer: Answer = noContent): Promise<Receiver> => {
  const received: Array<Notification> = []
  const waiting = new Set<() => void>()
  const server = Http.createServer(async (request, response) => {
    const body = await text(request).catch(() => undefined)
    // The sender has broken off.
    if (body === undefined) return
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, value?.toString()]),
    )
    const notification = { headers, body, at: Date.now() }
    received.push(notification)
    for (const check of waiting) check()
    answer(response, notification)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" ? address?.port : undefined
  return {
    url: `http://127.0.0.1:${port}/hook`,
    received,
    until: (count) =>
      new Promise((resolve) => {
        const check = () => {
          if (received.length < count) return
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
        check()
      }),
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
