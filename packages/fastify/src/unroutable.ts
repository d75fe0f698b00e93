/** Routes requests for the API that Fastify's router refuses. */

import type { IncomingMessage } from "node:http"
import { pathOf } from "@tenure/core/ApiRequest"
import type { FastifyInstance } from "fastify"

/** The method and URL of a request. */
type Target = Pick<IncomingMessage, "method" | "url">

// The original method and URL of each request that was redirected to a route. Shared by all instances,
// because they may share a server.
const originals = new WeakMap<IncomingMessage, Target>()

// The default limit of Fastify on the length of a parameter. If the host has set a lower one, Fastify
// itself answers requests between the two.
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

/** Returns the start of a path that matches a prefix segment by segment, or `undefined`. */
const matchPrefix = (path: string, prefix: string): string | undefined => {
  const expected = prefix.split("/")
  const start = path.split("/").slice(0, expected.length)
  const matches = expected.every((part, index) =>
    part.startsWith(":") ? start[index] !== "" : part === start[index],
  )
  return matches ? start.join("/") : undefined
}

/**
 * Redirects requests for the API that Fastify's router would refuse to a route of the API.
 *
 * The router refuses unknown methods, parameters that are too long, and paths with invalid
 * percent-encoding, and a target in absolute form with a fragment. Clients of the API get an envelope in these cases, too. Hooks of the host see POST
 * in place of an unknown method, and a path with other ids. Fastify still refuses an invalid parameter
 * of the prefix.
 *
 * @param prefix - the prefix of the instance
 * @param owns - whether a path, without the prefix, belongs to the API
 * @param route - the path of a route of the API, without the prefix
 */
export const redirectRefused = (
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

/** Restores the original method and URL of a request. */
export const restore = (request: IncomingMessage): void =>
  void Object.assign(request, originals.get(request))
