/** Connects to hosts with several addresses (RFC 8305, Happy Eyeballs). */

import type { LookupAddress } from "node:dns"
import { type Socket, connect, isIP } from "node:net"

/** Calls back with all addresses for a name. */
export type Resolve = (
  hostname: string,
  callback: (error: NodeJS.ErrnoException | null, addresses: ReadonlyArray<LookupAddress>) => void,
) => void

/** Calls back with an open connection. Returns a function to give up. */
export type Dial = (
  hostname: string,
  port: number,
  callback: (error: Error | null, socket?: Socket) => void,
) => () => void

// How long one address is tried alone, in milliseconds.
const attemptDelay = 250

/** Orders addresses so that the two families take turns. */
export const alternateFamilies = (
  addresses: ReadonlyArray<LookupAddress>,
): ReadonlyArray<LookupAddress> => {
  const isFirst = ({ family }: LookupAddress): boolean => family === addresses[0]?.family
  const others = addresses.filter((address) => !isFirst(address))
  const firsts = addresses.filter(isFirst)
  return firsts
    .flatMap((address, index) => [address, ...others.slice(index, index + 1)])
    .concat(others.slice(firsts.length))
}

const noRoute = new Set<string | undefined>(["ENETUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT"])

/** Returns the fault to report: of a machine with a route for one family, that of this family. */
export const mainFault = (
  faults: ReadonlyArray<NodeJS.ErrnoException>,
): NodeJS.ErrnoException | undefined => faults.find(({ code }) => !noRoute.has(code)) ?? faults[0]

/**
 * Connects to the first address that answers. Starts with the next one after a quarter of a second, or
 * as soon as an address fails, and goes on waiting for the earlier ones.
 */
const connectToAny = (
  addresses: ReadonlyArray<LookupAddress>,
  port: number,
  callback: (error: Error | null, socket?: Socket) => void,
): (() => void) => {
  const waiting = [...alternateFamilies(addresses)]
  const open = new Set<Socket>()
  const faults: Array<NodeJS.ErrnoException> = []
  let timer: NodeJS.Timeout | undefined
  let isDone = false

  const close = (): void => {
    isDone = true
    clearTimeout(timer)
    for (const socket of open) socket.destroy()
  }
  const next = (): void => {
    clearTimeout(timer)
    const [address] = waiting.splice(0, 1)
    if (address === undefined || isDone) return
    const socket = connect({ host: address.address, port, noDelay: true })
    open.add(socket)
    const onError = (fault: NodeJS.ErrnoException): void => {
      open.delete(socket)
      faults.push(fault)
      if (waiting.length > 0) next()
      else if (open.size === 0 && !isDone) callback(mainFault(faults) ?? fault)
    }
    socket.once("error", onError)
    socket.once("connect", () => {
      if (isDone) return
      socket.off("error", onError)
      open.delete(socket)
      close()
      callback(null, socket)
    })
    if (waiting.length > 0) timer = setTimeout(next, attemptDelay)
  }
  next()
  return close
}

/**
 * Creates a function that connects to a host. Node's own look-up gives each address a quarter of a
 * second and then gives it up, which is too little for a receiver far away.
 */
export const makeDial =
  (resolve: Resolve): Dial =>
  (hostname, port, callback) => {
    const family = isIP(hostname)
    if (family !== 0) return connectToAny([{ address: hostname, family }], port, callback)
    let close: (() => void) | undefined
    let isGivenUp = false
    resolve(hostname, (error, addresses) => {
      if (isGivenUp) return
      if (error === null) close = connectToAny(addresses, port, callback)
      else callback(error)
    })
    return () => {
      isGivenUp = true
      close?.()
    }
  }
