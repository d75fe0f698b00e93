/** An account at Stripe, with the part of its API that is read, and the events that it would send. */

import { type Server, createServer } from "node:http"
import { Stripe } from "stripe"
import {
  type LineInput,
  chargeOf,
  creditNoteOf,
  eventText,
  invoiceOf,
  lineOf,
  listOf,
  paymentOf,
  subscriptionOf,
} from "./objects.ts"

/** The signing secret of the account's endpoint. */
export const secret = "whsec_test_secret"

/** An event, as the account sends it. */
export interface SentEvent {
  readonly id: string
  readonly body: string
}

interface Subscription {
  readonly id: string
  readonly customer: string
  metadata: Record<string, string>
  endedAt: number | null
}

interface Invoice {
  readonly id: string
  readonly subscription: Subscription
  readonly lines: ReadonlyArray<LineInput>
  /** How many equal payments have paid it. */
  parts: number
  refunded: number
  credited: number
}

const totalOf = ({ lines }: Invoice): number =>
  Math.max(
    0,
    lines.reduce((sum, { amount }) => sum + amount, 0),
  )

/** The ids of an invoice's payments: its own, if there is one. */
const partsOf = ({ id, parts }: Invoice): ReadonlyArray<string> =>
  parts === 1 ? [id] : Array.from({ length: parts }, (_, index) => `${id}_${index}`)

