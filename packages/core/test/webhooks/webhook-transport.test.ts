import type * as Http from "node:http"
import { startReceiver } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { describe, expect, it } from "vitest"
import * as Setting from "../../src/base/setting.ts"
import {
  AddressPolicy,
  WebhookTransport,
  addressPolicyOptions,
} from "../../src/webhooks/transport.ts"

const provided = <A, E>(
  effect: Effect.Effect<A, E, WebhookTransport>,
  allowedNetworks: ReadonlyArray<string>,
) =>
  effect.pipe(
    Effect.provide(
      Layer.provide(
        WebhookTransport.layerFetch,
        AddressPolicy.layer(Setting.parse(addressPolicyOptions, { allowedNetworks })),
      ),
    ),
    Effect.runPromise,
  )

/** Sends to a URL. Returns the status of the response, or the reason of the failure. */
const send = (url: string, allowedNetworks = ["127.0.0.0/8"]): Promise<number | string> =>
  provided(
    Effect.gen(function* () {
      const transport = yield* WebhookTransport
      return yield* Effect.match(transport.send({ url, headers: { "x-test": "1" }, body: "{}" }), {
        onSuccess: ({ status }): number | string => status,
        onFailure: ({ reason }): number | string => reason,
      })
    }),
    allowedNetworks,
  )

describe("the fetch transport", () => {
  it("posts the body with the headers", async () => {
    const receiver = await startReceiver()
    expect(await send(receiver.url)).toBe(204)
    expect(receiver.received[0]).toMatchObject({ body: "{}", headers: { "x-test": "1" } })
    receiver.close()
  })

  it("refuses addresses that are not allowed", async () => {
    const receiver = await startReceiver()
    const { port } = new URL(receiver.url)
    for (const host of ["127.0.0.1", "2130706433", "[::1]", "localhost"]) {
      expect(await send(`http://${host}:${port}/`, [])).toBe("AddressNotAllowed")
    }
    expect(receiver.received).toEqual([])
    receiver.close()
  })

  it("sends to names over https only", async () => {
    expect(await send("http://does-not-exist.invalid/")).toBe("AddressNotAllowed")
    expect(await send("https://does-not-exist.invalid/")).toMatch(/^(ENOTFOUND|EAI_AGAIN)$/)
  })

  it("does not follow redirects", async () => {
    const receiver = await startReceiver((response) =>
      response.writeHead(307, { location: "/elsewhere" }).end(),
    )
    expect(await send(receiver.url)).toBe(307)
    expect(receiver.received).toHaveLength(1)
    receiver.close()
  })

  it("reads at most 64 KiB of a response", async () => {
    const closed = new Promise<void>((resolve) => {
      void startReceiver((response) => {
        response.on("close", resolve)
        const pour = (): void => {
          while (!response.destroyed && response.write("x".repeat(16_384)));
        }
        response.on("drain", pour)
        pour()
      }).then(async (receiver) => {
        expect(await send(receiver.url)).toBe(200)
        receiver.close()
      })
    })
    await closed
  })

  it("closes the connection when it is interrupted", async () => {
    let arrived: () => void = () => {}
    const arrival = new Promise<void>((resolve) => (arrived = resolve))
    const responses: Array<Http.ServerResponse> = []
    const receiver = await startReceiver((response) => {
      responses.push(response)
      arrived()
    })
    await provided(
      Effect.gen(function* () {
        const transport = yield* WebhookTransport
        const request = { url: receiver.url, headers: {}, body: "{}" }
        const sending = yield* Effect.forkChild(transport.send(request))
        yield* Effect.promise(() => arrival)
        yield* Fiber.interrupt(sending)
      }),
      ["127.0.0.0/8"],
    )
    const [response] = responses
    if (response?.destroyed === false) {
      await new Promise((resolve) => response.once("close", resolve))
    }
    expect(response?.destroyed).toBe(true)
    receiver.close()
  })

  it("returns the code of the failure", async () => {
    const receiver = await startReceiver()
    receiver.close()
    expect(await send(receiver.url)).toBe("ECONNREFUSED")
  })
})
