/** Tenure as a plugin of Fastify 5. */

import type { IncomingMessage } from "node:http"
import { pathOf } from "@tenure/core/ApiRequest"
import type { Authenticate } from "@tenure/core/Identity"
import { handle, type Mountable } from "@tenure/node-http"
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify"

export { type Verified, verifyWebhook, type VerifyOptions } from "@tenure/node-http"

/** Options of the plugin. */
export interface Options {
  readonly tenure: Mountable & {
    /** What precedes `/v2` in every path of the API. */
    readonly basePath: string
  }
  /**
   * Whether the client's address is the one that Fastify gives as `request.ip`, by its own option
   * `trustProxy`; the socket's by default, and proxies as `trustedProxies` of Tenure says.
   */
  readonly useFastifyIp?: boolean | undefined
  /**
   * The host's own authentication in place of API keys, such as by a session that a hook has found;
   * that of Tenure's options by default.
   */
  readonly authenticate?: Authenticate<FastifyRequest> | undefined
}

/** The first segments of a path: where the plugin is mounted. */
const mountPathOf = (path: string, prefix: string): string =>
  path.split("/").slice(0, prefix.split("/").length).join("/")

const isDecodable = (path: string): boolean => {
  try {
    decodeURI(path)
    return true
  } catch {
    return false
  }
}

/** What a request asked for, before it was made one that finds its route. */
type Asked = Pick<IncomingMessage, "method" | "url">

/**
 * Fastify's router has no route for methods that it does not know, and answers by itself where a
 * path is not percent-encoded correctly. Such requests are the API's as well: they are led to its
 * route, which goes by what they asked for.
 */
const leadToRoute = (
  { prefix, server, supportedMethods }: FastifyInstance,
  { basePath, owns }: Options["tenure"],
): WeakMap<IncomingMessage, Asked> => {
  const led = new WeakMap<IncomingMessage, Asked>()
  server.prependListener("request", (request: IncomingMessage) => {
    const { method = "", url = "" } = request
    if (supportedMethods.includes(method) && !url.includes("%")) return
    const path = pathOf(url)
    const mountPath = mountPathOf(path, prefix)
    if (!owns(path.slice(mountPath.length))) return
    if (supportedMethods.includes(method) && isDecodable(path)) return
    led.set(request, { method, url })
    request.method = "OPTIONS"
    request.url = `${mountPath}${basePath}/v2/projects/-`
  })
  return led
}

/**
 * The API as a plugin, encapsulated: hooks of the host run before and after it, its parsers and error
 * handlers are left alone, and what is not the API's is the host's.
 *
 * @example
 * ```ts
 * import * as Tenure from "@tenure/core/Tenure"
 * import { membershipPlugin } from "@tenure/fastify"
 * import { memory } from "@tenure/memory"
 * import { nodeTransport } from "@tenure/node-http"
 * import fastify from "fastify"
 *
 * const tenure = await Tenure.make({ stores: memory(), transport: nodeTransport })
 * const app = fastify()
 * await app.register(membershipPlugin, { prefix: "/members", tenure })
 * await app.listen({ port: 3000 })
 * ```
 */
export const membershipPlugin: FastifyPluginAsync<Options> = async (
  instance,
  { authenticate, tenure, useFastifyIp = false },
) => {
  const led = leadToRoute(instance, tenure)

  const answer = (request: FastifyRequest, reply: FastifyReply): void => {
    Object.assign(request.raw, led.get(request.raw))
    const path = pathOf(request.raw.url ?? "")
    const mountPath = mountPathOf(path, instance.prefix)
    if (!tenure.owns(path.slice(mountPath.length))) return void reply.callNotFound()
    const known = {
      path,
      mountPath,
      ...(useFastifyIp && { remoteAddress: request.ip }),
      ...(authenticate && { authenticate: () => authenticate(request) }),
    }
    handle(tenure, request.raw, known, ({ body, headers, status }) => {
      reply.code(status).headers(headers).send(Buffer.from(body))
    })
  }

  // The body is left to Tenure, which has its own limit and its own answers.
  instance.removeAllContentTypeParsers()
  instance.addContentTypeParser("*", (_request, _payload, done) => done(null))
  instance.setErrorHandler((error, request, reply) => {
    if (!isAboutContentType(error)) throw error
    answer(request, reply)
  })
  instance.route({
    method: instance.supportedMethods,
    url: `${tenure.basePath}/v2/projects/*`,
    exposeHeadRoute: false,
    handler: answer,
  })
}

const contentTypeErrors = new Set([
  "FST_ERR_CTP_INVALID_MEDIA_TYPE",
  "FST_ERR_ROUTE_MISSING_CONTENT_TYPE",
])

/** Whether Fastify refuses a request for a content type that is none: Tenure judges that itself. */
const isAboutContentType = (error: unknown): boolean =>
  error instanceof Error && "code" in error && contentTypeErrors.has(String(error.code))
