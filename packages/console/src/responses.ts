/** What the console answers by itself, with the header fields that keep browsers careful. */

import type { ApiResponse } from "@tenure/core/adapter"

/** Nothing but the console's own script and style, and requests to where the page comes from. */
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

/** Adds the header fields that all responses of the console have. */
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

/** A file of the page. */
export interface File {
  readonly type: string
  readonly text: string
  /** Is another one when the text is. The page asks for the file with it as the query. */
  readonly version: string
}

/**
 * Answers with a file. It is kept by browsers only if they ask for the version that this server has:
 * during an update, servers of both versions answer.
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

/** Answers the script of the page that a request succeeded. */
export const noContent = (headers?: ApiResponse["headers"]): ApiResponse =>
  respond(200, "application/json", "{}", headers)

/** Answers the script of the page as the API would, where the API is not asked. */
export const refusalPage = (status: number, code: string, message: string): ApiResponse =>
  respond(
    status,
    "application/json",
    JSON.stringify({ ok: false, code: status, error: { error_code: code, message } }),
  )
