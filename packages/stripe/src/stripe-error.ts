/** Describes errors of Stripe's API. */

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null

/** Stripe masks keys in its messages, but a proxy may not. */
const withoutKeys = (text: string): string =>
  text.replaceAll(/\b(sk|rk|pk|whsec)_[\w*]+/g, (_key, kind: string) => `${kind}_…`)

const again = "Stripe sends the event again"

const describeStatus = (status: number, message: string): string => {
  if (status === 401) {
    return `Stripe has refused the API key (401): ${message}. Check the key of the option stripe`
  }
  if (status === 403) {
    return `Stripe has refused permission (403): ${message}. Change the API key's permissions`
  }
  if (status === 429)
    return `Stripe has answered that requests are too many (429): ${message}. ${again}`
  if (status >= 500) return `Stripe has failed (${status}): ${message}. ${again}`
  return `Stripe has refused a request (${status}): ${message}`
}

/** Describes why a request to Stripe failed. */
const describeStripeError = (error: unknown): string => {
  const message = withoutKeys(error instanceof Error ? error.message : String(error)).replace(
    /\.+$/,
    "",
  )
  const status = isObject(error) && "statusCode" in error ? error.statusCode : undefined
  return typeof status === "number"
    ? describeStatus(status, message)
    : `Stripe has not answered: ${message}. ${again}`
}

/**
 * Waits for Stripe. Rejects with an error describing Stripe's answer, and no more: Express would answer with the
 * status and the headers in an error from Stripe's library.
 */
export const fromStripe = <A>(answer: Promise<A>): Promise<A> =>
  answer.catch((error: unknown) => {
    throw new Error(describeStripeError(error))
  })
