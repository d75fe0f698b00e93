/** Receives webhooks from Stripe: payments extend memberships, refunds and cancellations shorten them, and disputes may pause them. */

import type { Tenure } from "@tenure/core"
import { Setting, hostLoggerOption } from "@tenure/core/internal"
import type Stripe from "stripe"
import { cancellationRules } from "./paid-until.ts"
import { memberIn } from "./payment.ts"
import { type FindMember, idOf } from "./payments.ts"
import { type Orphan, type Settling, makeSettle } from "./settle.ts"

export {
  applyPayment,
  readPayment,
  type InvoiceInput,
  type LinesClient,
  type PaidPeriod,
  type Payment,
} from "./payment.ts"
export { type FindMember } from "./payments.ts"

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null

/** Makes the test for an object with all of these properties. */
const has =
  (...names: ReadonlyArray<string>) =>
  (value: unknown): boolean =>
    isObject(value) && names.every((name) => name in value)

const isSecret = (value: unknown): value is string =>
  typeof value === "string" && value.startsWith("whsec_")

const readSecrets = (given: unknown): ReadonlyArray<string> | undefined => {
  const secrets: ReadonlyArray<unknown> = Array.isArray(given) ? given : [given]
  return secrets.length > 0 && secrets.every(isSecret) ? secrets : undefined
}

/** The options. */
export const stripeWebhookOptions = Setting.object({
  /** Tenure, as `createTenure` returns it. */
  tenure: Setting.guarded<Pick<Tenure, "memberships">>(
    "the result of await createTenure(…)",
    has("memberships"),
  ),
  /** A client for Stripe. A restricted key is enough if it may read charges, disputes, invoices and subscriptions. */
  stripe: Setting.guarded<Pick<Stripe, "charges" | "disputes" | "invoices" | "webhooks">>(
    "a client of Stripe's library",
    has("charges", "disputes", "invoices", "webhooks"),
  ),
  /** The webhook endpoint's signing secret, `whsec_…`; several while one replaces another. */
  secret: Setting.custom<string | ReadonlyArray<string>, ReadonlyArray<string>>(
    "the signing secret of the webhook endpoint, whsec_…, or an array of several",
    readSecrets,
    // An invalid value may still be a secret.
    () => "another value",
  ),
  /**
   * Finds a subscription's member. Returns `null` to ignore the subscription, and `undefined` if it should have a member:
   * then its payments are logged. Default: `project_id` and `user_id` in its metadata, unless a connected account has sent
   * the event.
   */
  member: Setting.callback<FindMember>(),
  /**
   * How many days a membership lasts after the paid period, while Stripe collects the next payment. They end with the
   * subscription. Default: `1`, and `0` in a project with grace.
   */
  graceDays: Setting.optional(
    Setting.guarded<number>(
      "a number from 0 to 365",
      (given) => typeof given === "number" && given >= 0 && given <= 365,
    ),
  ),
  /**
   * When a canceled subscription ends the membership: with the paid period (`"periodEnd"`), or when the subscription
   * ends, if that is earlier (`"now"`). Default: `"periodEnd"`.
   */
  cancellation: Setting.withDefault(Setting.oneOf(cancellationRules), "periodEnd"),
  /**
   * Whether an invoice counts as unpaid while all its money is refunded, credited or disputed (`"shorten"`), or as paid
   * (`"keep"`). Default: `"shorten"`.
   */
  refunds: Setting.withDefault(Setting.oneOf(["shorten", "keep"]), "shorten"),
  /**
   * Whether an invoice counts as unpaid while the bank decides on a dispute, as after a refund (`"shorten"`), or as paid,
   * and the membership is paused (`"pause"`). Once the dispute is closed, it is resumed, and what the option `refunds` says
   * applies. Default: `"shorten"`.
   */
  disputes: Setting.withDefault(Setting.oneOf(["shorten", "pause"]), "shorten"),
  /**
   * Whether the payment for a missing membership creates it (`"grant"`), or is rejected, so that Stripe sends the event
   * again later (`"reject"`). Default: `"grant"`.
   */
  missing: Setting.withDefault(Setting.oneOf(["grant", "reject"]), "grant"),
  /** Told of paid invoices without a member, as pino is: fields first, then a message. Default: the console. */
  logger: Setting.optional(hostLoggerOption),
})

/** The options as a host passes them. */
export interface StripeWebhookOptions extends Setting.InputOf<typeof stripeWebhookOptions> {}

