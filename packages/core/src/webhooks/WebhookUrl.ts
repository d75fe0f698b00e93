/** URLs of webhooks, and the rules for them. */

import * as Data from "effect/Data"
import * as Result from "effect/Result"
import { hostOf } from "./AddressPolicy.ts"

/** The longest URL of a webhook, in characters. */
export const maxLength = 2048

/** The URL cannot be the URL of a webhook; the message says why. */
export class InvalidWebhookUrl extends Data.TaggedError("InvalidWebhookUrl")<{
  readonly message: string
}> {}

/** The rules for URLs besides their syntax. */
export interface Rules {
  /** Refuses `http:`. */
  readonly requireHttps: boolean
  /** Whether the transport sends over `http:` to hosts that are names. */
  readonly sendsHttpToNames: boolean
  /** Tells whether a host, in the spelling of `URL.hostname`, may be reached. */
  readonly permitsHost: (hostname: string) => boolean
}

// A URL parser silently removes or repairs these, so that the URL is not the one that the client sent.
const repaired = /[\p{Cc}\p{Cf}\p{Cs}\p{Z}\\]|^(?!https?:\/\/[^/])/iu

const invalid = (message: string): Result.Result<never, InvalidWebhookUrl> =>
  Result.fail(new InvalidWebhookUrl({ message }))

/** Tells whether a URL has `http:` and a name. Nothing proves which machine answers to that name. */
export const isHttpToName = ({ hostname, protocol }: URL): boolean =>
  protocol === "http:" && hostOf(hostname)._tag === "Name"

/** Returns what is wrong with a URL that was parsed, if anything. */
const faultOf = (url: URL, rules: Rules): string | undefined => {
  if (rules.requireHttps && url.protocol !== "https:") return "url must use https"
  if (!rules.sendsHttpToNames && isHttpToName(url)) {
    return "url must use https: this service sends http to IP addresses only"
  }
  if (url.username !== "" || url.password !== "") return "url must not contain credentials"
  return rules.permitsHost(url.hostname) ? undefined : "url must not point to a private address"
}

/** Decodes the text of a URL; fails with `InvalidWebhookUrl` on anything but a string. */
export const decodeText = (input: unknown): Result.Result<string, InvalidWebhookUrl> =>
  typeof input === "string"
    ? Result.succeed(input)
    : invalid("url is required and must be a string")

/**
 * Decodes the URL of a webhook.
 *
 * @returns the URL as it was given, or `InvalidWebhookUrl`, whose message says what is wrong
 * @example
 * ```ts
 * import * as WebhookUrl from "tenure/WebhookUrl"
 *
 * const rules = { requireHttps: true, sendsHttpToNames: false, permitsHost: () => true }
 * WebhookUrl.decode("https://example.com/hooks", rules) // succeeds
 * WebhookUrl.decode("http://example.com/hooks", rules) // fails: url must use https
 * ```
 */
export const decode = (input: unknown, rules: Rules): Result.Result<string, InvalidWebhookUrl> =>
  Result.flatMap(decodeText(input), (text) => {
    if (text.length > maxLength) return invalid(`url must be at most ${maxLength} characters`)
    const url = repaired.test(text) ? null : URL.parse(text)
    if (url === null) return invalid("url must be a valid absolute http or https URL")
    const fault = faultOf(url, rules)
    return fault === undefined ? Result.succeed(text) : invalid(fault)
  })
