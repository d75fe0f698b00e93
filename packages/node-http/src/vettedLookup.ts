/** Looking names up so that only vetted addresses are dialled. */

import type { LookupAddress } from "node:dns"
import type { LookupFunction } from "node:net"
import { type AddressPolicy, hostOf } from "@tenure/core/AddressPolicy"
import * as NetAddress from "effect/net/NetAddress"
import * as Result from "effect/Result"
import { makeResolve, type Resolve } from "./resolveName.ts"

type Policy = AddressPolicy["Service"]

/** The code of the error about an address that may not be dialled. */
export const notAllowed = "AddressNotAllowed"

const isPermitted = (policy: Policy, address: string): boolean => {
  const parsed = NetAddress.ipFromString(address.replace(/%.*$/, ""))
  return Result.isSuccess(parsed) && policy.permits(parsed.success)
}

/** The addresses of this machine that are permitted; its names are not left to a resolver. */
const localAddresses = (policy: Policy): ReadonlyArray<LookupAddress> =>
  NetAddress.loopbackAddresses.filter(policy.permits).map((address) => ({
    address: NetAddress.formatIp(address),
    family: NetAddress.isIpv4Address(address) ? 4 : 6,
  }))

/**
 * Looks a name up once for each connection, and gives its addresses only if every one is permitted:
 * of a name that has others, none is to be trusted. The socket dials what is given here, so that no
 * second look-up can give another answer.
 */
export const vettedLookup =
  (policy: Policy, resolve: Resolve = makeResolve()): LookupFunction =>
  (hostname, options, callback) => {
    const give = (addresses: ReadonlyArray<LookupAddress>): void => {
      const [first] = addresses
      if (first === undefined || !addresses.every(({ address }) => isPermitted(policy, address))) {
        callback(Object.assign(new Error(notAllowed), { code: notAllowed }), "", 0)
      } else if (options.all === true) callback(null, [...addresses])
      else callback(null, first.address, first.family)
    }
    if (hostOf(hostname)._tag === "Localhost") return give(localAddresses(policy))
    resolve(hostname, (error, addresses) =>
      error === null ? give(addresses) : callback(error, "", 0),
    )
  }
