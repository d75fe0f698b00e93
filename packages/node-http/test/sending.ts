/** What the tests of the transport share. */

import * as Net from "node:net"
import { AddressPolicy } from "@tenure/core/AddressPolicy"
import { WebhookTransport } from "@tenure/core/WebhookTransport"
import { nodeTransport } from "@tenure/node-http"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** The transport, and the networks that it may send to. */
const transportTo = (...allowedNetworks: ReadonlyArray<string>) =>
  Layer.provide(nodeTransport, AddressPolicy.layer({ allowedNetworks }))

/** Sends to a URL; gives the status or the reason. */
export type SendOne = (url: string) => Effect.Effect<number | string>

// An agent has a connection back only some ticks after the answer.
const settled = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

/** Sends as it is told by one transport. */
export const sending = <A>(
  use: (one: SendOne) => Effect.Effect<A>,
  allowed: ReadonlyArray<string> = ["127.0.0.0/8"],
): Promise<A> =>
  WebhookTransport.use((transport) =>
    use((url) =>
      transport.send({ url, headers: { "x-test": "1" }, body: '{"ü":1}' }).pipe(
        Effect.match({
          onSuccess: ({ status }): number | string => status,
          onFailure: ({ reason }): number | string => reason,
        }),
        Effect.tap(settled),
      ),
    ),
  ).pipe(Effect.provide(transportTo(...allowed)), Effect.runPromise)

/** Sends to a URL once. */
export const send = (url: string, allowed?: ReadonlyArray<string>): Promise<number | string> =>
  sending((one) => one(url), allowed)

/** A server that does with each connection as it is told. */
export const rawServer = async (handle: (socket: Net.Socket) => void) => {
  const sockets = new Set<Net.Socket>()
  const server = Net.createServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => {})
    handle(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" ? address?.port : 0
  return {
    url: `http://127.0.0.1:${port}/`,
    sockets,
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

/** A promise, and the function that fulfils it. */
export const gate = () => {
  let open: () => void = () => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { open, opened }
}
