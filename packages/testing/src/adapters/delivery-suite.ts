/** Certifies deliveries: a store and a transport together, over real connections. */

import { once } from "node:events"
import * as Net from "node:net"
import { type TenureOptions, type WebhookOptions, createTenure } from "@tenure/core"
import type { StorePorts } from "@tenure/core/store"
import type * as Layer from "effect/Layer"
import { afterEach, describe, expect, it } from "vitest"
import {
  type Answer,
  type Receiver,
  eventually,
  isSignedWith,
  startReceiver,
} from "../support/fixtures.ts"

/** A store and a transport to certify. */
export interface DeliveryHarness {
  /** Returns a layer with empty stores, independent from earlier calls. */
  readonly stores: () => Layer.Layer<StorePorts, unknown>
  readonly transport: NonNullable<TenureOptions["transport"]>
}

const projectId = "p1"

const defaults: WebhookOptions = {
  allowedNetworks: ["127.0.0.0/8"],
  maxPerProject: 2000,
  retrySchedule: ["1 hour"],
}

/** Starts Tenure with one project. */
const startSender = async ({ stores, transport }: DeliveryHarness, options: WebhookOptions) => {
  const tenure = await createTenure({
    stores: stores(),
    transport,
    webhooks: { ...defaults, ...options },
  })
  await tenure.memberships.createProject(projectId)
  const deliveries = (webhookId: string) => tenure.webhooks.deliveries({ projectId, webhookId })
  return {
    tenure,
    /** Publishes events one after another. */
    publish: async (count = 1): Promise<void> => {
      for (let published = 0; published < count; published++) {
        await tenure.events.publish({ projectId, type: "test.happened", data: {} })
      }
    },
    webhookTo: (url: string) => tenure.webhooks.create({ projectId, url }),
    deliveries,
    /** Returns all attempts for a webhook. */
    attempts: async (webhookId: string) =>
      (await deliveries(webhookId)).flatMap(({ attempts }) => attempts),
  }
}

