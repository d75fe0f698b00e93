/** Tenure on memory stores, with project `p1` and an admin's requests to its API. */

import { memory } from "@tenure/memory"
import type { ApiRequest } from "../../src/http/request.ts"
import { type CreateTenureOptions, createTenure } from "../../src/tenure.ts"

const utf8 = new TextEncoder()

export const startApi = async (options: Partial<CreateTenureOptions> = {}) => {
  const tenure = await createTenure({ stores: memory(), ...options })
  await tenure.memberships.createProject("p1")
  const { token } = await tenure.apiKeys.issue({ projects: "all", role: "admin" })
  /** Sends a request with a JSON or NDJSON body. */
  const send = (
    method: string,
    target: string,
    body?: unknown,
    headers: ApiRequest["headers"] = {},
  ) => {
    const [path = "", query] = target.split("?")
    const isLines = typeof body === "string"
    const text = isLines || body === undefined ? body : JSON.stringify(body)
    return tenure.handle({
      method,
      path,
      query,
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": isLines ? "application/x-ndjson" : "application/json",
        ...headers,
      },
      body: { _tag: "Bytes", bytes: utf8.encode(text) },
      remoteAddress: "203.0.113.7",
    })
  }
  return { tenure, token, send }
}
