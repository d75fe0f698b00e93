/** The address under which a request is counted. */

import type * as IpNetwork from "effect/net/IpNetwork"
import * as NetAddress from "effect/net/NetAddress"
import * as Result from "effect/Result"
import * as Networks from "../base/Networks.ts"
import { own } from "../base/Own.ts"
import type { ApiRequest } from "./ApiRequest.ts"

// Real chains of proxies are shorter; a client may send a longer header.
const maxHops = 32

const mappedPrefix = "::ffff:"

/** Parses an address, with or without a port, as proxies write it. */
const parse = (text: string): NetAddress.IpAddress | undefined => {
  const bare = text.startsWith("[")
    ? text.slice(1).replace(/\](:[0-9]+)?$/, "")
    : text.replace(/^([0-9.]+):[0-9]+$/, "$1")
  const address = NetAddress.ipFromString(bare)
  return Result.isSuccess(address) ? NetAddress.toCanonical(address.success) : undefined
}

/** Returns an IPv4 address itself, and the /64 of an IPv6 address: a client has a whole one. */
const group = (address: NetAddress.IpAddress): string =>
  NetAddress.isIpv4Address(address)
    ? NetAddress.formatIp(address)
    : `${NetAddress.ipv6ToSegments(address)
        .slice(0, 4)
        .map((segment) => segment.toString(16))
        .join(":")}::/64`

// All clients whose address the host does not know count as one.
const unknown = "local"

const octet = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
const dottedQuad = new RegExp(`^${octet}(\\.${octet}){3}$`)

/** Groups the address of a socket. On a dual-stack socket, Node writes IPv4 as mapped IPv6. */
const groupSocket = (remote: string): string => {
  const bare = remote.startsWith(mappedPrefix) ? remote.slice(mappedPrefix.length) : remote
  if (dottedQuad.test(bare)) return bare
  const address = parse(remote.replace(/%.*$/, ""))
  return address === undefined ? unknown : group(address)
}

/**
 * Walks a chain of proxies from the server outwards and returns the first address that is not a
 * trusted proxy's. An entry that is not an address ends the walk: nothing vouches for those beyond.
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
 * Makes the function that returns the address under which a request is counted: that of the socket,
 * or of `X-Forwarded-For` as far as trusted proxies vouch for it. Text that is not an address counts as
 * no address.
 *
 * @param trusted - the networks of the proxies whose `X-Forwarded-For` is trusted
 */
export const make =
  (trusted: ReadonlyArray<IpNetwork.IpNetwork>) =>
  ({ headers, remoteAddress }: ApiRequest): string => {
    if (typeof remoteAddress !== "string") return unknown
    const forwardedFor = own(headers, "x-forwarded-for")
    if (trusted.length === 0 || forwardedFor === undefined) return groupSocket(remoteAddress)
    const nearest = parse(remoteAddress.replace(/%.*$/, ""))
    if (nearest === undefined) return unknown
    const chain = typeof forwardedFor === "string" ? forwardedFor : forwardedFor.join(",")
    return group(walk(nearest, chain, trusted))
  }
