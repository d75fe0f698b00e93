/** Looks up host names, and returns only permitted addresses. */

import type { LookupAddress } from "node:dns"
import type { LookupFunction } from "node:net"
import { type AddressPolicy, hostOf } from "@tenure/core/AddressPolicy"
import * as NetAddress from "effect/net/NetAddress"
import * as Result from "effect/Result"
import { makeResolve, type Resolve } from "./resolveName.ts"

type Policy = AddressPolicy["Service"]

/** The code of the error for an address that is not permitted. */
export const notAllowed = "AddressNotAllowed"

const isPermitted = (policy: Policy, address: string): boolean => {
  const parsed = NetAddress.ipFromString(address.replace(/%.*$/, ""))
  return Result.isSuccess(parsed) && policy.permits(parsed.success)
}

/** The permitted loopback addresses, for names such as `localhost`, which no resolver is asked for. */
const localAddresses = (policy: Policy): ReadonlyArray<LookupAddress> =>
  NetAddress.loopbackAddresses.filter(policy.permits).map((address) => ({
    address: NetAddress.formatIp(address),
    family: NetAddress.isIpv4Address(address) ? 4 : 6,
  }))

/**
 * Makes a look-up function for sockets. It resolves a name once for each connection, and fails with
 * the code `AddressNotAllowed` unless all addresses of the name are permitted. The socket connects to
 * an address that it returns, so a second look-up cannot return a different one.
 */
export const vettedLookup =
  (policy: Policy, resolve: Resolve = makeResolve()): LookupFunction =>
  (hostname, options, callback) => {
    const answer = (addresses: ReadonlyArray<LookupAddress>): void => {
      const [first] = addresses
      if (first === undefined || !addresses.every(({ address }) => isPermitted(policy, address))) {
        callback(Object.assign(new Error(notAllowed), { code: notAllowed }), "", 0)
      } else if (options.all === true) callback(null, [...addresses])
      else callback(null, first.address, first.family)
    }
    if (hostOf(hostname)._tag === "Localhost") return answer(localAddresses(policy))
    resolve(hostname, (error, addresses) =>
      error === null ? answer(addresses) : callback(error, "", 0),
    )
  }
