/** A receiver of webhooks on the loopback interface. */

import * as Http from "node:http"
import { text } from "node:stream/consumers"
import * as WebhookSignature from "@tenure/core/WebhookSignature"
import * as Result from "effect/Result"

/** A received request. */
export interface Notification {
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: string
  /** When it was received, in milliseconds since the epoch. */
  readonly at: number
}

/** A running receiver. */
export interface Receiver {
  readonly url: string
  readonly received: ReadonlyArray<Notification>
  /** Waits until the given number of requests have been received. */
  readonly until: (count: number) => Promise<void>
  readonly close: () => void
}

/** Responds to a request. */
export type Answer = (response: Http.ServerResponse, notification: Notification) => void

const noContent: Answer = (response) => void response.writeHead(204).end()

/** Tells whether a notification is signed with a secret. */
export const isSignedWith = ({ at, body, headers }: Notification, secret: string): boolean =>
  Result.isSuccess(
    WebhookSignature.verify({ headers, body, now: at }, [WebhookSignature.Secret(secret)]),
  )

/** Starts a receiver. It responds with 204 unless an answer is given. */
export const startReceiver = async (answer: Answer = noContent): Promise<Receiver> => {
  const received: Array<Notification> = []
  const waiting = new Set<() => void>()
  const server = Http.createServer(async (request, response) => {
    const body = await text(request).catch(() => undefined)
    // The sender closed the connection.
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
