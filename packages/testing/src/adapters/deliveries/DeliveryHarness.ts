/** What the suite of deliveries needs, and what its tests start. */

import * as Net from "node:net"
import type { Event } from "@tenure/core/Event"
import * as Tenure from "@tenure/core/Tenure"
import type * as Layer from "effect/Layer"
import { afterEach } from "vitest"
import { type Answer, type Receiver, startReceiver } from "../../support/receiver.ts"

/** A store and a transport to certify. */
export interface DeliveryHarness {
  /** Returns a layer of empty stores, independent of the stores of earlier calls. */
  readonly stores: () => Layer.Layer<Tenure.Stores, unknown>
  readonly transport: NonNullable<Tenure.Options["transport"]>
}

/** The project that tests publish events of. */
export const projectId = "p1"

const defaults: Tenure.WebhookOptions = {
  allowedNetworks: ["127.0.0.0/8"],
  maxPerProject: 2000,
  retrySchedule: ["1 hour"],
}

/** Starts Tenure with one project. */
const startSender = async (
  { stores, transport }: DeliveryHarness,
  options: Tenure.WebhookOptions,
) => {
  const events: Array<Event> = []
  const tenure = await Tenure.make({
    stores: stores(),
    transport,
    onEvent: (event) => void events.push(event),
    webhooks: { ...defaults, ...options },
  })
  await tenure.memberships.createProject(projectId)
  const deliveries = (webhookId: string) => tenure.webhooks.deliveries({ projectId, webhookId })
  return {
    tenure,
    /** The events that the host was told of. */
    events,
    /** Publishes events one after another. */
    publish: async (count = 1): Promise<void> => {
      for (let published = 0; published < count; published++) {
        await tenure.events.publish({ projectId, type: "test.happened", data: {} })
      }
    },
    webhookTo: (url: string) => tenure.webhooks.create({ projectId, url }),
    deliveries,
    /** Returns the attempts of all deliveries to a webhook. */
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

/** Returns functions that start what a test needs, and closes all of it after the test. */
export const deliveriesOn = (harness: DeliveryHarness) => {
  const closing: Array<() => unknown> = []

  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close()
  })

  return {
    sender: async (options: Tenure.WebhookOptions = {}) => {
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

/** What tests of deliveries start. */
export type Deliveries = ReturnType<typeof deliveriesOn>
