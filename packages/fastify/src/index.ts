/** Tenure as a plugin for Fastify 5. */

import type { IncomingMessage } from "node:http"
import {
  type ApiResponse,
  type Authenticate,
  type Mountable,
  checkMountable,
  pathOf,
} from "@tenure/core/adapter"
import { Setting, parseAddress } from "@tenure/core/internal"
import { handle, toReadable } from "@tenure/node-http"
import type {
  FastifyInstance,
  FastifyPluginAsync,
  FastifyReply,
  FastifyRequest,
  RegisterOptions,
} from "fastify"

/** A request's method and URL. */
type Target = Pick<IncomingMessage, "method" | "url">

// The original method and URL for each redirected request. Shared by all instances, because they may
// share a server.
const originals = new WeakMap<IncomingMessage, Target>()

// Fastify's default maximum for a parameter's length. If the host lowers it, Fastify itself answers
// requests in between.
const maxParameterLength = 100

/** Whether Fastify's router refuses a target with this path, before any hook. */
const isRefused = (url: string, path: string): boolean => {
  // A fragment is invalid in a target in absolute form.
  if (url.includes("#") && !url.startsWith("/")) return true
  if (path.split("/").some((segment) => segment.length > maxParameterLength)) return true
  try {
    decodeURI(path)
    return false
  } catch {
    return true
  }
}

/** Returns the start of a path, if it matches a prefix segment by segment. */
const matchPrefix = (path: string, prefix: string): string | undefined => {
  const expected = prefix.split("/")
  const start = path.split("/").slice(0, expected.length)
  const matches = expected.every((part, index) =>
    part.startsWith(":") ? start[index] !== "" : part === start[index],
  )
  return matches ? start.join("/") : undefined
}

/**
 * Redirects API requests to an API route if Fastify's router would refuse them.
 *
 * The router refuses unknown methods, long parameters, invalid percent-encoding, and an absolute target
 * with a fragment. API clients get an envelope in these cases too. The host's hooks see POST instead of
 * an unknown method, and a path with other ids. Fastify still refuses an invalid parameter in the
 * prefix.
 *
 * @param prefix - the instance's prefix
 * @param owns - whether a path, without the prefix, belongs to the API
 * @param route - the path for an API route, without the prefix
 */
const redirectRefused = (
  instance: FastifyInstance,
  prefix: string,
  owns: (path: string) => boolean,
  route: string,
): void => {
  const { server, supportedMethods } = instance
  const onRequest = (request: IncomingMessage): void => {
    const { method = "", url = "" } = request
    const path = pathOf(url)
    const isKnown = supportedMethods.includes(method)
    if (isKnown && !url.includes("#") && !path.includes("%") && path.length <= maxParameterLength)
      return
    const start = matchPrefix(path, prefix)
    if (start === undefined || !owns(path.slice(start.length))) return
    if (isKnown && !isRefused(url, path)) return
    originals.set(request, { method, url })
    request.url = `${start}${route}`
    if (!isKnown) request.method = "POST"
  }
  server.prependListener("request", onRequest)
  instance.addHook("onClose", async () => void server.off("request", onRequest))
}

/** Restores a request's original method and URL. */
export const restore = (request: IncomingMessage): void =>
  void Object.assign(request, originals.get(request))

/** Authenticates a Fastify request. */
export interface FastifyAuthenticate extends Authenticate<FastifyRequest> {}

// With `trustProxy`, `request.ip` is whatever text the client has sent.
const ipOf = ({ ip, socket }: FastifyRequest): string | undefined =>
  parseAddress(ip) === undefined ? socket.remoteAddress : ip

/** The plugin's options, in addition to Tenure itself. */
export const pluginOptions = Setting.object({
  /**
   * Whether rate limits count requests by `request.ip`, by the Fastify option `trustProxy`, or by the
   * socket's address if that is no IP address. If not, Tenure's option `trustedProxies` decides. Default:
   * `false`.
   */
  useFastifyIp: Setting.withDefault(Setting.boolean, false),
  /**
   * Authenticates requests in place of API keys, for example by a session from a hook. By default,
   * `authenticate` in the options for `createTenure` does.
   */
  authenticate: Setting.callback<FastifyAuthenticate>(),
})

