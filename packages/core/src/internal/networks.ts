/** Lists of networks in CIDR notation. */

import * as IpNetwork from "effect/net/IpNetwork"
import type * as NetAddress from "effect/net/NetAddress"
import * as Result from "effect/Result"
import { InvalidInput } from "../InvalidInput.ts"

/** Parses the networks of an option, or names the one that is none. */
export const parse = (
  option: string,
  texts: ReadonlyArray<string>,
): Result.Result<ReadonlyArray<IpNetwork.IpNetwork>, InvalidInput> =>
  Result.all(
    texts.map((text) =>
      Result.mapError(
        IpNetwork.fromString(text),
        (error) =>
          new InvalidInput({ field: option, message: `${option}: "${text}": ${error.message}` }),
      ),
    ),
  )

/** Tells whether any of the networks includes the address. */
export const includes = (
  networks: ReadonlyArray<IpNetwork.IpNetwork>,
  address: NetAddress.IpAddress,
): boolean => networks.some((network) => IpNetwork.contains(network, address))
