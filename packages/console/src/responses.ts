/** The console's own responses, with security header fields. */

import type { ApiResponse } from "@tenure/core/adapter"

/** Allows only the console's own script and style, and requests to its own origin. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ")

const careful = {
  "Content-Security-Policy": contentSecurityPolicy,
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
}

/** Adds the header fields shared by all console responses. */
export const withSecurityHeaders = (response: ApiResponse): ApiResponse => ({
  ...response,
  headers: { ...response.headers, ...careful },
})

const respond = (
  status: number,
  type: string,
  body: string,
  headers: ApiResponse["headers"] = {},
): ApiResponse =>
  withSecurityHeaders({
    status,
    headers: { "Content-Type": type, "Cache-Control": "no-store", ...headers },
    body,
  })

export interface File {
  readonly type: string
  readonly text: string
  /** Is another one when the text is. The page asks for the file with it as the query. */
  readonly version: string
}

/**
 * Serves a file. Browsers cache it only if they request this server's version, because two versions run
 * during an update.
 */
export const staticFile = ({ text, type, version }: File, query: string | undefined): ApiResponse =>
  respond(
    200,
    type,
    text,
    query === version ? { "Cache-Control": "private, max-age=31536000, immutable" } : {},
  )

/** Answers with the page. */
export const htmlPage = (html: string): ApiResponse =>
  respond(200, "text/html; charset=utf-8", html)

/** Answers a person. */
export const plainText = (
  status: number,
  text: string,
  headers?: ApiResponse["headers"],
): ApiResponse => respond(status, "text/plain; charset=utf-8", `${text}\n`, headers)

/** Tells the page's script that a request succeeded. */
export const noContent = (headers?: ApiResponse["headers"]): ApiResponse =>
  respond(200, "application/json", "{}", headers)

/** Refuses a request as the API would, without asking the API. */
export const refusalPage = (status: number, code: string, message: string): ApiResponse =>
  respond(
    status,
    "application/json",
    JSON.stringify({ ok: false, code: status, error: { error_code: code, message } }),
  )
