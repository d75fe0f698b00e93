/** Which addresses webhooks may reach: the public internet, and what the operator allows besides. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as IpNetwork from "effect/net/IpNetwork"
import * as NetAddress from "effect/net/NetAddress"
import * as Result from "effect/Result"
import * as Networks from "./internal/networks.ts"
import type { InvalidInput } from "./InvalidInput.ts"

// The IANA registries of special-purpose addresses, with multicast and what is reserved.
const nonPublicIpv4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  // The metadata service of Azure.
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

// All global unicast addresses there are. What lies outside, such as NAT64 (64:ff9b::/96), unique
// local, link-local and multicast addresses, is not public.
const globalUnicast = IpNetwork.fromStringUnsafe("2000::/3")

// Tunnels to IPv4 (Teredo, 6to4) among them, behind which any address may hide.
const nonPublicIpv6 = [
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "2620:4f:8000::/48",
  "3fff::/20",
].map(IpNetwork.fromStringUnsafe)

/** Tells whether an address is one of the public internet. IPv4-mapped ones are judged as IPv4. */
export const isPublic = (address: NetAddress.IpAddress): boolean => {
  const canonical = NetAddress.toCanonical(address)
  return NetAddress.isIpv4Address(canonical)
    ? !Networks.includes(nonPublicIpv4, canonical)
    : Networks.includes([globalUnicast], canonical) && !Networks.includes(nonPublicIpv6, canonical)
}

/** What a URL's host says without being looked up. */
export type Host =
  | { readonly _tag: "Literal"; readonly address: NetAddress.IpAddress }
  /** A name that stands for this machine by definition (RFC 6761, 6.3). */
  | { readonly _tag: "Localhost" }
  | { readonly _tag: "Name"; readonly name: string }

/** Classifies `URL.hostname`, which has decimal, octal and hexadecimal spellings undone already. */
export const hostOf = (hostname: string): Host => {
  const bare = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname
  const address = NetAddress.ipFromString(bare)
  if (Result.isSuccess(address)) return { _tag: "Literal", address: address.success }
  return /(^|\.)localhost\.?$/i.test(bare) ? { _tag: "Localhost" } : { _tag: "Name", name: bare }
}

/** Options of the policy. */
export interface Options {
  /** Networks that webhooks may reach although they are not public, in CIDR notation; none by default. */
  readonly allowedNetworks?: ReadonlyArray<string> | undefined
}

/** Decides which addresses webhooks may reach. */
export class AddressPolicy extends Context.Service<
  AddressPolicy,
  {
    readonly permits: (address: NetAddress.IpAddress) => boolean
  }
>()("@tenure/core/AddressPolicy") {
  static readonly layer = (options: Options = {}): Layer.Layer<AddressPolicy, InvalidInput> =>
    Layer.effect(
      AddressPolicy,
      Effect.map(
        Networks.parse("webhooks.allowedNetworks", options.allowedNetworks ?? []),
        (allowed) => ({
          permits: (address) =>
            isPublic(address) || Networks.includes(allowed, NetAddress.toCanonical(address)),
        }),
      ),
    )
}

/** Tells whether a host may be a webhook's, as far as that shows before any name is looked up. */
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
