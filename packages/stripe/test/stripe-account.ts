/** An account at Stripe, with the API that is read, and the events that it would send. */

import { createServer } from "node:http"
import { Stripe } from "stripe"
import {
  type Invoice,
  type LineInput,
  type Subscription,
  chargeOf,
  chargesOf,
  creditNoteOf,
  disputeOf,
  eventText,
  invoiceOf,
  linesOf,
  refundOf,
  subscriptionOf,
  totalOf,
} from "./objects.ts"

/** The endpoint's signing secret. */
export const secret = "whsec_test_secret"

/** An event, as the account sends it. */
export interface SentEvent {
  readonly id: string
  readonly body: string
}

/** A client for the API at a port on this machine. */
export const clientAt = (port: number, more: { timeout?: number } = {}): Stripe =>
  new Stripe("sk_test_123", {
    host: "127.0.0.1",
    port,
    protocol: "http",
    maxNetworkRetries: 0,
    telemetry: false,
    ...more,
  })

/** Starts an account. Ids are counted, so a test can name them. */
export const startStripeAccount = async () => {
  const subscriptions = new Map<string, Subscription>()
  const invoices: Array<Invoice> = []
  const requests: Array<URL> = []
  const accounts: Array<unknown> = []
  let events = 0
  let refusal: { readonly status: number; readonly message: string } | undefined
  /** Charges for no invoice, newest last. */
  const singles: Array<ReturnType<typeof chargeOf>> = []
  let beforeAnswer: (path: string) => Promise<unknown> = async () => undefined

  const event = (type: string, object: object): SentEvent => {
    const id = `evt_${++events}`
    return { id, body: eventText(id, type, object) }
  }

  const find = (id: string): Invoice => {
    const invoice = invoices.find((one) => one.id === id)
    if (invoice === undefined) throw new Error(`no invoice ${id}`)
    return invoice
  }

  const subscription = (id: string): Subscription => {
    const found = subscriptions.get(id)
    if (found === undefined) throw new Error(`no subscription ${id}`)
    return found
  }

  const list = (url: URL, all: ReadonlyArray<{ readonly id: string }>) => {
    const limit = Number(url.searchParams.get("limit") ?? 10)
    const after = url.searchParams.get("starting_after")
    const start = all.findIndex(({ id }) => id === after) + 1
    const data = all.slice(start, start + limit)
    return { object: "list", url: url.pathname, data, has_more: all.length > start + limit }
  }

  const answer = (url: URL): object | undefined => {
    const { pathname, searchParams } = url
    const customer = searchParams.get("customer")
    const newestFirst = invoices
      .filter((one) => one.subscription.customer === customer)
      .toReversed()
    if (pathname === "/v1/invoices" && searchParams.get("status") === "paid") {
      const paths = [...searchParams].flatMap(([name, path]) =>
        name.startsWith("expand") ? path : [],
      )
      const found = newestFirst.map((invoice) => invoiceOf(invoice, paths))
      return list(url, found)
    }
    if (pathname === "/v1/disputes") {
      const disputed = invoices.flatMap(({ dispute, id }) =>
        dispute === undefined ? [] : [disputeOf(id, dispute.status, dispute.amount)],
      )
      const ofCharge = disputed.filter(({ charge }) => charge === searchParams.get("charge"))
      return list(url, ofCharge)
    }
    if (pathname === "/v1/charges") {
      const ofCustomer = singles.filter((charge) => charge.customer === customer)
      return list(url, [...ofCustomer.toReversed(), ...newestFirst.flatMap(chargesOf)])
    }
    const [, ofInvoice, charge] =
      /^\/v1\/(?:invoices\/(\w+)\/lines|charges\/(\w+))$/.exec(pathname) ?? []
    return ofInvoice === undefined
      ? invoices.flatMap(chargesOf).find(({ id }) => id === charge)
      : list(url, linesOf(find(ofInvoice)))
  }

  const server = createServer((request, response) => {
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
  const stripe = clientAt(typeof address === "object" && address !== null ? address.port : 0)

  return {
    stripe,
    /** Signs a body, as its request's header field. */
    sign: (payload: string, more = {}): string =>
      stripe.webhooks.generateTestHeaderString({ payload, secret, ...more }),
    requests,
    /** Each request's connected account. */
    accounts,
    /** Makes the API fail, or work again. */
    setDown: (isDown: boolean) => {
      refusal = isDown ? { status: 500, message: "no" } : undefined
    },
    /** Makes the API refuse every request. */
    refuse: (status: number, message: string) => {
      refusal = { status, message }
    },
    /** Runs between the moment at which the API reads its state and that at which it answers. */
    beforeAnswer: (run: (path: string) => Promise<unknown>) => {
      beforeAnswer = run
    },

    subscribe: (id: string, customer: string, metadata: Record<string, string>): void => {
      subscriptions.set(id, { id, customer, metadata, endedAt: null })
    },
    setMetadata: (id: string, metadata: Record<string, string>): void => {
      subscription(id).metadata = metadata
    },
    /** Pays an invoice. */
    pay: (subscriptionId: string, id: string, ...lines: ReadonlyArray<LineInput>): SentEvent => {
      const state = { parts: 1, refunded: 0, credited: 0, dispute: undefined }
      const paidAt = 1_795_000_000 + invoices.length
      const invoice = { id, subscription: subscription(subscriptionId), lines, ...state, paidAt }
      invoices.push(invoice)
      return event("invoice.paid", invoiceOf(invoice))
    },
    /** Sends an event about an invoice once more, perhaps with another type. */
    again: (id: string, type = "invoice.paid"): SentEvent => event(type, invoiceOf(find(id))),
    /** Charges a customer without an invoice. */
    charge: (customer: string, count: number): void => {
      for (let number = 0; number < count; number++) {
        const payment = `single_${singles.length}`
        singles.push(chargeOf({ payment, customer, amount: 500, refunded: 0, isDisputed: false }))
      }
    },
    /** Splits an invoice's payment. */
    split: (id: string, parts: number): void => {
      find(id).parts = parts
    },
    /** Refunds an invoice, as a whole unless an amount is given. */
    refund: (id: string, amount = Infinity): SentEvent => {
      const invoice = find(id)
      invoice.refunded = Math.min(totalOf(invoice), invoice.refunded + amount)
      return event("charge.refunded", chargesOf(invoice)[0] ?? {})
    },
    /** An invoice's refund fails: the money comes back. */
    failRefund: (id: string, type = "refund.failed"): SentEvent => {
      find(id).refunded = 0
      return event(type, refundOf(id, "failed"))
    },
    /** The bank disputes an invoice, as a whole unless an amount is given, or decides. */
    dispute: (id: string, type: string, status: string, amount = totalOf(find(id))): SentEvent => {
      find(id).dispute = { status, amount }
      return event(`charge.dispute.${type}`, disputeOf(id, status, amount))
    },
    /** Credits a whole invoice to the customer's balance. */
    credit: (id: string): SentEvent => {
      const invoice = find(id)
      invoice.credited = totalOf(invoice)
      return event("credit_note.created", creditNoteOf(invoice, "issued"))
    },
    voidCredit: (id: string, type = "credit_note.voided"): SentEvent => {
      const invoice = find(id)
      invoice.credited = 0
      return event(type, creditNoteOf(invoice, "void"))
    },
    cancel: (id: string, endedAt: number): SentEvent => {
      const canceled = subscription(id)
      canceled.endedAt = endedAt
      return event("customer.subscription.deleted", subscriptionOf(canceled))
    },
    other: (type: string): SentEvent => event(type, { id: "cus_1", object: "customer" }),
    close: () => new Promise<void>((resolve) => void server.close(() => resolve())),
  }
}

/** An account for tests. */
export type StripeAccount = Awaited<ReturnType<typeof startStripeAccount>>
