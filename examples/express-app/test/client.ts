/** A client of the backend under test. */

import type { Backend } from "./program.ts"

/** Sends a request. Returns the response, its status, and its body, parsed if it is JSON. */
export const send = async (
  { url }: Backend,
  method: string,
  path: string,
  cookie = "",
  body?: object,
) => {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { cookie, "content-type": "application/json" },
    body: body === undefined ? null : JSON.stringify(body),
  })
  const text = await response.text()
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true
  return { response, status: response.status, body: isJson ? JSON.parse(text) : text }
}

/** Logs in. Returns the cookie, or an empty string if the password is wrong. */
export const logIn = async (backend: Backend, name: string, password: string): Promise<string> => {
  const { response } = await send(backend, "POST", "/login", "", { name, password })
  return response.headers.getSetCookie()[0]?.split(";")[0] ?? ""
}
