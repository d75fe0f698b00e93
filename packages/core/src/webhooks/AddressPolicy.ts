/** The addresses that webhooks may reach: the public internet, and networks that the operator allows. */

import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import * as IpNetwork from "effect/net/IpNetwork"
import * as NetAddress from "effect/net/NetAddress"
import * as Result from "effect/Result"
import * as Networks from "../base/Networks.ts"
import * as Setting from "../base/Setting.ts"

// From the IANA registries of special-purpose addresses, with multicast and reserved addresses.
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

// Contains all global unicast addresses. Addresses outside are not public: NAT64 (64:ff9b::/96),
// unique local, link-local and multicast addresses, for example.
const globalUnicast = IpNetwork.fromStringUnsafe("2000::/3")

// Includes Teredo and 6to4, which tunnel to any IPv4 address.
const nonPublicIpv6 = [
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "2620:4f:8000::/48",
  "3fff::/20",
].map(IpNetwork.fromStringUnsafe)

/** Tells whether an address is public. An IPv4-mapped IPv6 address counts as the IPv4 address. */
export const isPublic = (address: NetAddress.IpAddress): boolean => {
  const canonical = NetAddress.toCanonical(address)
  return NetAddress.isIpv4Address(canonical)
    ? !Networks.includes(nonPublicIpv4, canonical)
    : Networks.includes([globalUnicast], canonical) && !Networks.includes(nonPublicIpv6, canonical)
}

/** The host of a URL, before any name is resolved. */
export type Host =
  | { readonly _tag: "Literal"; readonly address: NetAddress.IpAddress }
  /** A name that always stands for this machine (RFC 6761, 6.3). */
  | { readonly _tag: "Localhost" }
  | { readonly _tag: "Name"; readonly name: string }

/** Classifies a `URL.hostname`, in which decimal, octal and hexadecimal addresses are normalized. */
export const hostOf = (hostname: string): Host => {
  const bare = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname
  const address = NetAddress.ipFromString(bare)
  if (Result.isSuccess(address)) return { _tag: "Literal", address: address.success }
  return /(^|\.)localhost\.?$/i.test(bare) ? { _tag: "Localhost" } : { _tag: "Name", name: bare }
}

/** The options of the policy. */
export const options = Setting.struct({
  /**
   * Networks in CIDR notation that webhooks may reach although they are not public. Default: `[]`.
   */
  allowedNetworks: Setting.withDefault(Networks.setting, []),
})

/** The options as a host passes them. */
export interface Options extends Setting.Input<typeof options> {}

/** The options as the library uses them. */
export interface Settings extends Setting.Output<typeof options> {}

/** Decides which addresses webhooks may reach. */
export class AddressPolicy extends Context.Service<
  AddressPolicy,
  {
    /** Tells whether webhooks may reach an address. */
    readonly permits: (address: NetAddress.IpAddress) => boolean
  }
>()("@tenure/core/AddressPolicy") {
  static readonly layer = (
    { allowedNetworks }: Settings = Setting.readSync(options),
  ): Layer.Layer<AddressPolicy> =>
    Layer.succeed(AddressPolicy, {
      permits: (address) =>
        isPublic(address) || Networks.includes(allowedNetworks, NetAddress.toCanonical(address)),
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
