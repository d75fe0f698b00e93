/** Deliveries over real connections, from any stores: what receivers do, and what comes of it. */

import { once } from "node:events"
import * as Net from "node:net"
import { describe, expect, it } from "@effect/vitest"
import * as Tenure from "@tenure/core/Tenure"
import type * as Duration from "effect/Duration"
import type * as Layer from "effect/Layer"
import { Webhook as StandardWebhook } from "standardwebhooks"
import { Webhook as SvixWebhook } from "svix"
import { afterEach } from "vitest"
import { type Answer, type Notification, type Receiver, startReceiver } from "./receiver.ts"

/** What is to be judged. */
export interface DeliveryHarness {
  /** Makes stores, empty and sharing nothing with those made before. */
  readonly stores: () => Layer.Layer<Tenure.Stores, unknown>
  readonly transport: NonNullable<Tenure.Options["transport"]>
}

const projectId = "p1"

/** Waits until something holds. */
const eventually = (holds: () => Promise<boolean>): Promise<unknown> =>
  expect.poll(holds, { timeout: 10_000, interval: 20 }).toBe(true)

/** Whether the public libraries take a notification for genuine. */
const isVerified = ({ body, headers }: Notification, secret: string): boolean => {
  const plain = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, value ?? ""]),
  )
  try {
    new StandardWebhook(secret).verify(body, plain)
    new SvixWebhook(secret).verify(body, plain)
    return true
  } catch {
    return false
  }
}

