/** Receives webhooks from Stripe: payments extend memberships, refunds and cancellations shorten them. */

import type { Tenure } from "@tenure/core"
import type Stripe from "stripe"
import { type PaymentRules, cancellationRules } from "./paid-until.ts"
import { type FindMember, idOf } from "./payments.ts"
import { type Settling, makeSettle } from "./settle.ts"

export { type FindMember } from "./payments.ts"

/** The options for `stripeWebhook`. */
export interface StripeWebhookOptions {
  /** Tenure, as `createTenure` returns it. */
  readonly tenure: Pick<Tenure, "memberships">
  /** A client for Stripe. A restricted key is enough if it may read charges, invoices and subscriptions. */
  readonly stripe: Pick<Stripe, "charges" | "invoices" | "webhooks">
  /** The webhook endpoint's signing secret, `whsec_…`; several while one replaces another. */
  readonly secret: string | ReadonlyArray<string>
  /**
   * Finds a subscription's member. Returns `undefined` to ignore the subscription. Default: `project_id` and `user_id`
   * in its metadata, unless a connected account has sent the event.
   */
  readonly member?: FindMember | undefined
  /**
   * How many days a membership lasts after the paid period, while Stripe collects the next payment: 0 to 365. They end
   * with the subscription. Default: 1.
   */
  readonly graceDays?: number | undefined
  /**
   * When a canceled subscription ends the membership: with the paid period (`"periodEnd"`), or when the subscription
   * ends, if that is earlier (`"now"`). Default: `"periodEnd"`.
   */
  readonly cancellation?: PaymentRules["cancellation"] | undefined
  /** Whether an invoice counts as unpaid once it is refunded (`"shorten"`), or as paid (`"keep"`). Default: `"shorten"`. */
  readonly refunds?: (typeof refundRules)[number] | undefined
  /**
   * Whether the payment for a missing membership creates it (`"grant"`), or is rejected, so that Stripe sends the event
   * again later (`"reject"`). Default: `"grant"`.
   */
  readonly missing?: (typeof missingRules)[number] | undefined
}

/** How to answer Stripe. */
export interface StripeAnswer {
  /** 200 if the event was handled or has no effect; 400 if the request is not a signed event. */
  readonly status: 200 | 400
  /** The text to send. */
  readonly message: string
}

/** A receiver for Stripe's webhooks. */
export interface StripeWebhook {
  /**
   * Handles an event. Rejects if the event has to come again, because Stripe or Tenure did not answer, or the project is
   * missing: answer with 500 or another error status, and Stripe sends it again.
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

const refundRules = ["shorten", "keep"] as const

const missingRules = ["grant", "reject"] as const

const dayMillis = 86_400_000

/** More than Stripe sends in one event. */
const maxBodyBytes = 1024 * 1024

/** Reads the metadata of the host's own subscriptions. Owners of connected accounts could name any member. */
const memberOfMetadata: FindMember = ({ metadata }, account) => {
  const { project_id: projectId, user_id: userId } = metadata
  if (account !== undefined || projectId === undefined || userId === undefined) return undefined
  return { projectId, userId }
}

/** Reads an option with a few values. Throws a `TypeError` for any other value. */
const readChoice = <A extends string>(
  name: string,
  choices: ReadonlyArray<A>,
  given: A | undefined,
  byDefault: A,
): A => {
  if (given === undefined) return byDefault
  if (choices.includes(given)) return given
  throw new TypeError(`${name} must be ${choices.map((choice) => `"${choice}"`).join(" or ")}`)
}

const readSecrets = (given: string | ReadonlyArray<string>): ReadonlyArray<string> => {
  const secrets = [given].flat()
  if (secrets.length > 0 && secrets.every((secret) => secret?.startsWith?.("whsec_")))
    return secrets
  throw new TypeError("secret must be the signing secret of the webhook endpoint, whsec_…")
}

const readRules = ({
  cancellation,
  graceDays = 1,
  refunds,
}: StripeWebhookOptions): PaymentRules => {
  if (!(graceDays >= 0 && graceDays <= 365)) throw new TypeError("graceDays must be 0 to 365")
  return {
    grace: Math.round(graceDays * dayMillis),
    cancellation: readChoice("cancellation", cancellationRules, cancellation, "periodEnd"),
    refundsShorten: readChoice("refunds", refundRules, refunds, "shorten") === "shorten",
  }
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null

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

/** Returns the work for an event; `undefined` if it has no effect. */
const settlingOf = (event: Stripe.Event): Settling | undefined => {
  switch (event.type) {
    case "charge.refunded":
    case "credit_note.created":
    case "customer.subscription.deleted":
    case "invoice.paid": {
      const customer = idOf(event.data.object.customer)
      if (typeof customer !== "string") return undefined
      const paidInvoice = event.type === "invoice.paid" ? event.data.object.id : undefined
      return { eventId: event.id, customer, paidInvoice, account: event.account }
    }
    default:
      return undefined
  }
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
 * Creates a receiver for `invoice.paid`, `charge.refunded`, `credit_note.created` and `customer.subscription.deleted`.
 * Answers 200 to other events, which have no effect. Throws a
 * `TypeError` if an option is invalid.
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
  const { member = memberOfMetadata, stripe, tenure } = options
  const secrets = readSecrets(options.secret)
  const missing = readChoice("missing", missingRules, options.missing, "grant")
  const settle = makeSettle({
    memberships: tenure.memberships,
    stripe,
    findMember: member,
    rules: readRules(options),
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
    await settle(settling)
    return { status: 200, message: "Handled" }
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
