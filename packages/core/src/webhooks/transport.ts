/** Sends webhooks: the addresses they may reach, their URLs, and the port. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as IpNetwork from "effect/net/IpNetwork"
import * as NetAddress from "effect/net/NetAddress"
import * as Result from "effect/Result"
import {
  ipv4Within,
  networksInclude,
  networksOption,
  parseAddress,
  untranslate,
} from "../base/address.ts"
import * as Setting from "../base/setting.ts"
import { TaggedError } from "../base/tagged-error.ts"

// From the IANA registries for special-purpose addresses, plus multicast and reserved addresses.
const nonPublicIpv4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  // Azure's metadata service.
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
].map(IpNetwork.fromStringUnsafe)

// Addresses outside are not public: unique local, link-local and multicast addresses, for example.
const publicIpv6 = ["2000::/3", "64:ff9b:1::/48"].map(IpNetwork.fromStringUnsafe)

// Includes Teredo, which tunnels to a host behind any IPv4 address.
const nonPublicIpv6 = ["2001::/23", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20"].map(
  IpNetwork.fromStringUnsafe,
)

const sixToFour = IpNetwork.fromStringUnsafe("2002::/16")

// For the translators of an operator (RFC 8215). They have a prefix in it that is not known here.
const localTranslation = IpNetwork.fromStringUnsafe("64:ff9b:1::/48")

// A translator reaches no host there (RFC 1122, 3.2.1.3).
const thisNetwork = IpNetwork.fromStringUnsafe("0.0.0.0/8")

// Where an IPv4 address is, by the length of the translator's prefix (RFC 6052, 2.2): 48, 56, 64 or 96.
const embeddings = [
  [6, 7, 9, 10],
  [7, 9, 10, 11],
  [9, 10, 11, 12],
  [12, 13, 14, 15],
]

/** Returns the IPv4 addresses to which translators and tunnels may send what is for an IPv6 address. */
const embeddedIn = (address: NetAddress.Ipv6Address): ReadonlyArray<NetAddress.Ipv4Address> => {
  if (IpNetwork.contains(sixToFour, address)) return [ipv4Within(address, [2, 3, 4, 5])]
  if (IpNetwork.contains(localTranslation, address)) {
    const all = embeddings.map((positions) => ipv4Within(address, positions))
    const hosts = all.filter((one) => !IpNetwork.contains(thisNetwork, one))
    return hosts.length > 0 ? hosts : all
  }
  const [, , , , fifth, sixth] = NetAddress.ipv6ToSegments(address)
  // ISATAP (RFC 5214, 6.1).
  const isTunnelled = (fifth === 0 || fifth === 0x200) && sixth === 0x5efe
  return isTunnelled ? [ipv4Within(address, [12, 13, 14, 15])] : []
}

/** Tells whether an address is public or allowed. What is inside decides for one that leads to IPv4. */
const isPermitted = (
  allowed: ReadonlyArray<IpNetwork.IpNetwork>,
  address: NetAddress.IpAddress,
): boolean => {
  const canonical = untranslate(address)
  if (networksInclude(allowed, canonical) || networksInclude(allowed, address)) return true
  if (NetAddress.isIpv4Address(canonical)) return !networksInclude(nonPublicIpv4, canonical)
  return (
    networksInclude(publicIpv6, canonical) &&
    !networksInclude(nonPublicIpv6, canonical) &&
    embeddedIn(canonical).every((inside) => isPermitted(allowed, inside))
  )
}

/** Tells whether an address is public. An IPv4-mapped or translated address counts as the IPv4 address. */
export const isPublic = (address: NetAddress.IpAddress): boolean => isPermitted([], address)

/** A URL's host before name resolution. */
export type Host =
  | { readonly _tag: "Literal"; readonly address: NetAddress.IpAddress }
  /** A name for this machine (RFC 6761, 6.3). */
  | { readonly _tag: "Localhost" }
  | { readonly _tag: "Name"; readonly name: string }

/** Classifies a `URL.hostname`. It has normalized decimal, octal and hexadecimal addresses. */
export const hostOf = (hostname: string): Host => {
  const address = parseAddress(hostname)
  if (address !== undefined) return { _tag: "Literal", address }
  return /(^|\.)localhost\.?$/i.test(hostname)
    ? { _tag: "Localhost" }
    : { _tag: "Name", name: hostname }
}

/** Options for the policy. */
export const addressPolicyOptions = Setting.object({
  /** Networks in CIDR notation that webhooks may reach although they are not public. Default: `[]`. */
  allowedNetworks: Setting.withDefault(networksOption, []),
})

/** The options as a host passes them. */
export interface AddressPolicyOptions extends Setting.InputOf<typeof addressPolicyOptions> {}

