/** Receivers that are slow, or never end. */

import type * as Net from "node:net"
import { describe, expect, it } from "vitest"
import { eventually } from "../../support/eventually.ts"
import type { Deliveries } from "./DeliveryHarness.ts"

const head = "HTTP/1.1 200 OK\r\n"

/** Sends a long body, a byte every 50 ms. */
const drip = (socket: Net.Socket): void => {
  socket.write(`${head}Content-Length: 1000000\r\n\r\n`)
  const timer = setInterval(() => socket.write("x"), 50)
  socket.on("close", () => clearInterval(timer))
}

/** Sends a body without end, as fast as the sender reads it. */
const pour = (socket: Net.Socket): void => {
  socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`)
  const fill = (): void => {
    while (!socket.destroyed && socket.write(`400\r\n${"y".repeat(1024)}\r\n`));
  }
  socket.on("drain", fill)
  fill()
}

const slowReceivers = [
  ["never responds", "http", () => {}],
  ["never completes the TLS handshake", "https", () => {}],
  ["never completes the headers", "http", (socket: Net.Socket) => socket.write(head)],
  ["sends its body byte by byte", "http", drip],
] as const

// What waits for an attempt that hangs takes an hour.
const soonMillis = 10_000

// More receivers than attempts that may be in flight.
const hangingProjects = [
  { projects: 5, webhooks: 20, maxInFlight: 64 },
  { projects: 25, webhooks: 42, maxInFlight: 1024 },
]

/** Declares the tests. */
export const deadlineTests = ({ listener, receiver, sender }: Deliveries): void => {
  describe("an attempt", () => {
    it.each(slowReceivers)(
      "ends at the deadline if the receiver %s, and the next attempt starts",
      async (_name, scheme, behave) => {
        const { attempts, publish, webhookTo } = await sender({ timeout: 300 })
        const port = await listener(behave)
        const { id } = await webhookTo(`${scheme}://127.0.0.1:${port}/`)
        // More than the four that may be in flight.
        await publish(6)
        await eventually(async () => (await attempts(id)).length === 6)
        for (const { durationMillis, result } of await attempts(id)) {
          expect(result).toEqual({ _tag: "Failed", reason: "Timeout" })
          // Timers may fire a few milliseconds early.
          expect(durationMillis).toBeGreaterThanOrEqual(295)
        }
      },
    )

    it("reads only the first KiB of an endless body", async () => {
      const { attempts, publish, webhookTo } = await sender()
      const port = await listener(pour)
      const { id } = await webhookTo(`http://127.0.0.1:${port}/`)
      await publish()
      await eventually(async () => (await attempts(id)).length === 1)
      expect((await attempts(id))[0]?.result).toEqual({
        _tag: "Answered",
        status: 200,
        body: "y".repeat(1024),
      })
    })

    it.each(hangingProjects)(
      "starts soon while $projects projects have $webhooks receivers each that do not respond, of $maxInFlight attempts",
      { timeout: 60_000 },
      async ({ maxInFlight, projects, webhooks }) => {
        const { publish, tenure, webhookTo } = await sender({ maxInFlight, timeout: "1 hour" })
        let hanging = 0
        const port = await listener(() => {
          hanging += 1
        })
        const names = Array.from({ length: projects }, (_, index) => `hanging${index}`)
        const url = `http://127.0.0.1:${port}/`
        await Promise.all(
          names.map(async (projectId) => {
            await tenure.memberships.createProject(projectId)
            const all = Array.from({ length: webhooks }, () => ({ projectId, url }))
            await Promise.all(all.map((webhook) => tenure.webhooks.create(webhook)))
            await tenure.events.publish({ projectId, type: "test.happened", data: 1 })
            await tenure.events.publish({ projectId, type: "test.happened", data: 2 })
          }),
        )
        await eventually(() => hanging >= maxInFlight / 4)
        const healthy = await receiver()
        await webhookTo(healthy.url)
        await publish(5)
        const published = performance.now()
        await healthy.until(5)
        expect(performance.now() - published).toBeLessThan(soonMillis)
      },
    )
  })
}
