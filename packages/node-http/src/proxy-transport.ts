/** Sends webhooks through a proxy, by HTTP CONNECT (RFC 9110, 9.3.6). */

import { lookup } from "node:dns"
import * as Https from "node:https"
import { isIP, isIPv6 } from "node:net"
import { urlToHttpOptions } from "node:url"
import { Setting } from "@tenure/core/internal"
import { AddressPolicy, WebhookTransport, permitsUnchecked } from "@tenure/core/transport"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { http } from "./builtin.ts"
import { type Resolve, makeDial } from "./dial.ts"
import {
  type ConnectionOptions,
  type OpenConnection,
  makeAgents,
  makeSend,
  openByDial,
} from "./transport.ts"

const isProxyUrl = (given: string): boolean => {
  const url = URL.parse(given)
  if (url === null || !/^https?:$/.test(url.protocol)) return false
  if (`${url.pathname}${url.search}${url.hash}` !== "/") return false
  try {
    urlToHttpOptions(url)
    return true
  } catch {
    // Credentials with an invalid percent-encoding.
    return false
  }
}

/** The options of the transport. */
export const proxyTransportOptions = Setting.object({
  /**
   * The URL of the proxy, `http:` or `https:`, such as `http://proxy.internal:4750`. It may have
   * credentials, which are sent as `Proxy-Authorization: Basic`.
   */
  url: Setting.guarded<string>(
    "the URL of a proxy without a path, such as http://user:password@proxy.internal:4750",
    (given) => typeof given === "string" && isProxyUrl(given),
    // It may hold a password.
    (given) => (typeof given === "string" ? "another text" : typeof given),
  ),
})

/** The options as a host passes them. */
export interface ProxyTransportOptions extends Setting.InputOf<typeof proxyTransportOptions> {}

// The maximum head of a proxy's response, in bytes.
const maxHeaderSize = 16_384

// How long a tunnel may take to open, in milliseconds. Less than an attempt may take, so that a wrong
// address is not taken for a slow receiver.
const timeout = 10_000

const withCode = (code: string): Error => Object.assign(new Error(code), { code })

const proxyFailure = (cause: number | string): Error => withCode(`Proxy:${cause}`)

/** Resolves a proxy's name as other programs do. It may be one of a search domain. */
const resolveProxy: Resolve = (hostname, callback) => lookup(hostname, { all: true }, callback)

/** Creates a function that opens tunnels through a proxy. */
const makeOpenTunnel = (url: string): OpenConnection => {
  const { auth, hostname, port, protocol } = urlToHttpOptions(new URL(url))
  const host = hostname ?? ""
  const { request: open } = protocol === "https:" ? Https : http
  // Neither kept alive nor through the proxies of the environment.
  const agents = makeAgents(openByDial(makeDial(resolveProxy)), {})
  const credentials = auth && {
    "proxy-authorization": `Basic ${Buffer.from(auth).toString("base64")}`,
  }
  return (receiver, callback) => {
    const name = receiver.host ?? ""
    const authority = `${isIPv6(name) ? `[${name}]` : name}:${receiver.port}`
    let stopDialling: (() => void) | undefined
    const options: ConnectionOptions = {
      host,
      port,
      // Node would take the name from the `Host` header, which is the receiver's.
      servername: isIP(host) === 0 ? host : "",
      method: "CONNECT",
      path: authority,
      headers: { host: authority, ...credentials },
      agent: protocol === "https:" ? agents.https : agents.http,
      maxHeaderSize,
      onInterrupt: (close) => void (stopDialling = close),
    }
    const request = open(options)
    const stop = (): void => {
      clearTimeout(timer)
      stopDialling?.()
      request.destroy()
    }
    const timer = setTimeout(() => {
      stop()
      callback(proxyFailure("ETIMEDOUT"))
    }, timeout)
    receiver.onInterrupt?.(stop)
    request.on("connect", ({ statusCode = 0 }, socket, head) => {
      clearTimeout(timer)
      if (statusCode < 200 || statusCode > 299) {
        socket.destroy()
        return callback(proxyFailure(statusCode))
      }
      if (head.length > 0) socket.unshift(head)
      callback(null, socket)
    })
    request.on("error", (error: NodeJS.ErrnoException) => {
      clearTimeout(timer)
      callback(proxyFailure(error.code ?? error.name))
    })
    request.end()
  }
}

/**
 * A webhook transport that sends everything through a proxy, by HTTP CONNECT. The proxy resolves the
 * receivers' names, and must refuse private addresses.
 *
 * Throws `InvalidInput` if an option is invalid.
 * @example
 * ```ts
 * import { createTenure } from "tenure"
 * import { memory } from "tenure/memory"
 * import { proxyTransport } from "tenure/node"
 *
 * const tenure = await createTenure({
 *   stores: memory(),
 *   transport: proxyTransport({ url: "http://proxy.internal:4750" }),
 * })
 * ```
 */
export const proxyTransport = (
  given: ProxyTransportOptions,
): Layer.Layer<WebhookTransport, never, AddressPolicy> => {
  const { url } = Setting.parse(proxyTransportOptions, given)
  return Layer.effect(
    WebhookTransport,
    Effect.gen(function* () {
      const policy = yield* AddressPolicy
      const send = yield* makeSend({
        open: makeOpenTunnel(url),
        permits: (target) => permitsUnchecked(policy, target),
      })
      return { sendsHttpToNames: false, send }
    }),
  )
}
