/** Lists of networks in CIDR notation. */

import * as IpNetwork from "effect/net/IpNetwork"
import type * as NetAddress from "effect/net/NetAddress"
import * as Result from "effect/Result"
import * as Setting from "./Setting.ts"

const parse = (given: unknown): IpNetwork.IpNetwork | undefined =>
  typeof given === "string" ? Result.getOrUndefined(IpNetwork.fromString(given)) : undefined

/** An option that is a list of networks. */
export const setting = Setting.list(
  Setting.make<string, IpNetwork.IpNetwork>(
    'a network in CIDR notation, such as "10.0.0.0/8"',
    parse,
  ),
)

/** Tells whether one of the networks contains the address. */
export const includes = (
  networks: ReadonlyArray<IpNetwork.IpNetwork>,
  address: NetAddress.IpAddress,
): boolean => networks.some((network) => IpNetwork.contains(network, address))
