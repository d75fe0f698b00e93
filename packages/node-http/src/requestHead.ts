/** Reads what can be read of requests that Node's parser rejects. */

import { maxHeaderSize, METHODS } from "node:http"
import type { HeaderFields } from "@tenure/core/HeaderFields"

/** The first line of a request, in two parts. */
export interface RequestLine {
  readonly method: string
  readonly target: string
}

/** A packet that the parser rejected. */
export interface Rejected {
  readonly packet: Buffer
  /** How many bytes of the packet were valid. */
  readonly parsed: number
}

const requestLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e\x80-\xff]+) HTTP\/1\.[01]$/
const fieldLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)$/

/**
 * Returns where in the packet the rejected request starts: behind the last whole head and its body.
 *
 * @param bodyLength - how long the body of the request before is, in bytes
 */
const startOf = ({ packet, parsed }: Rejected, bodyLength: number): number => {
  const end = packet.subarray(0, parsed).lastIndexOf("\r\n\r\n")
  return end === -1 ? 0 : end + 4 + bodyLength
}

const parseLine = (line: string): RequestLine | undefined => {
  const [, method, target] = requestLine.exec(line) ?? []
  return method === undefined || target === undefined ? undefined : { method, target }
}

/** Reads the first line of a rejected request. Returns `undefined` if it cannot be told. */
export const readLine = (rejected: Rejected, bodyLength: number): RequestLine | undefined => {
  const { packet } = rejected
  const start = startOf(rejected, bodyLength)
  const end = packet.indexOf("\r\n", start)
  const line = parseLine(packet.toString("latin1", start, Math.max(start, end)))
  return line !== undefined && METHODS.includes(line.method) ? line : undefined
}

/** A request with a method that Node does not know. */
export type Unknown =
  | ({ readonly _tag: "Head"; readonly headers: HeaderFields } & RequestLine)
  /** The head is longer than Node allows. */
  | ({ readonly _tag: "TooLong" } & RequestLine)

const parseFields = (lines: ReadonlyArray<string>): HeaderFields => {
  const headers: Record<string, Array<string>> = Object.create(null)
  for (const line of lines) {
    const [, name = "", value = ""] = fieldLine.exec(line) ?? []
    const values = (headers[name.toLowerCase()] ??= [])
    values.push(value.trim())
  }
  return headers
}

/**
 * Reads the head of a request with an unknown method (RFC 9112), which follows no body. Returns
 * `undefined` if anything else was rejected.
 */
export const readUnknown = (rejected: Rejected): Unknown | undefined => {
  const { packet, parsed } = rejected
  const start = startOf(rejected, 0)
  const end = packet.indexOf("\r\n\r\n", start)
  const [first = "", ...lines] = packet
    .toString("latin1", start, Math.max(start, Math.min(end, start + maxHeaderSize)))
    .split("\r\n")
  const line = parseLine(first)
  if (line === undefined || parsed - start > line.method.length) return undefined
  return end - start > maxHeaderSize
    ? { _tag: "TooLong", ...line }
    : { _tag: "Head", ...line, headers: parseFields(lines) }
}
