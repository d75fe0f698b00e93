/** The address that a request is counted under. */

import type * as IpNetwork from "effect/net/IpNetwork"
import * as NetAddress from "effect/net/NetAddress"
import * as Result from "effect/Result"
import type { ApiRequest } from "../ApiRequest.ts"
import * as Networks from "./networks.ts"

// Longer chains of proxies are not met with; a client may well send a longer header.
const maxHops = 32

const mappedPrefix = "::ffff:"

/** Parses an address with or without a port, as proxies write it. */
const parse = (text: string): NetAddress.IpAddress | undefined => {
  const bare = text.startsWith("[")
    ? text.slice(1).replace(/\](:[0-9]+)?$/, "")
    : text.replace(/^([0-9.]+):[0-9]+$/, "$1")
  const address = NetAddress.ipFromString(bare)
  return Result.isSuccess(address) ? NetAddress.toCanonical(address.success) : undefined
}

/** IPv4 addresses count by themselves; IPv6 clients have a /64 each, and count by that. */
const group = (address: NetAddress.IpAddress): string =>
  NetAddress.isIpv4Address(address)
    ? NetAddress.formatIp(address)
    : `${NetAddress.ipv6ToSegments(address)
        .slice(0, 4)
        .map((segment) => segment.toString(16))
        .join(":")}::/64`

/** Groups a socket's address. Node writes IPv4 plainly, or mapped where the socket is dual-stack. */
const groupSocket = (remote: string): string => {
  if (!remote.includes(":")) return remote
  if (remote.startsWith(mappedPrefix) && remote.includes(".")) {
    return remote.slice(mappedPrefix.length)
  }
  const address = parse(remote.replace(/%.*$/, ""))
  return address === undefined ? remote : group(address)
}

/**
 * The last address in a chain of proxies that no trusted proxy vouches for, walking from the
 * server outwards. An entry that is no address ends the walk: what lies beyond is hearsay.
 */
const walk = (
  nearest: NetAddress.IpAddress,
  forwardedFor: string,
  trusted: ReadonlyArray<IpNetwork.IpNetwork>,
): NetAddress.IpAddress => {
  let client = nearest
  let end = forwardedFor.length
  for (let hop = 0; hop < maxHops && end > 0 && Networks.includes(trusted, client); hop++) {
    const start = forwardedFor.lastIndexOf(",", end - 1)
    const next = parse(forwardedFor.slice(start + 1, end).trim())
    if (next === undefined) return client
    client = next
    end = start
  }
  return client
}

/**
 * Makes the function that tells which address a request is counted under: the socket's, or what
 * `X-Forwarded-For` says, as far as trusted proxies vouch for it.
 *
 * @param trusted - the networks of the proxies whose `X-Forwarded-For` counts
 */
export const make =
  (trusted: ReadonlyArray<IpNetwork.IpNetwork>) =>
  ({ headers, remoteAddress }: ApiRequest): string => {
    // A socket without an address is local; all of those count as one client.
    if (typeof remoteAddress !== "string") return "local"
    const forwardedFor = headers["x-forwarded-for"]
    if (trusted.length === 0 || forwardedFor === undefined) return groupSocket(remoteAddress)
    const nearest = parse(remoteAddress.replace(/%.*$/, ""))
    if (nearest === undefined) return remoteAddress
    const chain = typeof forwardedFor === "string" ? forwardedFor : forwardedFor.join(",")
    return group(walk(nearest, chain, trusted))
  }