/** The options as a host passes them. */
export interface PluginOptions extends Setting.InputOf<typeof pluginOptions> {
  /** The result from `await createTenure(…)`. */
  readonly tenure: Mountable
}

/** Reads the plugin's options. Fastify adds those for `register`. */
const read = ({ tenure, ...others }: PluginOptions & RegisterOptions) => {
  checkMountable(tenure)
  const { logLevel: _logLevel, logSerializers: _logSerializers, prefix: _prefix, ...given } = others
  return { tenure, ...Setting.parse(pluginOptions, given) }
}

// Fastify refuses an invalid media type before the host's last hooks run. The plugin substitutes a
// valid one: the hooks decide first, and then Tenure by the original header.
const mediaType = /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+ *(;|$)/

/** How many segments a pattern has. */
const segmentsIn = (pattern: string): number => pattern.split("/").length - 1

/** Returns the end of a path with so many segments, or an empty text if the path has fewer. */
const tailOf = (path: string, segments: number): string => {
  let start = path.length
  for (let left = segments; left > 0; left--) {
    if (start <= 0) return ""
    start = path.lastIndexOf("/", start - 1)
  }
  return start < 0 ? "" : path.slice(start)
}

const asIs = (text: string): string => text

/** Sends a response. */
const send = (reply: FastifyReply, { body, headers, status }: ApiResponse): void => {
  reply.code(status).headers(headers)
  // A text is sent in one piece with the header. With a serializer, Fastify leaves the media type as it is.
  if (typeof body === "string") reply.serializer(asIs).send(body)
  else reply.send(toReadable(body))
}

/**
 * A plugin to answer API requests.
 *
 * It is encapsulated: the host's hooks also run for API requests, and the host's parsers, error
 * handlers and routes stay unchanged. `register` fails with a `TypeError` unless `tenure` comes from
 * `await createTenure(…)`, and with `InvalidInput` if an option is invalid.
 * @example
 * ```ts
 * import fastify from "fastify"
 * import { createTenure } from "tenure"
 * import { membershipPlugin } from "tenure/fastify"
 * import { memory } from "tenure/memory"
 * import { nodeTransport } from "tenure/node"
 *
 * const tenure = await createTenure({ stores: memory(), transport: nodeTransport })
 * const app = fastify()
 * await app.register(membershipPlugin, { prefix: "/members", tenure })
 * await app.listen({ port: 3000 })
 * ```
 */
export const membershipPlugin: FastifyPluginAsync<PluginOptions> = async (instance, given) => {
  const { authenticate, tenure, useFastifyIp } = read(given)
  const patterns = tenure.patterns.map((pattern) => `${tenure.basePath}${pattern}`)

  /** Returns the path after the prefix, possibly with parameters, or `undefined` for another path. */
  const pathBehindPrefix = (originalPath: string, segments: number): string | undefined => {
    const path = tailOf(originalPath, segments)
    return tenure.owns(path)
      ? path
      : // A redirected request has come by the pattern of another path.
        patterns.map((pattern) => tailOf(originalPath, segmentsIn(pattern))).find(tenure.owns)
  }

  const answer = (segments: number, request: FastifyRequest, reply: FastifyReply): void => {
    restore(request.raw)
    const originalPath = pathOf(request.raw.url ?? "")
    const path = pathBehindPrefix(originalPath, segments)
    // Fastify also matches other spellings, for example with a trailing slash.
    if (path === undefined) return void reply.callNotFound()
    const known = {
      path,
      originalPath,
      ...(useFastifyIp && { remoteAddress: ipOf(request) }),
      ...(authenticate && { authenticate: () => authenticate(request) }),
    }
    handle(tenure, request.raw, reply.raw, known, (response) => send(reply, response))
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
    const segments = segmentsIn(url)
    const handler = (request: FastifyRequest, reply: FastifyReply): void =>
      answer(segments, request, reply)
    instance.route({ method, url, exposeHeadRoute: false, handler })
  }
  redirectRefused(
    instance,
    instance.prefix.replace(/\/$/, ""),
    tenure.owns,
    `${tenure.basePath}${tenure.patterns[0]}`,
  )
}