/** Listens on a free port, and leaves each connection to the given function. */
const startListener = async (onConnection: (socket: Net.Socket) => void) => {
  const open = new Set<Net.Socket>()
  const server = Net.createServer((socket) => {
    open.add(socket)
    socket.on("error", () => {}).resume()
    onConnection(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const close = () => {
    for (const socket of open) socket.destroy()
    server.close()
  }
  return { port: typeof address === "object" ? (address?.port ?? 0) : 0, close }
}

/** Returns functions to start servers and receivers, and closes them after the test. */
const deliveriesOn = (harness: DeliveryHarness) => {
  const closing: Array<() => unknown> = []

  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close()
  })

  return {
    sender: async (options: WebhookOptions = {}) => {
      const sender = await startSender(harness, options)
      closing.push(sender.tenure.close)
      return sender
    },
    receiver: async (answer?: Answer): Promise<Receiver> => {
      const receiver = await startReceiver(answer)
      closing.push(receiver.close)
      return receiver
    },
    listener: async (onConnection: (socket: Net.Socket) => void): Promise<number> => {
      const { close, port } = await startListener(onConnection)
      closing.push(close)
      return port
    },
  }
}

/** Functions for delivery tests. */
type Deliveries = ReturnType<typeof deliveriesOn>

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

const timeout = { _tag: "Failed", reason: "Timeout" }

const slowReceivers = [
  ["never responds", "http", () => {}, timeout],
  ["never completes the TLS handshake", "https", () => {}, timeout],
  ["never completes the headers", "http", (socket: Net.Socket) => socket.write(head), timeout],
  [
    "sends its body byte by byte",
    "http",
    drip,
    { _tag: "Answered", status: 200, body: expect.stringMatching(/^x*$/) },
  ],
] as const

const attemptTests = ({ listener, receiver, sender }: Deliveries): void => {
  it.each(slowReceivers)(
    "ends at the deadline if the receiver %s, and the next attempt starts",
    async (_name, scheme, behave, expected) => {
      const { attempts, publish, webhookTo } = await sender({ timeout: 300 })
      const port = await listener(behave)
      const { id } = await webhookTo(`${scheme}://127.0.0.1:${port}/`)
      // More than the four concurrent attempts.
      await publish(6)
      await eventually(async () => (await attempts(id)).length === 6)
      for (const { durationMillis, result } of await attempts(id)) {
        expect(result).toEqual(expected)
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

  it.each([
    // More receivers than concurrent attempts.
    { projects: 5, webhooks: 20, maxInFlight: 64 },
    { projects: 25, webhooks: 42, maxInFlight: 1024 },
  ])(
    "starts soon while $projects projects have $webhooks receivers each that do not respond, of $maxInFlight attempts",
    async ({ maxInFlight, projects, webhooks }) => {
      // After a hanging attempt, waiting takes an hour.
      const { publish, tenure, webhookTo } = await sender({ maxInFlight, timeout: "1 hour" })
      let hanging = 0
      const port = await listener(() => {
        hanging += 1
      })
      const hangingProjects = Array.from({ length: projects }, async (_, index) => {
        const hangingProject = { projectId: `hanging${index}` }
        await tenure.memberships.createProject(hangingProject.projectId)
        const url = `http://127.0.0.1:${port}/`
        const creating = Array.from({ length: webhooks }, () =>
          tenure.webhooks.create({ ...hangingProject, url }),
        )
        await Promise.all(creating)
        for (const data of [1, 2]) {
          await tenure.events.publish({ ...hangingProject, type: "test.happened", data })
        }
      })
      await Promise.all(hangingProjects)
      await eventually(() => hanging >= maxInFlight / 4)
      const healthy = await receiver()
      await webhookTo(healthy.url)
      await publish(5)
      await healthy.until(5)
    },
  )

  it("has the same id and a new signature when it repeats one that failed", async () => {
    let isWell = false
    const one = await receiver((response) => {
      response.writeHead(isWell ? 204 : 500).end("not now")
    })
    const { deliveries, publish, webhookTo } = await sender({ retrySchedule: [50, 50, "1 hour"] })
    const { id, secret } = await webhookTo(one.url)
    await publish()
    await one.until(2)
    isWell = true
    await eventually(async () => (await deliveries(id))[0]?.state === "delivered")
    const results = (await deliveries(id))[0]?.attempts.map(({ result }) => result)
    expect(results?.at(0)).toEqual({ _tag: "Answered", status: 500, body: "not now" })
    expect(results?.at(-1)).toEqual({ _tag: "Answered", status: 204, body: "" })
    expect(new Set(one.received.map(({ headers }) => headers["webhook-id"])).size).toBe(1)
    expect(one.received.every((sent) => isSignedWith(sent, secret))).toBe(true)
  })

  it("waits as long as the receiver asks, and so do other deliveries to it", async () => {
    const one = await receiver((response) => {
      const isFirst = one.received.length === 1
      response.writeHead(isFirst ? 429 : 204, { "retry-after": "1" }).end()
    })
    const { attempts, publish, webhookTo } = await sender({ retrySchedule: [50, "2 seconds"] })
    const { id } = await webhookTo(one.url)
    await publish()
    // A delivery claimed before the first attempt is recorded does not wait.
    await eventually(async () => (await attempts(id)).length === 1)
    await publish()
    await one.until(3)
    const [first, ...others] = one.received
    // The second requested by the receiver, minus the early firing in timers.
    for (const { at } of others) expect(at - (first?.at ?? 0)).toBeGreaterThan(900)
  })
}

const webhookTests = ({ receiver, sender }: Deliveries): void => {
  it("gets the event types that it asks for, and the same id when one is replayed", async () => {
    const one = await receiver()
    const { deliveries, publish, tenure } = await sender()
    const type = "payment.completed"
    const { id } = await tenure.webhooks.create({ projectId, url: one.url, eventTypes: [type] })
    await publish()
    const eventId = await tenure.events.publish({ projectId, type, data: 1 })
    await eventually(async () => (await deliveries(id))[0]?.state === "delivered")
    expect(await deliveries(id)).toMatchObject([{ eventId }])
    expect(await tenure.webhooks.replay({ projectId, webhookId: id, eventId })).toBe(true)
    await one.until(2)
    const ids = one.received.map(({ headers }) => headers["webhook-id"])
    expect(ids).toEqual([eventId, eventId])
  })

  it("is disabled when it responds with 410, and delivers again when it is enabled", async () => {
    const other = await receiver()
    const gone = await receiver((response) => void response.writeHead(410).end())
    const { publish, tenure, webhookTo } = await sender()
    await webhookTo(other.url)
    const { id } = await webhookTo(gone.url)
    await publish()
    await other.until(2)
    await publish()
    await other.until(3)
    expect(gone.received).toHaveLength(1)
    expect(other.received.map(({ body }) => JSON.parse(body).type)).toEqual([
      "test.happened",
      "webhook.disabled",
      "test.happened",
    ])
    await tenure.webhooks.enable({ projectId, webhookId: id })
    await publish()
    await gone.until(2)
  })

  it("ends its deliveries when it is deleted: those in flight and those that wait", async () => {
    const closed: Array<Promise<unknown>> = []
    const hanging = await receiver((response) => void closed.push(once(response, "close")))
    const { deliveries, publish, tenure, webhookTo } = await sender()
    const { id } = await webhookTo(hanging.url)
    await publish(10)
    await hanging.until(4)
    await tenure.webhooks.delete({ projectId, webhookId: id })
    await Promise.all(closed)
    const sentinel = await receiver()
    await webhookTo(sentinel.url)
    await publish()
    await sentinel.until(1)
    expect(hanging.received).toHaveLength(4)
    const states = (await deliveries(id)).map(({ state }) => state)
    expect(states).toEqual(Array.from({ length: 10 }, () => "cancelled"))
  })
}

/** Declares the tests to certify deliveries with a store and a transport. */
export const deliverySuite = (name: string, harness: DeliveryHarness): void => {
  describe(name, () => {
    const deliveries = deliveriesOn(harness)
    const { receiver, sender } = deliveries
    describe("an attempt", () => {
      attemptTests(deliveries)
    })
    describe("a webhook", () => {
      webhookTests(deliveries)
    })

    it("a process that delivers only when it is told to sends all that is due, and returns how much is left", async () => {
      const { received, url } = await receiver()
      const failing = await receiver((response) => void response.writeHead(500).end())
      const { publish, tenure, webhookTo } = await sender({ dispatch: false })
      await webhookTo(url)
      await publish(100)
      expect(received).toHaveLength(0)
      expect(await tenure.flush({ timeout: "1 minute" })).toBe(0)
      expect(new Set(received.map(({ headers }) => headers["webhook-id"])).size).toBe(100)
      await webhookTo(failing.url)
      await publish()
      expect(await tenure.flush({ timeout: "1 minute" })).toBe(1)
      expect([received.length, failing.received.length]).toEqual([101, 1])
    })

    it("a process that delivers only when it is told to gives back what it could not send in time", async () => {
      const closed: Array<Promise<unknown>> = []
      const slow = await receiver((response) => {
        if (slow.received.length > 1) return void response.writeHead(204).end()
        closed.push(once(response, "close"))
      })
      const { publish, tenure, webhookTo } = await sender({ dispatch: false })
      await webhookTo(slow.url)
      await publish()
      const flushed = tenure.flush({ timeout: "1 second" })
      await slow.until(1)
      expect(await flushed).toBe(1)
      await Promise.all(closed)
      expect(await tenure.flush({ timeout: "1 minute" })).toBe(0)
      expect(slow.received).toHaveLength(2)
    })
  })
}
