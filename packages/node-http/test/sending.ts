/** Helpers for the transport's tests. */

import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { Setting, addressPolicyOptions } from "@tenure/core/internal"
import { AddressPolicy, WebhookTransport } from "@tenure/core/transport"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { nodeTransport } from "../src/transport.ts"

/** A transport, with the networks that it may send to. */
const transportTo = (transport: typeof nodeTransport, allowedNetworks: ReadonlyArray<string>) =>
  Layer.provide(
    transport,
    AddressPolicy.layer(Setting.parse(addressPolicyOptions, { allowedNetworks })),
  )

/** Sends to a URL. Returns the status, or why it failed. */
export type SendOne = (url: string) => Effect.Effect<number | string>

// The agent gets a connection back only some ticks after the response.
const settled = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

/** Runs an effect with a transport. */
export const withTransport = <A, E>(
  use: (transport: WebhookTransport["Service"]) => Effect.Effect<A, E>,
  allowed: ReadonlyArray<string> = ["127.0.0.0/8"],
  transport: typeof nodeTransport = nodeTransport,
): Promise<A> =>
  WebhookTransport.use(use).pipe(Effect.provide(transportTo(transport, allowed)), Effect.runPromise)

/** Runs an effect that sends with one transport. */
export const sending = <A>(
  use: (one: SendOne) => Effect.Effect<A>,
  allowed?: ReadonlyArray<string>,
  transport?: typeof nodeTransport,
): Promise<A> =>
  withTransport(
    (sender) =>
      use((url) =>
        sender.send({ url, headers: { "x-test": "1" }, body: '{"ü":1}' }).pipe(
          Effect.match({
            onSuccess: ({ status }): number | string => status,
            onFailure: ({ reason }): number | string => reason,
          }),
          Effect.tap(settled),
        ),
      ),
    allowed,
    transport,
  )

/** Sends to a URL once. */
export const send = (
  url: string,
  allowed?: ReadonlyArray<string>,
  transport?: typeof nodeTransport,
): Promise<number | string> => sending((one) => one(url), allowed, transport)

/** Calls a function when the client has received the next response, or its beginning. */
export const onResponse = (then: () => void): void => {
  const channel = "http.client.response.finish"
  const listener = (): void => {
    unsubscribe(channel, listener)
    then()
  }
  subscribe(channel, listener)
}

/** A promise, and the function that resolves it. */
export const gate = () => {
  let open: () => void = () => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { open, opened }
}
