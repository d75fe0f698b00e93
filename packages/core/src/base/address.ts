/** IP addresses as sockets, proxies and hosts write them, and networks in CIDR notation. */

import * as IpNetwork from "effect/net/IpNetwork"
import * as NetAddress from "effect/net/NetAddress"
import * as Result from "effect/Result"
import * as Setting from "./setting.ts"

// The well-known prefix for translators such as NAT64 (RFC 6052): the IPv4 address is in the last four
// bytes.
const translated = IpNetwork.fromStringUnsafe("64:ff9b::/96")

/** Reads an IPv4 address from four bytes in an IPv6 address. */
export const ipv4Within = (
  address: NetAddress.Ipv6Address,
  positions: ReadonlyArray<number>,
): NetAddress.Ipv4Address => {
  const octets = NetAddress.ipv6ToOctets(address)
  return NetAddress.ipv4FromBytesUnsafe(Uint8Array.from(positions, (at) => octets[at] ?? 0))
}

/** Returns the IPv4 address inside an IPv4-mapped address, or one for a translator; others unchanged. */
export const untranslate = (address: NetAddress.IpAddress): NetAddress.IpAddress =>
  NetAddress.isIpv6Address(address) && IpNetwork.contains(translated, address)
    ? ipv4Within(address, [12, 13, 14, 15])
    : NetAddress.toCanonical(address)

/**
 * Parses an address: bare, in brackets, with a port, or with a zone; the zone is dropped. Returns the
 * IPv4 address for an IPv4-mapped one, and `undefined` for any other text.
 */
export const parseAddress = (text: string): NetAddress.IpAddress | undefined => {
  const [, bracketed, dotted] = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/.exec(text) ?? []
  const bare = (bracketed ?? dotted ?? text).replace(/(:[\da-f.]*)%[^%]+$/i, "$1")
  const address = NetAddress.ipFromString(bare)
  return Result.isSuccess(address) ? NetAddress.toCanonical(address.success) : undefined
}

const parseNetwork = (given: unknown): IpNetwork.IpNetwork | undefined =>
  typeof given === "string" ? Result.getOrUndefined(IpNetwork.fromString(given)) : undefined

/** An option with a list of networks. */
export const networksOption = Setting.list(
  Setting.custom<string, IpNetwork.IpNetwork>(
    'a network in CIDR notation, such as "10.0.0.0/8"',
    parseNetwork,
  ),
)

/** Tells whether any network contains the address. */
export const networksInclude = (
  networks: ReadonlyArray<IpNetwork.IpNetwork>,
  address: NetAddress.IpAddress,
): boolean => networks.some((network) => IpNetwork.contains(network, address))
