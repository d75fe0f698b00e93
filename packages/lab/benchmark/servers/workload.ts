/** The requests to all servers. */

import type { ServerResponse } from "node:http"
import { parseEndDate } from "@tenure/core/store"

/** The project, and how many members it has, whose ids begin at 1. */
export const projectId = "p1"
export const memberCount = 1000

/** Tokens for so many keys. */
export const tokensOf = (count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => `benchmark-token-${index}-${"x".repeat(24)}`)

/** The usual clients' tokens. */
export const tokens = tokensOf(16)

/** The project for imports, and its operator's token. */
export const importedProjectId = "imported"
export const importToken = `benchmark-operator-${"x".repeat(24)}`

/** The end date in every request. */
export const endDate = "2099-01-01T00:00:00.000Z"

/** A limit that no client reaches. Requests are still counted. */
export const highLimit = 1_000_000_000

/** An extension's route, as Express and Fastify spell it. */
export const route = "/v2/projects/:project/memberships/:user/extend"

export const importPath = `/v2/projects/${importedProjectId}/memberships/import`

const extendPath = (user: number): string =>
  route.replace(":project", projectId).replace(":user", String(user))

/** Requests for each member, or for the first ones, and from each client, as bytes that can be sent as they are. */
export const requests = (from = tokens, members = memberCount): ReadonlyArray<string> =>
  Array.from({ length: Math.max(members, from.length) }, (_, index) => {
    const body = JSON.stringify({ extend: endDate })
    return [
      `PATCH ${extendPath(1 + (index % members))} HTTP/1.1`,
      "Host: 127.0.0.1",
      `Authorization: Bearer ${from[index % from.length]}`,
      "Content-Type: application/json",
      `Content-Length: ${body.length}`,
      "",
      body,
    ].join("\r\n")
  })

/** The fields that Tenure sends with every response, as a constant. */
export const headers = {
  "Content-Type": "application/json",
  "Cache-Control": "no-store",
  "X-RateLimit-Limit": String(highLimit),
  "X-RateLimit-Remaining": String(highLimit - 1),
  "X-RateLimit-Reset": "1790000000",
}

/** Answers with a text and these fields. */
export const answerWith = (response: ServerResponse, text: string): void => {
  response.writeHead(200, { ...headers, "Content-Length": Buffer.byteLength(text) })
  response.end(text)
}

/** The body with which Tenure responds to a request with this id. */
export const envelopeOf = (
  requestId: string,
  newEndDate: string,
  method = "PATCH",
  path = extendPath(500),
) => ({
  ok: true,
  request_id: requestId,
  method,
  path,
  code: 200,
  total: 1,
  message: "The membership was extended.",
  data: { new_end_date: newEndDate },
})

/** The token in an Authorization header. */
export const tokenIn = (authorization = ""): string =>
  authorization.startsWith("Bearer ") ? authorization.slice("Bearer ".length) : ""

/** The rule for dates. It is the fastest one here, so no contestant has a disadvantage. */
export const isRealInstant = (text: string): boolean => parseEndDate(text) !== undefined
