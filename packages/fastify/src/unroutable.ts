/** Requests for the API that Fastify's router gives to no route. */

import type { IncomingMessage } from "node:http"
import { pathOf } from "@tenure/core/ApiRequest"
import type { FastifyInstance } from "fastify"

/** What a request asks for. */
type Asked = Pick<IncomingMessage, "method" | "url">

// What requests asked for that were led to a route. Of all instances, for they may share a server.
const led = new WeakMap<IncomingMessage, Asked>()

// The length beyond which Fastify takes no parameter by default. Of a host that has set less, Fastify
// answers what lies between by itself.
const longestParameter = 100

/** Whether Fastify's router answers such a path by itself, before any hook. */
const isRefused = (path: string): boolean => {
  if (path.split("/").some((segment) => segment.length > longestParameter)) return true
  try {
    decodeURI(path)
    return false
  } catch {
    return true
  }
}

/** The start of a path that matches a prefix segment by segment, if it does. */
const matchPrefix = (path: string, prefix: string): string | undefined => {
  const expected = prefix.split("/")
  const start = path.split("/").slice(0, expected.length)
  const matches = expected.every((part, index) =>
    part.startsWith(":") ? start[index] !== "" : part === start[index],
  )
  return matches ? start.join("/") : undefined
}

/**
 * Leads such requests to a route of the API, which goes by what they asked for. Fastify answers by
 * itself where it does not know a method, or where a path is too long or not percent-encoded
 * correctly; the answers to these are the API's as well. Hooks of the host meanwhile see a POST in
 * the place of a method that Fastify does not know, and a path with other ids. What is wrong with the
 * parameters of a prefix is still answered by Fastify.
 *
 * @param owns - tells whether a path is one of the API's, after the prefix of the instance
 * @param route - the path of a route of the API, after that prefix
 */
export const lead = (
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
    if (isKnown && !path.includes("%") && path.length <= longestParameter) return
    const start = matchPrefix(path, prefix)
    if (start === undefined || !owns(path.slice(start.length))) return
    if (isKnown && !isRefused(path)) return
    led.set(request, { method, url })
    request.url = `${start}${route}`
    if (!isKnown) request.method = "POST"
  }
  server.prependListener("request", onRequest)
  instance.addHook("onClose", async () => void server.off("request", onRequest))
}

/** Restores what a request asked for. */
export const restore = (request: IncomingMessage): void =>
  void Object.assign(request, led.get(request))
