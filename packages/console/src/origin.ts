/** Which requests come from the page: no other page can send them, whatever cookies a browser adds. */

import type { ApiRequest } from "@tenure/core/ApiRequest"
import type { ApiResponse } from "@tenure/core/Envelope"
import { type HeaderFields, single } from "@tenure/core/HeaderFields"
import { refusal } from "./responses.ts"

const valueOf = (headers: HeaderFields, name: string): string | undefined => {
  const field = single(headers, name)
  return field._tag === "Value" ? field.value : undefined
}

// Forms of other pages cannot send this type.
const json = /^application\/json *(;|$)/i

const isSafe = (method: string): boolean => method === "GET" || method === "HEAD"

/** Returns how a request is refused that the page did not send, and `undefined` for those it did. */
export const refusalOf = ({ headers, method }: ApiRequest): ApiResponse | undefined => {
  const site = valueOf(headers, "sec-fetch-site")
  if (site === undefined) {
    return refusal(
      403,
      "FORBIDDEN",
      "The browser does not tell where the request comes from. Open the console over HTTPS, or at localhost.",
    )
  }
  if (site !== "same-origin") {
    return refusal(403, "FORBIDDEN", "The request comes from another page.")
  }
  return isSafe(method) || json.test(valueOf(headers, "content-type") ?? "")
    ? undefined
    : refusal(415, "UNSUPPORTED_MEDIA_TYPE", "The content type must be application/json.")
}
