/** The cookie that keeps the API key with which an operator has signed in. Scripts cannot read it. */

import type { ApiRequest } from "@tenure/core/ApiRequest"
import { single } from "@tenure/core/HeaderFields"

const name = "tenure_console"

const pattern = new RegExp(`(?:^|; *)${name}=([^;]*)`)

const fieldOf = ({ headers }: ApiRequest, field: string): string => {
  const found = single(headers, field)
  return found._tag === "Value" ? found.value : ""
}

const decode = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Returns the token of the session that a request belongs to. */
export const tokenOf = (request: ApiRequest): string | undefined => {
  const value = pattern.exec(fieldOf(request, "cookie"))?.[1]
  return value === undefined ? undefined : decode(value)
}

/** Returns the token that a request signs in with. */
const tokenGiven = (request: ApiRequest): string =>
  fieldOf(request, "authorization").replace(/^bearer +/i, "")

// Without a path, the cookie is sent to the folder of the console, under whatever name a proxy has it.
const attributes = (request: ApiRequest): string => {
  // Browsers accept `Secure` from localhost without TLS, but not all of them.
  const isPlain = fieldOf(request, "origin").startsWith("http:")
  return `HttpOnly; SameSite=Strict${isPlain ? "" : "; Secure"}`
}

/** The header that begins a session, which ends with the browser's. */
export const begin = (request: ApiRequest) => ({
  "Set-Cookie": `${name}=${encodeURIComponent(tokenGiven(request))}; ${attributes(request)}`,
})

/** The header that ends a session. */
export const end = (request: ApiRequest) => ({
  "Set-Cookie": `${name}=; Max-Age=0; ${attributes(request)}`,
})
