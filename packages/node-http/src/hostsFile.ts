/** The machine's own table of host names: `/etc/hosts`, or its counterpart on Windows. */

import type { LookupAddress } from "node:dns"
import { readFile } from "node:fs/promises"
import { isIP } from "node:net"

/** Addresses by lower-case host name. */
type HostTable = ReadonlyMap<string, ReadonlyArray<LookupAddress>>

/** Returns the addresses of a lower-case host name. */
export type FindInHosts = (name: string) => Promise<ReadonlyArray<LookupAddress>>

const hostsPath =
  process.platform === "win32" ? "C:\\Windows\\System32\\drivers\\etc\\hosts" : "/etc/hosts"

// How long a table is used. A change to the file takes effect after this time.
const maxAgeMillis = 5000

/** Parses the text of a hosts file. Ignores comments and lines without a valid address. */
export const parseHosts = (text: string): HostTable => {
  const table = new Map<string, Array<LookupAddress>>()
  for (const line of text.split("\n")) {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().toLowerCase().split(/\s+/)
    const family = isIP(address)
    if (family === 0) continue
    for (const name of new Set(names)) {
      table.set(name, [...(table.get(name) ?? []), { address, family }])
    }
  }
  return table
}

const readHosts = (): Promise<string> => readFile(hostsPath, "utf8")

/**
 * Makes a function that looks up names in the hosts file. It reads the file at most once every five
 * seconds. A file that cannot be read counts as empty.
 *
 * @param read - reads the text of the file
 * @param now - a clock in milliseconds
 */
export const makeFindInHosts = (
  read: () => Promise<string> = readHosts,
  now: () => number = () => performance.now(),
): FindInHosts => {
  let table: Promise<HostTable> = Promise.resolve(new Map())
  let expiresAt = -Infinity

  const load = async (): Promise<HostTable> => parseHosts(await read().catch(() => ""))

  return async (name) => {
    if (now() >= expiresAt) {
      expiresAt = now() + maxAgeMillis
      table = load()
    }
    return (await table).get(name) ?? []
  }
}