/** Starts an account. Ids are counted, so a test can name them. */
export const startStripeAccount = async () => {
  const subscriptions = new Map<string, Subscription>()
  const invoices: Array<Invoice> = []
  const requests: Array<URL> = []
  const accounts: Array<unknown> = []
  let events = 0
  let isDown = false
  let beforeAnswer: (path: string) => Promise<unknown> = async () => undefined

  const subscriptionObject = (subscription: Subscription) => subscriptionOf(subscription)
  const invoiceObject = (invoice: Invoice): Stripe.Invoice =>
    invoiceOf({ ...invoice, subscription: subscriptionObject(invoice.subscription) })
  /** The charges of an invoice, of which the first are refunded first. */
  const chargeObjects = (invoice: Invoice): ReadonlyArray<Stripe.Charge> => {
    const amount = totalOf(invoice) / invoice.parts
    return partsOf(invoice).map((part, index) =>
      chargeOf({
        invoice: part,
        customer: invoice.subscription.customer,
        amount,
        refunded: Math.min(amount, Math.max(0, invoice.refunded - index * amount)),
      }),
    )
  }

  const event = (type: string, object: object): SentEvent => {
    const id = `evt_${++events}`
    return { id, body: eventText(id, type, object) }
  }

  const find = (id: string): Invoice => {
    const invoice = invoices.find((one) => one.id === id)
    if (invoice === undefined) throw new Error(`no invoice ${id}`)
    return invoice
  }

  /** What the API has only if it is asked to expand it. */
  const expanded = (invoice: Invoice, paths: ReadonlyArray<string>): Stripe.Invoice => {
    const object = invoiceObject(invoice)
    const total = totalOf(invoice)
    if (paths.includes("data.payments")) {
      const payments = partsOf(invoice).map((part) => paymentOf(part, total / invoice.parts))
      object.payments = listOf("/v1/payments", total === 0 ? [] : payments)
    }
    const details = object.parent?.subscription_details
    if (details && paths.includes("data.parent.subscription_details.subscription")) {
      details.subscription = subscriptionObject(invoice.subscription)
    }
    return object
  }

  const list = (url: URL, all: ReadonlyArray<{ readonly id: string }>) => {
    const limit = Number(url.searchParams.get("limit") ?? 10)
    const after = url.searchParams.get("starting_after")
    const start = all.findIndex(({ id }) => id === after) + 1
    const data = all.slice(start, start + limit)
    return { object: "list", url: url.pathname, data, has_more: all.length > start + limit }
  }

  const answer = (url: URL): object | undefined => {
    const [, listed] = /^\/v1\/invoices\/(\w+)\/lines$/.exec(url.pathname) ?? []
    if (listed !== undefined) {
      const { lines, subscription } = find(listed)
      return list(
        url,
        lines.map((line, index) => lineOf(line, index, listed, subscription.id)),
      )
    }
    const customer = url.searchParams.get("customer")
    const newestFirst = invoices
      .filter(({ subscription }) => subscription.customer === customer)
      .toReversed()
    if (url.pathname === "/v1/invoices" && url.searchParams.get("status") === "paid") {
      const paths = [...url.searchParams].flatMap(([name, value]) =>
        name.startsWith("expand") ? value : [],
      )
      return list(
        url,
        newestFirst.map((invoice) => expanded(invoice, paths)),
      )
    }
    if (url.pathname !== "/v1/charges") return undefined
    return list(url, newestFirst.filter((invoice) => totalOf(invoice) > 0).flatMap(chargeObjects))
  }

  const server: Server = createServer((request, response) => {
    const url = new URL(request.url ?? "", "http://localhost")
    requests.push(url)
    accounts.push(request.headers["stripe-account"])
    void (async () => {
      const body = isDown ? undefined : answer(url)
      await beforeAnswer(url.pathname)
      const status = isDown ? 500 : body === undefined ? 404 : 200
      response.writeHead(status, { "content-type": "application/json" })
      response.end(JSON.stringify(body ?? { error: { message: "no", type: "api_error" } }))
    })()
  })
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0

  return {
    stripe: new Stripe("sk_test_123", {
      host: "127.0.0.1",
      port,
      protocol: "http",
      maxNetworkRetries: 0,
      telemetry: false,
    }),
    requests,
    /** The connected account of each request. */
    accounts,
    /** Makes the API fail, or work again. */
    setDown: (down: boolean) => {
      isDown = down
    },
    /** Runs between the moment at which the API reads its state and that at which it answers. */
    beforeAnswer: (run: (path: string) => Promise<unknown>) => {
      beforeAnswer = run
    },

    subscribe: (id: string, customer: string, metadata: Record<string, string>): void => {
      subscriptions.set(id, { id, customer, metadata, endedAt: null })
    },
    setMetadata: (id: string, metadata: Record<string, string>): void => {
      const subscription = subscriptions.get(id)
      if (subscription !== undefined) subscription.metadata = metadata
    },
    /** Pays an invoice. */
    pay: (subscriptionId: string, id: string, ...lines: ReadonlyArray<LineInput>): SentEvent => {
      const subscription = subscriptions.get(subscriptionId)
      if (subscription === undefined) throw new Error(`no subscription ${subscriptionId}`)
      const invoice = { id, subscription, lines, parts: 1, refunded: 0, credited: 0 }
      invoices.push(invoice)
      return event("invoice.paid", invoiceObject(invoice))
    },
    /** Splits the payment of an invoice. */
    split: (id: string, parts: number): void => {
      find(id).parts = parts
    },
    /** Refunds an invoice, as a whole unless an amount is given. */
    refund: (id: string, amount?: number): SentEvent => {
      const invoice = find(id)
      invoice.refunded = Math.min(totalOf(invoice), invoice.refunded + (amount ?? Infinity))
      return event("charge.refunded", chargeObjects(invoice)[0] ?? {})
    },
    /** Credits an invoice as a whole, to the balance of the customer. */
    credit: (id: string): SentEvent => {
      const invoice = find(id)
      invoice.credited = totalOf(invoice)
      return event("credit_note.created", creditNoteOf(invoiceObject(invoice)))
    },
    cancel: (id: string, endedAt: number): SentEvent => {
      const subscription = subscriptions.get(id)
      if (subscription === undefined) throw new Error(`no subscription ${id}`)
      subscription.endedAt = endedAt
      return event("customer.subscription.deleted", subscriptionObject(subscription))
    },
    other: (type: string): SentEvent => event(type, { id: "cus_1", object: "customer" }),
    close: () => new Promise<void>((resolve) => void server.close(() => resolve())),
  }
}

/** An account for tests. */
export type StripeAccount = Awaited<ReturnType<typeof startStripeAccount>>
