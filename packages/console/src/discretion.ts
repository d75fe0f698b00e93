/**
 * Requests as the console passes them on. Secrets of webhooks and data of events are shown only by
 * operations that the audit trail keeps: of others, that answer with many at once, the console asks for
 * less.
 */

import type { ApiRequest } from "@tenure/core/ApiRequest"

const webhooks = /^(\/v2\/projects\/[^/]+\/integrations)\/webhooks$/

const events = /^\/v2\/projects\/[^/]+\/events$/

const withoutData = (request: ApiRequest): ApiRequest => {
  const query = new URLSearchParams(request.query)
  query.set("data", "false")
  // A stream would have the data.
  const headers = { ...request.headers, accept: "application/json" }
  return { ...request, query: query.toString(), headers }
}

/**
 * Returns whether the console passes on requests for a path of the API. A ticket would open a connection
 * that has the data of events.
 */
export const isPassed = (path: string): boolean => !path.startsWith("/v2/realtime")

/**
 * Returns a request without what would show secrets or data.
 *
 * @param request - its path is that of the API, without the base path
 */
export const discreet = (request: ApiRequest): ApiRequest => {
  const { method, path } = request
  if (method !== "GET") return request
  if (events.test(path)) return withoutData(request)
  return { ...request, path: path.replace(webhooks, "$1/health") }
}