/** The options as the library uses them. */
export interface AddressPolicySettings extends Setting.OutputOf<typeof addressPolicyOptions> {}

/** Decides which addresses webhooks may reach. */
export class AddressPolicy extends Context.Service<
  AddressPolicy,
  {
    /** Tells whether webhooks may reach an address. */
    readonly permits: (address: NetAddress.IpAddress) => boolean
  }
>()("@tenure/core/AddressPolicy") {
  static readonly layer = (
    { allowedNetworks }: AddressPolicySettings = Setting.parse(addressPolicyOptions),
  ): Layer.Layer<AddressPolicy> =>
    Layer.succeed(AddressPolicy, {
      permits: (address) => isPermitted(allowedNetworks, address),
    })
}

/** Tells whether webhooks may reach a host, as far as is known before its name is resolved. */
export const permitsHost = (policy: AddressPolicy["Service"], hostname: string): boolean => {
  const host = hostOf(hostname)
  switch (host._tag) {
    case "Literal":
      return policy.permits(host.address)
    case "Localhost":
      return NetAddress.loopbackAddresses.some(policy.permits)
    case "Name":
      return true
  }
}

/** Tells whether a URL has `http:` and a name. Nothing proves which machine answers to that name. */
const isHttpToName = ({ hostname, protocol }: URL): boolean =>
  protocol === "http:" && hostOf(hostname)._tag === "Name"

/**
 * Tells whether a transport may send to a URL if it does not check the address it connects to: over
 * `http:`, it may not send to a name.
 */
export const permitsUnchecked = (policy: AddressPolicy["Service"], url: URL): boolean =>
  permitsHost(policy, url.hostname) && !isHttpToName(url)

/** A webhook URL's maximum length, in characters. */
export const maxWebhookUrlLength = 2048

/** The URL is invalid for a webhook; the message says why. */
export class InvalidWebhookUrl extends TaggedError("InvalidWebhookUrl")<{
  readonly message: string
}> {}

/** The rules for URLs besides their syntax. */
export interface WebhookUrlRules {
  /** Refuses `http:`. */
  readonly requireHttps: boolean
  /** Whether the transport sends over `http:` to host names. */
  readonly sendsHttpToNames: boolean
  /** Tells whether a host, spelled as in `URL.hostname`, may be reached. */
  readonly permitsHost: (hostname: string) => boolean
}

// URL parsers silently remove or repair these, and the URL then differs from the client's text.
const repaired = /[\p{Cc}\p{Cf}\p{Cs}\p{Z}\\]|^(?!https?:\/\/[^/])/iu

const invalid = (message: string): Result.Result<never, InvalidWebhookUrl> =>
  Result.fail(new InvalidWebhookUrl({ message }))

const privateAddress =
  "url must not point to a private address, unless webhooks.allowedNetworks of the server includes it"

/** Returns a parsed URL's error, if any. */
const faultOf = (url: URL, rules: WebhookUrlRules): string | undefined => {
  if (rules.requireHttps && url.protocol !== "https:") return "url must use https"
  if (!rules.sendsHttpToNames && isHttpToName(url)) {
    return "url must use https: this service sends http to IP addresses only"
  }
  if (url.username !== "" || url.password !== "") return "url must not contain credentials"
  return rules.permitsHost(url.hostname) ? undefined : privateAddress
}

/** Decodes a URL's text; fails with `InvalidWebhookUrl` for anything but a string. */
const parseWebhookUrl = (input: unknown): Result.Result<string, InvalidWebhookUrl> =>
  typeof input === "string"
    ? Result.succeed(input)
    : invalid("url is required and must be a string")

/** Where events are sent. Whether the server may send there is for its rules to say. */
export const webhookUrl: Setting.Setting<string, string, InvalidWebhookUrl> = {
  expected: "an absolute http or https URL",
  json: { type: "string", maxLength: maxWebhookUrlLength },
  read: parseWebhookUrl,
}

/**
 * Decodes a webhook's URL.
 *
 * @returns the URL as given, or `InvalidWebhookUrl` with an explanation
 */
export const decodeWebhookUrl = (
  input: unknown,
  rules: WebhookUrlRules,
): Result.Result<string, InvalidWebhookUrl> =>
  Result.flatMap(parseWebhookUrl(input), (text) => {
    if (text.length > maxWebhookUrlLength)
      return invalid(`url must be at most ${maxWebhookUrlLength} characters`)
    const url = repaired.test(text) ? null : URL.parse(text)
    if (url === null) return invalid("url must be a valid absolute http or https URL")
    const fault = faultOf(url, rules)
    return fault === undefined ? Result.succeed(text) : invalid(fault)
  })