/** Declares the suite. */
export const deliverySuite = (name: string, { stores, transport }: DeliveryHarness): void => {
  const closing: Array<() => unknown> = []

  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close()
  })

  const start = async (
    timeout: Duration.Input = "15 seconds",
    retrySchedule: ReadonlyArray<Duration.Input> = ["1 hour"],
    options: Tenure.WebhookOptions = {},
  ) => {
    const tenure = await Tenure.make({
      stores: stores(),
      transport,
      webhooks: {
        allowedNetworks: ["127.0.0.0/8"],
        maxPerProject: 2000,
        timeout,
        retrySchedule,
        ...options,
      },
    })
    closing.push(tenure.close)
    await tenure.memberships.createProject(projectId)
    const publish = () => tenure.events.publish({ projectId, type: "test.happened", data: {} })
    const webhookTo = (url: string) => tenure.webhooks.create({ projectId, url })
    return { ...tenure, publish, webhookTo }
  }

  const receiving = async (answer?: Answer): Promise<Receiver> => {
    const receiver = await startReceiver(answer)
    closing.push(receiver.close)
    return receiver
  }

  /** Something that takes connections and does as it likes with them. */
  const listening = async (onConnection: (socket: Net.Socket) => void): Promise<number> => {
    const open = new Set<Net.Socket>()
    const server = Net.createServer((socket) => {
      open.add(socket)
      socket.on("error", () => {}).resume()
      onConnection(socket)
    })
    closing.push(() => {
      for (const socket of open) socket.destroy()
      server.close()
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const address = server.address()
    return typeof address === "object" ? (address?.port ?? 0) : 0
  }

  describe(`${name}: deliveries over real connections`, () => {
    it("are genuine to the public libraries, with either secret during a rotation", async () => {
      const receiver = await receiving()
      const { publish, webhooks, webhookTo } = await start()
      const { id, secret } = await webhookTo(receiver.url)
      await publish()
      await receiver.until(1)
      const fresh = await webhooks.rotateSecret({ projectId, webhookId: id })
      await publish()
      await receiver.until(2)
      const verdicts = receiver.received.map((one) => [
        isVerified(one, secret),
        isVerified(one, fresh),
      ])
      expect(verdicts).toEqual([
        [true, false],
        [true, true],
      ])
    })

    const head = "HTTP/1.1 200 OK\r\n"

    it.each([
      ["never answers", "http", () => {}],
      ["never ends its handshake", "https", () => {}],
      ["never ends its header", "http", (socket: Net.Socket) => socket.write(head)],
      [
        "sends its body drop by drop",
        "http",
        (socket: Net.Socket) => {
          socket.write(`${head}Content-Length: 1000000\r\n\r\n`)
          const drip = setInterval(() => socket.write("x"), 50)
          socket.on("close", () => clearInterval(drip))
        },
      ],
    ] as const)(
      "end at the deadline where the receiver %s, and the next takes its place",
      async (_name, scheme, behave) => {
        const { publish, webhooks, webhookTo } = await start(300)
        const port = await listening(behave)
        const { id } = await webhookTo(`${scheme}://127.0.0.1:${port}/`)
        // More than may be in flight at the same time.
        for (let count = 0; count < 6; count++) await publish()
        const outcomes = async () => {
          const all = await webhooks.deliveries({ projectId, webhookId: id })
          return all.flatMap(({ attempts }) => attempts)
        }
        await eventually(async () => (await outcomes()).length === 6)
        for (const { durationMillis, result } of await outcomes()) {
          expect(result).toEqual({ _tag: "Failed", reason: "Timeout" })
          expect(durationMillis).toBeGreaterThanOrEqual(295)
        }
      },
    )

    it("read no more of an endless body than they have to, and keep the first of it", async () => {
      const { publish, webhooks, webhookTo } = await start()
      const port = await listening((socket) => {
        socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`)
        const pour = (): void => {
          while (!socket.destroyed && socket.write(`400\r\n${"y".repeat(1024)}\r\n`));
        }
        socket.on("drain", pour)
        pour()
      })
      const { id } = await webhookTo(`http://127.0.0.1:${port}/`)
      await publish()
      const attempts = async () =>
        (await webhooks.deliveries({ projectId, webhookId: id }))[0]?.attempts ?? []
      await eventually(async () => (await attempts()).length === 1)
      expect((await attempts())[0]?.result).toEqual({
        _tag: "Answered",
        status: 200,
        body: "y".repeat(1024),
      })
    })

    it("arrive within a second beside a thousand receivers that hang", async () => {
      const { publish, webhookTo } = await start()
      const port = await listening(() => {})
      await Promise.all(
        Array.from({ length: 1000 }, (_, index) => webhookTo(`http://127.0.0.1:${port}/${index}`)),
      )
      await publish()
      await publish()
      const receiver = await receiving()
      await webhookTo(receiver.url)
      const before = performance.now()
      for (let count = 0; count < 5; count++) await publish()
      const published = performance.now()
      await receiver.until(5)
      expect(performance.now() - published).toBeLessThan(1000)
      expect(published).toBeGreaterThan(before)
    }, 30_000)

    it("go to a webhook that has recovered, at its own time, with the same id", async () => {
      let isWell = false
      const receiver = await receiving((response) => {
        response.writeHead(isWell ? 204 : 500).end("not now")
      })
      const { publish, webhooks, webhookTo } = await start("15 seconds", [50, 50, "1 hour"])
      const { id } = await webhookTo(receiver.url)
      await publish()
      await receiver.until(2)
      isWell = true
      const delivery = async () => (await webhooks.deliveries({ projectId, webhookId: id }))[0]
      await eventually(async () => (await delivery())?.state === "delivered")
      const results = (await delivery())?.attempts.map(({ result }) => result)
      expect(results?.at(0)).toEqual({ _tag: "Answered", status: 500, body: "not now" })
      expect(results?.at(-1)).toEqual({ _tag: "Answered", status: 204, body: "" })
      expect(new Set(receiver.received.map(({ headers }) => headers["webhook-id"])).size).toBe(1)
    })

    it("wait for a webhook that has asked for time, all of them", async () => {
      const receiver = await receiving((response) => {
        const isFirst = receiver.received.length === 1
        response.writeHead(isFirst ? 429 : 204, { "retry-after": "1" }).end()
      })
      const { publish, webhookTo } = await start("15 seconds", [50, "2 seconds"])
      await webhookTo(receiver.url)
      await publish()
      await receiver.until(1)
      // What was claimed before the answer was recorded would not have to wait.
      await new Promise((resolve) => setTimeout(resolve, 200))
      await publish()
      await receiver.until(3)
      const [first, ...others] = receiver.received
      for (const { at } of others) expect(at - (first?.at ?? 0)).toBeGreaterThan(900)
    })

    it("are tried but now and then where a webhook does nothing but fail", async () => {
      const receiver = await receiving((response) => void response.writeHead(500).end())
      const { publish, webhookTo } = await start("15 seconds", ["30 seconds"])
      await webhookTo(receiver.url)
      for (let count = 0; count < 60; count++) await publish()
      await receiver.until(10)
      await new Promise((resolve) => setTimeout(resolve, 1000))
      expect(receiver.received.length).toBeLessThan(20)
    })

    it("end with a webhook that has failed for too long, of which the host is told", async () => {
      const told: Array<string> = []
      const other = await receiving()
      const failing = await receiving((response) => void response.writeHead(500).end())
      const { publish, webhooks, webhookTo } = await start(
        "15 seconds",
        [200, 200, 200, 200, 200],
        {
          disableAfter: 500,
          onDisabled: ({ webhookId }) => void told.push(webhookId),
        },
      )
      await webhookTo(other.url)
      const { id } = await webhookTo(failing.url)
      await publish()
      await other.until(2)
      expect(JSON.parse(other.received[1]?.body ?? "")).toMatchObject({
        type: "webhook.disabled",
        data: { webhook_id: id, reason: "failing" },
      })
      await eventually(async () => told.length === 1)
      expect(told).toEqual([id])
      await webhooks.enable({ projectId, webhookId: id })
      expect(await webhooks.replayFailed({ projectId, webhookId: id, since: 0 })).toBe(1)
    })

    it("end at once with a webhook that is deleted: in flight and waiting", async () => {
      const closed: Array<Promise<unknown>> = []
      const receiver = await receiving((response) => void closed.push(once(response, "close")))
      const { publish, webhooks, webhookTo } = await start()
      const { id } = await webhookTo(receiver.url)
      for (let count = 0; count < 10; count++) await publish()
      await receiver.until(4)
      await webhooks.delete({ projectId, webhookId: id })
      await Promise.all(closed)
      const sentinel = await receiving()
      await webhookTo(sentinel.url)
      await publish()
      await sentinel.until(1)
      expect(receiver.received).toHaveLength(4)
      const all = await webhooks.deliveries({ projectId, webhookId: id })
      expect(new Set(all.map(({ state }) => state))).toEqual(new Set(["cancelled"]))
      expect(all).toHaveLength(10)
    })

    it("are of the types alone that a webhook gets, and are replayed with the same id", async () => {
      const receiver = await receiving()
      const { events, publish, webhooks } = await start()
      const eventTypes = ["payment.completed"]
      const { id } = await webhooks.create({ projectId, url: receiver.url, eventTypes })
      await publish()
      const eventId = await events.publish({ projectId, type: "payment.completed", data: 1 })
      await receiver.until(1)
      const webhook = { projectId, webhookId: id }
      await eventually(async () => {
        const [delivery] = await webhooks.deliveries({ ...webhook, state: "delivered" })
        return delivery?.eventId === eventId
      })
      expect(await webhooks.replay({ ...webhook, eventId })).toBe(true)
      await receiver.until(2)
      expect(receiver.received.map(({ headers }) => headers["webhook-id"])).toEqual([
        eventId,
        eventId,
      ])
    })

    it("end with a webhook that is gone, which the others are told of", async () => {
      const other = await receiving()
      const gone = await receiving((response) => void response.writeHead(410).end())
      const { publish, webhooks, webhookTo } = await start()
      await webhookTo(other.url)
      const { id } = await webhookTo(gone.url)
      await publish()
      await other.until(2)
      await publish()
      await other.until(3)
      expect(gone.received).toHaveLength(1)
      const types = other.received.map(({ body }) => JSON.parse(body).type)
      expect(types).toEqual(["test.happened", "webhook.disabled", "test.happened"])
      await webhooks.enable({ projectId, webhookId: id })
      await publish()
      await gone.until(2)
    })
  })
}
