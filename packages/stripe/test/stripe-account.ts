/** An account at Stripe, with the part of its API that is read, and the events that it would send. */

import { type Server, createServer } from "node:http"
import { Stripe } from "stripe"
import {
  type LineInput,
  chargeOf,
  creditNoteOf,
  disputeOf,
  eventText,
  invoiceOf,
  lineOf,
  listOf,
  paymentOf,
  refundOf,
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
  dispute: { readonly status: string; readonly amount: number } | undefined
  readonly paidAt: number
}

/** An error as the API answers it. */
export interface Refusal {
  readonly status: number
  readonly message: string
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
  let refusal: Refusal | undefined
  /** Charges for no invoice, newest last. */
  const singles: Array<Stripe.Charge> = []
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
        isDisputed: invoice.dispute !== undefined,
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
    const charges = (from: ReadonlyArray<Invoice>) =>
      from.filter((invoice) => totalOf(invoice) > 0).flatMap(chargeObjects)
    if (url.pathname === "/v1/disputes") {
      const disputed = invoices.flatMap(({ dispute, id }) =>
        dispute === undefined ? [] : [disputeOf(id, dispute.status, dispute.amount)],
      )
      const charge = url.searchParams.get("charge")
      return list(
        url,
        disputed.filter((one) => one.charge === charge),
      )
    }
    const [, asked] = /^\/v1\/charges\/(\w+)$/.exec(url.pathname) ?? []
    if (asked !== undefined) return charges(invoices).find(({ id }) => id === asked)
    if (url.pathname !== "/v1/charges") return undefined
    const ofCustomer = singles.filter((charge) => charge.customer === customer)
    return list(url, [...ofCustomer.toReversed(), ...charges(newestFirst)])
  }

  const server: Server = createServer((request, response) => {
    const url = new URL(request.url ?? "", "http://localhost")
    requests.push(url)
    accounts.push(request.headers["stripe-account"])
    void (async () => {
      const body = answer(url)
      await beforeAnswer(url.pathname)
      const { message, status } = refusal ?? { status: 404, message: "no" }
      const isRefused = refusal !== undefined || body === undefined
      response.writeHead(isRefused ? status : 200, { "content-type": "application/json" })
      response.end(JSON.stringify(isRefused ? { error: { message, type: "api_error" } } : body))
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
      refusal = down ? { status: 500, message: "no" } : undefined
    },
    /** Makes the API refuse every request. */
    refuse: (given: Refusal) => {
      refusal = given
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
      const state = { parts: 1, refunded: 0, credited: 0, dispute: undefined }
      const invoice = { id, subscription, lines, ...state, paidAt: 1_795_000_000 + invoices.length }
      invoices.push(invoice)
      return event("invoice.paid", invoiceObject(invoice))
    },
    /** Sends an event about an invoice once more, perhaps of another type. */
    again: (id: string, type = "invoice.paid"): SentEvent => event(type, invoiceObject(find(id))),
    /** Charges a customer without an invoice. */
    charge: (customer: string, count: number): void => {
      for (let number = 0; number < count; number++) {
        const invoice = `single_${singles.length}`
        const amount = 500
        singles.push(chargeOf({ invoice, customer, amount, refunded: 0, isDisputed: false }))
      }
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
    /** The refund of an invoice fails: its money comes back. */
    failRefund: (id: string, type = "refund.failed"): SentEvent => {
      find(id).refunded = 0
      return event(type, refundOf(id, "failed"))
    },
    /** The bank disputes an invoice, as a whole unless an amount is given, or decides. */
    dispute: (id: string, type: string, status: string, amount?: number): SentEvent => {
      const invoice = find(id)
      const dispute = { status, amount: amount ?? totalOf(invoice) }
      invoice.dispute = dispute
      return event(`charge.dispute.${type}`, disputeOf(id, status, dispute.amount))
    },
    /** Credits an invoice as a whole, to the balance of the customer. */
    credit: (id: string): SentEvent => {
      const invoice = find(id)
      invoice.credited = totalOf(invoice)
      return event("credit_note.created", creditNoteOf(invoiceObject(invoice), "issued"))
    },
    voidCredit: (id: string, type = "credit_note.voided"): SentEvent => {
      const invoice = find(id)
      invoice.credited = 0
      return event(type, creditNoteOf(invoiceObject(invoice), "void"))
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