/** How to answer Stripe. */
export interface StripeAnswer {
  /** 200 if the event was handled or has no effect; 400 if the request is not a signed event. */
  readonly status: 200 | 400
  /** The text to send. It says why nothing is to do, and for a paid invoice without a member, how to correct that. */
  readonly message: string
}

/** A receiver for Stripe's webhooks. */
export interface StripeWebhook {
  /**
   * Handles an event. Rejects if the event has to come again, because Stripe refused a request, or Stripe or Tenure did
   * not answer: answer with 500 or another error status, and Stripe sends it again.
   *
   * @param body - as it arrived: text or bytes, not a parsed object
   * @param signature - the header field `stripe-signature`
   */
  readonly receive: (
    body: string | Uint8Array,
    signature: string | ReadonlyArray<string> | null | undefined,
  ) => Promise<StripeAnswer>
  /** Handles an event in a web request. Rejects as `receive` does; hosts answer this with 500. */
  readonly fetch: (request: Request) => Promise<Response>
}

const dayMillis = 86_400_000

/** More than Stripe sends in one event. */
const maxBodyBytes = 1024 * 1024

/** Reads the metadata of the host's own subscriptions. Owners of connected accounts could name any member. */
const memberOfMetadata: FindMember = ({ metadata }, account) =>
  account === undefined ? memberIn(metadata) : undefined

const idsOf = (reference: Parameters<typeof idOf>[0]): ReadonlyArray<string> => {
  const id = idOf(reference)
  return id === undefined ? [] : [id]
}

/** Tells whether a signed text is an event, as far as events are read here. */
const isEvent = (event: unknown): event is Stripe.Event =>
  isObject(event) &&
  "id" in event &&
  typeof event.id === "string" &&
  /^\w{1,200}$/.test(event.id) &&
  "data" in event &&
  isObject(event.data) &&
  "object" in event.data &&
  isObject(event.data.object)

/** Returns an event's work, without its ids. */
const workOf = (
  event: Stripe.Event,
): (Partial<Settling> & Pick<Settling, "subjects">) | undefined => {
  switch (event.type) {
    case "invoice.paid":
    case "invoice.payment_succeeded": {
      const { customer, id } = event.data.object
      return { customer: idOf(customer), subjects: [id], isPayment: true, paidInvoice: id }
    }
    case "credit_note.created":
    case "credit_note.updated":
    case "credit_note.voided": {
      const { customer, invoice, status } = event.data.object
      const isPayment = status === "void"
      return { customer: idOf(customer), subjects: idsOf(invoice), isPayment }
    }
    case "charge.refunded": {
      const charge = event.data.object
      const { customer, id, payment_intent: intent } = charge
      return { customer: idOf(customer), charge, subjects: [id, ...idsOf(intent)] }
    }
    case "charge.refund.updated":
    case "refund.failed":
    case "refund.updated": {
      const { charge, customer, payment_intent: intent, status } = event.data.object
      return {
        customer: idOf(customer),
        charge: idOf(charge),
        subjects: [...idsOf(charge), ...idsOf(intent)],
        isPayment: status === "failed" || status === "canceled",
      }
    }
    case "charge.dispute.closed":
    case "charge.dispute.created":
    case "charge.dispute.funds_reinstated":
    case "charge.dispute.funds_withdrawn":
    case "charge.dispute.updated": {
      const { charge, payment_intent: intent, status } = event.data.object
      return {
        charge: idOf(charge),
        subjects: [...idsOf(charge), ...idsOf(intent)],
        isPayment: status === "won",
      }
    }
    case "customer.subscription.deleted": {
      const { customer, id } = event.data.object
      return { customer: idOf(customer), subjects: [id] }
    }
    default:
      return undefined
  }
}

/** Returns the work for an event; `undefined` if it has no effect. */
const settlingOf = (event: Stripe.Event): Settling | undefined => {
  const work = workOf(event)
  if (work === undefined) return undefined
  const { charge, customer, isPayment = false, paidInvoice, subjects } = work
  // A payment without a customer is for no subscription.
  if (customer === undefined && typeof charge !== "string") return undefined
  const { account, id: eventId } = event
  return { eventId, account, customer, charge, subjects, isPayment, paidInvoice }
}