/** A POST request to a receiver. */
export interface TransportRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A receiver's response. */
export interface TransportResponse {
  readonly status: number
  /** The `Retry-After` header, as sent. */
  readonly retryAfter: string | undefined
  /** The response's first kilobyte, as text. */
  readonly body: string
}

/** The receiver could not be reached or did not answer. */
export class TransportError extends TaggedError("TransportError")<{
  /**
   * A code for the cause, for example `ECONNREFUSED` or `AddressNotAllowed`. If a proxy between Tenure
   * and the receiver fails, `Proxy:` and its status or a code, for example `Proxy:407`.
   */
  readonly reason: string
}> {}

// The maximum number of bytes to read from a response body.
const maxResponseBytes = 64 * 1024

// The maximum number of bytes to keep with the attempt.
const keptBytes = 1024

/**
 * Sends webhooks' requests.
 *
 * An implementation connects only to addresses permitted by `AddressPolicy`, does not follow redirects,
 * and reads the response until its end or until `bodyReader` stops it. When interrupted, it closes the
 * connection at once.
 */
export class WebhookTransport extends Context.Service<
  WebhookTransport,
  {
    /**
     * Whether it sends over `http:` to host names. A transport must not, unless it checks the address
     * it connects to: plain HTTP does not prove which machine answers to a name. If this is `false`,
     * `Webhooks.create` refuses such URLs.
     */
    readonly sendsHttpToNames: boolean

    /**
     * Sends a request and returns the response, whatever its status. Once the status has arrived, it
     * counts: an error in the body only ends it.
     *
     * @param onResponse - called when the status has arrived, with a function that returns the response
     *   as far as it is received. So the status counts, too, if the body takes too long
     */
    readonly send: (
      request: TransportRequest,
      onResponse?: (received: () => TransportResponse) => void,
    ) => Effect.Effect<TransportResponse, TransportError>
  }
>()("@tenure/core/WebhookTransport") {
  /**
   * Sends with the runtime's `fetch`. Since `fetch` does not reveal the address it connects to, this
   * sends to names over https only: there, the certificate proves before the request leaves that the
   * name does not lead to a machine in the internal network.
   */
  static readonly layerFetch: Layer.Layer<WebhookTransport, never, AddressPolicy> = Layer.effect(
    WebhookTransport,
    Effect.map(AddressPolicy, (policy) => ({
      sendsHttpToNames: false,
      send: (request, onResponse) => send(policy, request, onResponse),
    })),
  )
}

/**
 * Creates a reader for a response body. `add` takes the next chunk and returns whether to continue;
 * `text` returns the first kilobyte.
 */
export const bodyReader = (): {
  readonly add: (chunk: Uint8Array) => boolean
  readonly text: () => string
} => {
  const decoder = new TextDecoder()
  let received = 0
  let text = ""
  return {
    add: (chunk) => {
      const room = Math.max(0, keptBytes - received)
      text += decoder.decode(chunk.subarray(0, room), { stream: true })
      received += chunk.length
      return received <= maxResponseBytes
    },
    text: () => text,
  }
}

/** Reads a body up to its end, the limit, or an error. */
const read = async (
  body: ReadableStream<Uint8Array> | null,
  { add }: ReturnType<typeof bodyReader>,
): Promise<void> => {
  try {
    // Leaving the loop cancels the stream, and this closes the connection.
    for await (const chunk of body ?? []) if (!add(chunk)) break
  } catch {
    // The status has arrived, so it counts.
  }
}

const send = (
  policy: AddressPolicy["Service"],
  { body, headers, url }: TransportRequest,
  onResponse: (received: () => TransportResponse) => void = () => {},
): Effect.Effect<TransportResponse, TransportError> => {
  const target = new URL(url)
  if (!permitsUnchecked(policy, target)) {
    return Effect.fail(new TransportError({ reason: "AddressNotAllowed" }))
  }
  return Effect.tryPromise({
    try: async (signal) => {
      const response = await fetch(target, {
        method: "POST",
        redirect: "manual",
        headers: { ...headers },
        body,
        signal,
      })
      const reader = bodyReader()
      const received = (): TransportResponse => ({
        status: response.status,
        retryAfter: response.headers.get("retry-after") ?? undefined,
        body: reader.text(),
      })
      onResponse(received)
      await read(response.body, reader)
      return received()
    },
    catch: (cause) => new TransportError({ reason: reasonOf(cause) }),
  })
}

/** Returns the underlying error's code if the runtime provides it, otherwise its name. */
const reasonOf = (cause: unknown): string => {
  const fault = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  if (!(fault instanceof Error)) return "Error"
  return "code" in fault && typeof fault.code === "string" ? fault.code : fault.name
}
