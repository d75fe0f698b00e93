/** The heads of requests that node's parser gives up on, as far as they can be read. */

import { METHODS } from "node:http"
import type { HeaderFields } from "@tenure/core/HeaderFields"

/** The head of a request. */
export interface RequestHead {
  readonly method: string
  readonly target: string
  readonly headers: HeaderFields
}

const requestLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e\x80-\xff]+) HTTP\/1\.[01]$/
const fieldLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)$/

/** Parses the line that a packet begins with, if it is that of a request. */
export const parseRequestLine = (packet: Buffer): Omit<RequestHead, "headers"> | undefined => {
  const end = packet.indexOf("\r\n")
  const [, method, target] = requestLine.exec(packet.toString("latin1", 0, Math.max(0, end))) ?? []
  return method === undefined || target === undefined ? undefined : { method, target }
}

/**
 * Parses the head of a request with an unknown method (RFC 9112); `undefined` where the packet
 * starts with anything else.
 */
export const parseUnknown = (packet: Buffer): RequestHead | undefined => {
  const text = packet.toString("latin1")
  const end = text.indexOf("\r\n\r\n")
  const [first = "", ...lines] = text.slice(0, Math.max(0, end)).split("\r\n")
  const [, method, target] = requestLine.exec(first) ?? []
  // A known method is the head of an earlier request in the same packet, answered already.
  if (method === undefined || target === undefined || METHODS.includes(method)) return undefined
  const headers: Record<string, ReadonlyArray<string>> = Object.create(null)
  for (const line of lines) {
    const [, name = "", value = ""] = fieldLine.exec(line) ?? []
    const key = name.toLowerCase()
    headers[key] = [...(headers[key] ?? []), value.trim()]
  }
  return { method, target, headers }
}
