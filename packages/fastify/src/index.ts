/** Tenure as a plugin for Fastify 5. */

import { isIP } from "node:net"
import { pathOf } from "@tenure/core/ApiRequest"
import type { Authenticate } from "@tenure/core/Identity"
import { checkMountable, type Mountable } from "@tenure/core/Mountable"
import * as Setting from "@tenure/core/Setting"
import { handle, toReadable } from "@tenure/node-http"
import type { FastifyPluginAsync, FastifyReply, FastifyRequest, RegisterOptions } from "fastify"
import { redirectRefused, restore } from "./unroutable.ts"

export { type Verified, verifyWebhook, type VerifyOptions } from "@tenure/node-http"

/** Authenticates a Fastify request. */
export interface FastifyAuthenticate extends Authenticate<FastifyRequest> {}

// With `trustProxy`, `request.ip` is whatever text the client has sent.
const ipOf = ({ ip, socket }: FastifyRequest): string | undefined =>
  isIP(ip) === 0 ? socket.remoteAddress : ip

/** The options of the plugin, in addition to Tenure itself. */
export const options = Setting.struct({
  /**
   * Whether requests are counted by `request.ip`, which depends on the Fastify option `trustProxy`,
   * or by the address of the socket if `request.ip` is not an IP address. If not, they are counted by
   * the address of the socket and Tenure's option `trustedProxies`.
   * Default: `false`.
   */
  useFastifyIp: Setting.withDefault(Setting.flag, false),
  /**
   * Authenticates requests in place of API keys, for example by a session that a hook has found. By
   * default, `authenticate` of the options of `Tenure.make` does.
   */
  authenticate: Setting.callback<FastifyAuthenticate>(),
})

/** The options that a host passes. */
export interface Options extends Setting.Input<typeof options> {
  /** The result of `await Tenure.make(…)`. */
  readonly tenure: Mountable
}

/** Reads the options of the plugin, which come together with those of `register`. */
const read = ({ tenure, ...others }: Options & RegisterOptions) => {
  checkMountable(tenure)
  const { logLevel: _logLevel, logSerializers: _logSerializers, prefix: _prefix, ...given } = others
  return { tenure, ...Setting.readSync(options, given) }
}

// Fastify refuses an invalid media type before the last hooks of the host run. The plugin shows it a
// valid one instead, so that those hooks decide first, and then Tenure by the original header.
const mediaType = /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+ *(;|$)/

/** The end of a path, with as many segments as the pattern has. */
const tailOf = (path: string, pattern: string): string =>
  `/${path
    .split("/")
    .slice(1 - pattern.split("/").length)
    .join("/")}`

/**
 * A plugin that answers requests for the API.
 *
 * It is encapsulated: the hooks of the host run for its requests too, and the parsers, error handlers
 * and routes of the host stay as they are. `register` fails with a `TypeError` if `tenure` is not what
 * `await Tenure.make(…)` returns, and with `InvalidInput` if an option is invalid.
 *
 * @example
 * ```ts
 * import fastify from "fastify"
 * import { Tenure } from "tenure"
 * import { membershipPlugin } from "tenure/fastify"
 * import { memory } from "tenure/memory"
 * import { nodeTransport } from "tenure/node"
 *
 * const tenure = await Tenure.make({ stores: memory(), transport: nodeTransport })
 * const app = fastify()
 * await app.register(membershipPlugin, { prefix: "/members", tenure })
 * await app.listen({ port: 3000 })
 * ```
 */
export const membershipPlugin: FastifyPluginAsync<Options> = async (instance, given) => {
  const { authenticate, tenure, useFastifyIp } = read(given)
  const patterns = tenure.patterns.map((pattern) => `${tenure.basePath}${pattern}`)

  /** Returns the path after the prefix, which may contain parameters, or `undefined` for another path. */
  const pathBehindPrefix = (originalPath: string, matched: string): string | undefined => {
    const path = tailOf(originalPath, matched)
    return tenure.owns(path)
      ? path
      : // A redirected request has come by the pattern of another path.
        patterns.map((pattern) => tailOf(originalPath, pattern)).find(tenure.owns)
  }

  const answer = (pattern: string, request: FastifyRequest, reply: FastifyReply): void => {
    restore(request.raw)
    const originalPath = pathOf(request.raw.url ?? "")
    const path = pathBehindPrefix(originalPath, pattern)
    // Fastify may also match other spellings of a path, for example with a slash at the end.
    if (path === undefined) return void reply.callNotFound()
    const known = {
      path,
      originalPath,
      ...(useFastifyIp && { remoteAddress: ipOf(request) }),
      ...(authenticate && { authenticate: () => authenticate(request) }),
    }
    handle(tenure, request.raw, reply.raw, known, ({ body, headers, status }) => {
      const payload = typeof body === "string" ? Buffer.from(body) : toReadable(body)
      reply.code(status).headers(headers).send(payload)
    })
  }

  // Tenure reads the body, with its own limit and its own errors.
  instance.removeAllContentTypeParsers()
  instance.addContentTypeParser("*", (_request, _payload, done) => done(null))
  instance.addHook("preParsing", (request, _reply, payload, done) => {
    if (!mediaType.test(request.headers["content-type"] ?? "")) {
      request.headers = { "content-type": "application/octet-stream" }
    }
    done(null, payload)
  })

  for (const url of patterns) {
    const method = instance.supportedMethods
    const handler = (request: FastifyRequest, reply: FastifyReply): void =>
      answer(url, request, reply)
    instance.route({ method, url, exposeHeadRoute: false, handler })
  }
  redirectRefused(
    instance,
    instance.prefix.replace(/\/$/, ""),
    tenure.owns,
    `${tenure.basePath}${tenure.patterns[0]}`,
  )
}
