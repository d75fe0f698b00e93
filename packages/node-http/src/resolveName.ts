/**
 * Resolves host names as `dns.lookup` does, but without its threads: the process has few of them, and
 * look-ups at a name server that does not answer would hold up all others.
 */

import { type LookupAddress, Resolver } from "node:dns"
import { isIP } from "node:net"
import { type FindInHosts, makeFindInHosts } from "./hostsFile.ts"

/** Calls back with all addresses of a name. */
export type Resolve = (
  hostname: string,
  callback: (error: NodeJS.ErrnoException | null, addresses: ReadonlyArray<LookupAddress>) => void,
) => void

// The time for each try, in milliseconds. All tries together take less than an attempt may.
const timeout = 2000
const tries = 3

const addressOf = (text: string): LookupAddress => ({ address: text, family: isIP(text) })

/** Resolves both IPv4 and IPv6 addresses. Fails only if neither are found. */
const resolveInDns =
  (resolver: Resolver): Resolve =>
  (hostname, callback) => {
    const found: Array<LookupAddress> = []
    let pending = 2
    const collect = (
      error: NodeJS.ErrnoException | null,
      addresses: ReadonlyArray<string> = [],
    ): void => {
      found.push(...addresses.map(addressOf))
      pending--
      if (pending === 0) callback(found.length === 0 ? error : null, found)
    }
    resolver.resolve4(hostname, collect)
    resolver.resolve6(hostname, collect)
  }

/** Makes a function that resolves names: in the hosts file, then in the DNS without search domains. */
export const makeResolve = (
  resolver: Resolver = new Resolver({ timeout, tries }),
  findInHosts: FindInHosts = makeFindInHosts(),
): Resolve => {
  const resolve = resolveInDns(resolver)
  return (hostname, callback) => {
    const name = hostname.toLowerCase().replace(/\.$/, "")
    void findInHosts(name).then((addresses) => {
      if (addresses.length > 0) callback(null, addresses)
      else resolve(name, callback)
    })
  }
}
