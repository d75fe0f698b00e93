/**
 * Looking names up, as `dns.lookup` does, but without threads: of those there are few, and a name
 * server that does not answer would hold up the look-ups of all other names.
 */

import { type LookupAddress, Resolver } from "node:dns"
import { readFileSync } from "node:fs"
import { isIP } from "node:net"

/** Gives all addresses of a name. */
export type Resolve = (
  hostname: string,
  callback: (error: NodeJS.ErrnoException | null, addresses: ReadonlyArray<LookupAddress>) => void,
) => void

const hostsFile =
  process.platform === "win32" ? "C:\\Windows\\System32\\drivers\\etc\\hosts" : "/etc/hosts"

const readHosts = (): string => {
  try {
    return readFileSync(hostsFile, "utf8")
  } catch {
    return ""
  }
}

const addressOf = (text: string): LookupAddress => ({ address: text, family: isIP(text) })

/** The addresses that the machine's own table has for a name. */
const inHosts = (hostname: string): ReadonlyArray<LookupAddress> =>
  readHosts()
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim().toLowerCase().split(/\s+/))
    .filter(([address = "", ...names]) => isIP(address) !== 0 && names.includes(hostname))
    .map(([address = ""]) => addressOf(address))

// Milliseconds for each try; together less than an attempt may take.
const timeout = 2000
const tries = 3

/** Asks for the addresses of both families; fails if there are none of either. */
const inDns =
  (resolver: Resolver): Resolve =>
  (hostname, callback) => {
    const found: Array<LookupAddress> = []
    let left = 2
    const collect = (
      error: NodeJS.ErrnoException | null,
      addresses: ReadonlyArray<string> = [],
    ): void => {
      found.push(...addresses.map(addressOf))
      left--
      if (left === 0) callback(found.length === 0 ? error : null, found)
    }
    resolver.resolve4(hostname, collect)
    resolver.resolve6(hostname, collect)
  }

/**
 * Makes the function that looks names up: in the machine's own table first, then in the DNS, without
 * search domains.
 */
export const makeResolve = (resolver = new Resolver({ timeout, tries })): Resolve => {
  const ask = inDns(resolver)
  return (hostname, callback) => {
    const name = hostname.toLowerCase().replace(/\.$/, "")
    const own = inHosts(name)
    if (own.length > 0) callback(null, own)
    else ask(name, callback)
  }
}
