/** The errors of the parsers of Express, and what is left of the bodies that they refused. */

import { type ArrivedBody, brokenOff, consumed, tooLarge } from "@tenure/core/ApiRequest"
import type { Request } from "express"

/** What is known of a refused body; empty for one that can still be read from the request. */
export interface Refusal {
  readonly body?: ArrivedBody
}

const utf8 = new TextEncoder()

const propertyOf = (error: unknown, name: string): unknown =>
  typeof error === "object" && error !== null ? Reflect.get(error, name) : undefined

/** The text that a parser could not parse. */
const unparsed = (error: unknown): ArrivedBody => {
  const text = propertyOf(error, "body")
  return typeof text === "string" ? { _tag: "Bytes", bytes: utf8.encode(text) } : consumed
}

// Errors of decompression are those of zlib, which have a number.
const isFaultyCompression = (error: unknown, { headers }: Request): boolean =>
  headers["content-encoding"] !== undefined && typeof propertyOf(error, "errno") === "number"

/** Returns what a parser left of a body that it refused, or `undefined` for any other error. */
export const of = (error: unknown, request: Request): Refusal | undefined => {
  switch (propertyOf(error, "type")) {
    case "entity.parse.failed":
      return { body: unparsed(error) }
    case "entity.too.large":
      return { body: tooLarge }
    case "request.size.invalid":
      return { body: brokenOff }
    case "parameters.too.many":
    case "querystring.parse.rangeError":
      return { body: consumed }
    case "charset.unsupported":
    case "encoding.unsupported":
      return request.readableDidRead ? { body: consumed } : {}
    default:
      return isFaultyCompression(error, request) ? { body: consumed } : undefined
  }
}
