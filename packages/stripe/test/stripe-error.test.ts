/** How answers from Stripe's API are described that are errors, or missing. */

import { createServer } from "node:http"
import { describe, expect, it, onTestFinished } from "vitest"
import { period, setUp } from "./set-up.ts"
import { clientAt } from "./stripe-account.ts"

describe("an answer of Stripe", () => {
  const unknown = "No such customer: cus_1"

  it.each([
    [400, `Stripe has refused a request (400): ${unknown}`],
    [401, `Stripe has refused the API key (401): ${unknown}. Check the key`],
    [403, `Stripe has refused permission (403): ${unknown}. Change`],
    [404, `Stripe has refused a request (404): ${unknown}`],
    [429, `Stripe has answered that requests are too many (429): ${unknown}. Stripe sends`],
    [500, `Stripe has failed (500): ${unknown}. Stripe sends the event again`],
    [503, `Stripe has failed (503): ${unknown}. Stripe sends the event again`],
  ])("with status %d is described", async (status, description) => {
    const on = await setUp()
    on.account.refuse(status, unknown)
    await expect(on.pay("in_1", 0, 30)).rejects.toThrow(description)
  })

  it("shows no key, and has no status for Express", async () => {
    const on = await setUp()
    on.account.refuse(401, "Invalid API Key provided: rk_live_abc123")
    const error: unknown = await on.pay("in_1", 0, 30).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ message: expect.stringContaining("provided: rk_…. Check") })
    expect(error).not.toHaveProperty("statusCode")
    expect(error).not.toHaveProperty("cause")
  })

  it.each([
    ["a connection that breaks", 10_000, (socket: { destroy: () => void }) => socket.destroy()],
    ["silence", 50, () => undefined],
  ])("that is missing after %s is described", async (_, timeout, answer) => {
    const on = await setUp()
    const server = createServer((request) => answer(request.socket))
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    const { send } = on.receiver({ stripe: clientAt(port, { timeout }) })
    const paid = on.account.pay("sub_1", "in_1", period(0, 30))
    await expect(send(paid)).rejects.toThrow(
      /^Stripe has not answered: .*\. Stripe sends the event again$/,
    )
  })
})
