/** Tenure as a plugin of Fastify 5. */

import { pathOf, pathPatterns } from "@tenure/core/ApiRequest"
import type { Authenticate } from "@tenure/core/Identity"
import type { Mountable } from "@tenure/core/Tenure"
import { handle } from "@tenure/node-http"
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify"
import { lead, restore } from "./unroutable.ts"

export { type Verified, verifyWebhook, type VerifyOptions } from "@tenure/node-http"

/** Options of the plugin. */
export interface Options {
  readonly tenure: Mountable
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

// Fastify refuses what is no media type before the last hooks of the host have run. It is shown
// another, so that those hooks decide first, and then Tenure by what was sent.
const mediaType = /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+ *(;|$)/

/** What a path ends in, with as many segments as a pattern has. */
const tailOf = (path: string, pattern: string): string =>
  `/${path
    .split("/")
    .slice(1 - pattern.split("/").length)
    .join("/")}`

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
  const patterns = pathPatterns.map((pattern) => `${tenure.basePath}${pattern}`)

  const answer = (request: FastifyRequest, reply: FastifyReply): void => {
    restore(request.raw)
    const originalPath = pathOf(request.raw.url ?? "")
    // What comes after the prefix, which may have parameters.
    const path = patterns.map((pattern) => tailOf(originalPath, pattern)).find(tenure.owns)
    // Fastify may take other spellings for the same, such as those with a slash at the end.
    if (path === undefined) return void reply.callNotFound()
    const known = {
      path,
      originalPath,
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
  instance.addHook("preParsing", async (request) => {
    if (!mediaType.test(request.headers["content-type"] ?? "")) {
      request.headers = { "content-type": "application/octet-stream" }
    }
  })

  for (const url of patterns) {
    const method = instance.supportedMethods
    instance.route({ method, url, exposeHeadRoute: false, handler: answer })
  }
  lead(
    instance,
    instance.prefix.replace(/\/$/, ""),
    tenure.owns,
    `${tenure.basePath}${pathPatterns[0]}`,
  )
}
