/** The API through the console: with the user's session instead of a token. */

import { createClient } from "@tenure/client"

/** The server's last answer: none, database unavailable, not signed in, or any other. */
export type Link = "up" | "away" | "stuck" | "out"

const listeners = new Set<(link: Link) => void>()

/** Calls a function after each answer or failure. Returns a function to stop this. */
export const onLink = (listener: (link: Link) => void): (() => void) => {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

const tell = (link: Link): void => {
  for (const listener of listeners) listener(link)
}

const isOfApi = ({ headers }: Response): boolean =>
  headers.get("content-type")?.startsWith("application/json") === true

const linkOf = (response: Response): Link => {
  const { status } = response
  if (status === 401) return "out"
  // A proxy answers so, too, if it does not reach the server.
  if (status === 503 && isOfApi(response)) return "stuck"
  return status === 502 || status === 503 || status === 504 ? "away" : "up"
}

// A cross-site form cannot send this content type; the console requires it to block CSRF.
const type = "application/json"

/** Sends a request as the console wants it. */
const send: typeof fetch = async (input, init) => {
  const response = await sendUnseen(input, init)
  tell(linkOf(response))
  return response
}

/** Sends a request with an answer about itself: 503 may mean that others are before it. */
const sendCalmly: typeof fetch = async (input, init) => {
  const response = await sendUnseen(input, init)
  if (response.status !== 503) tell(linkOf(response))
  return response
}

const sendUnseen: typeof fetch = async (input, init) => {
  const headers = new Headers(init?.headers)
  headers.set("content-type", type)
  try {
    return await fetch(input, { ...init, headers })
  } catch (fault) {
    if (init?.signal?.aborted !== true) tell("away")
    throw fault
  }
}

// Not the page's own URL, which may lack the slash at its end.
const script = document.querySelector<HTMLScriptElement>("script[src]")?.src ?? location.href

const client = (maxRetries: number, fetchWith = send) =>
  createClient({
    baseUrl: new URL("api", script).href,
    // The server replaces it with the session's token.
    token: "session",
    maxRetries,
    maxWait: 5000,
    fetch: fetchWith,
  })

/** The API with retries. */
export const api = client(2)

/** The API with retries, for what the server does for one request at a time. */
export const calm = client(2, sendCalmly)

/** The API without retries. */
export const probe = client(0)

const messageOf = (answer: unknown): string | undefined => {
  if (typeof answer !== "object" || answer === null || !("error" in answer)) return undefined
  const { error } = answer
  return typeof error === "object" && error !== null && "message" in error
    ? String(error.message)
    : undefined
}

/** The answer, unless it is not JSON: a proxy answers in HTML if it does not reach the server. */
const read = async (response: Response): Promise<unknown> => {
  try {
    return await response.json()
  } catch {
    return undefined
  }
}

const unreached = "The server cannot be reached. Check that it runs, and try again."

const foreign = (status: number): string =>
  `The answer with status ${status} is not the console's. Check that Tenure runs, and that no proxy answers in its place; then try again.`

const unknownKey = "This key is not valid or was revoked."

const session = async (method: "POST" | "DELETE", headers: Record<string, string>) => {
  const response = await fetch(new URL("session", script), {
    method,
    headers: { "content-type": type, ...headers },
  }).catch((cause: unknown) => {
    throw new Error(unreached, { cause })
  })
  const answer = await read(response)
  if (response.ok && answer !== undefined) return
  if (response.status === 401) throw new Error(unknownKey)
  throw new Error(messageOf(answer) ?? foreign(response.status))
}

/** Begins a session. Rejects with the error if the server refuses. */
export const signIn = (token: string) => session("POST", { authorization: `Bearer ${token}` })

/** Ends the session. */
export const signOut = () => session("DELETE", {})