/** Says why a paid invoice belongs to no member, and how to fix that. */
const describeOrphan = (
  { invoice, refusal, subscription }: Orphan,
  { account, id }: Stripe.Event,
  hasFinder: boolean,
): string => {
  const again = `; then have Stripe send ${id} again`
  if (refusal !== undefined) {
    return `${invoice} is paid, but the member of ${subscription} is invalid: ${refusal}. Correct it${again}`
  }
  if (hasFinder) {
    return `${invoice} is paid, but the option member has found nobody for ${subscription}. Return its member, or null to ignore it${again}`
  }
  return account === undefined
    ? `${invoice} is paid, but the metadata of ${subscription} names no member. Set project_id and user_id there, and in subscription_data.metadata of new Checkout sessions${again}`
    : `${invoice} is paid, but its connected account ${account} may not name members. Pass the option member${again}`
}

/** Reads a body; `undefined` if it is too large. A broken one is read as empty, and fails verification. */
const readBody = async ({ body }: Request): Promise<Uint8Array | undefined> => {
  const chunks: Array<Uint8Array> = []
  let length = 0
  try {
    // Leaving the loop cancels the stream.
    for await (const chunk of body ?? []) {
      length += chunk.length
      if (length > maxBodyBytes) return undefined
      chunks.push(chunk)
    }
  } catch {
    return new Uint8Array()
  }
  const bytes = new Uint8Array(length)
  let offset = 0
  for (const chunk of chunks) {
    bytes.set(chunk, offset)
    offset += chunk.length
  }
  return bytes
}

/**
 * Creates a receiver for events about invoices, refunds, disputes, credit notes and canceled subscriptions. Answers 200 to
 * other events, which have no effect. Throws `InvalidInput` if an option is invalid.
 * @example
 * ```ts
 * import { Stripe } from "stripe"
 * import { createTenure } from "tenure"
 * import { memory } from "tenure/memory"
 * import { stripeWebhook } from "tenure/stripe"
 *
 * const tenure = await createTenure({ stores: memory() })
 * const stripe = new Stripe("sk_test_…")
 * const webhook = stripeWebhook({ tenure, stripe, secret: "whsec_…" })
 *
 * export const POST = webhook.fetch
 * ```
 */
export const stripeWebhook = (options: StripeWebhookOptions): StripeWebhook => {
  const {
    cancellation,
    disputes,
    graceDays,
    logger = console,
    member,
    missing,
    refunds,
    secret: secrets,
    stripe,
    tenure,
  } = Setting.parse(stripeWebhookOptions, options)
  const settle = makeSettle({
    memberships: tenure.memberships,
    stripe,
    findMember: member ?? memberOfMetadata,
    rules: {
      cancellation,
      refundsShorten: refunds === "shorten",
      disputesPause: disputes === "pause",
    },
    grace: graceDays === undefined ? undefined : Math.round(graceDays * dayMillis),
    grantsMissing: missing === "grant",
  })

  /** Returns an event signed with one secret at most five minutes ago. */
  const verify = async (
    body: string | Uint8Array,
    signature: string,
  ): Promise<Stripe.Event | undefined> => {
    for (const secret of secrets) {
      try {
        const event: unknown = await stripe.webhooks.constructEventAsync(body, signature, secret)
        if (isEvent(event)) return event
      } catch {
        // Stripe's library throws if the signature is another one or too old, or the body is not JSON.
      }
    }
    return undefined
  }

  const receive: StripeWebhook["receive"] = async (body, signature) => {
    const event = typeof signature === "string" ? await verify(body, signature) : undefined
    if (event === undefined) return { status: 400, message: "Not an event that Stripe has signed" }
    const settling = settlingOf(event)
    if (settling === undefined) return { status: 200, message: "Ignored" }
    const { obstacle, orphans } = await settle(settling)
    const problems = orphans.map((orphan) => {
      const { invoice, subscription } = orphan
      const problem = describeOrphan(orphan, event, member !== undefined)
      logger.warn({ invoice, subscription, event_id: event.id }, problem)
      return problem
    })
    if (problems.length > 0) return { status: 200, message: problems.join("\n") }
    const message = obstacle === undefined ? "Handled" : `Nothing to do: ${obstacle}`
    return { status: 200, message }
  }

  return {
    receive,
    fetch: async (request) => {
      if (request.method !== "POST") {
        return new Response("Use POST", { status: 405, headers: { allow: "POST" } })
      }
      const body = await readBody(request)
      if (body === undefined) return new Response("The body is too large", { status: 413 })
      const { message, status } = await receive(body, request.headers.get("stripe-signature"))
      return new Response(message, { status })
    },
  }
}
