/** Lists of networks in CIDR notation. */

import * as Effect from "effect/Effect"
import * as IpNetwork from "effect/net/IpNetwork"
import type * as NetAddress from "effect/net/NetAddress"
import * as Result from "effect/Result"
import { InvalidInput } from "../InvalidInput.ts"
import * as Setting from "../Setting.ts"

const parseOne = (option: string, text: string): Result.Result<IpNetwork.IpNetwork, InvalidInput> =>
  Result.mapError(
    IpNetwork.fromString(String(text)),
    (error) =>
      new InvalidInput({ field: option, message: `${option}: "${text}": ${error.message}` }),
  )

/** Parses the networks of an option, or names the one that is none. */
export const parse = Effect.fnUntraced(function* (option: string, texts: ReadonlyArray<string>) {
  const list = yield* Setting.list(option, texts)
  return yield* Effect.forEach(list, (text) => Effect.fromResult(parseOne(option, text)))
})

/** Tells whether any of the networks includes the address. */
export const includes = (
  networks: ReadonlyArray<IpNetwork.IpNetwork>,
  address: NetAddress.IpAddress,
): boolean => networks.some((network) => IpNetwork.contains(network, address))
