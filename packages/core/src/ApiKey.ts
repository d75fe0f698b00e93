/** API keys: what a bearer token stands for. */

import type { Branded } from "effect/Brand"
import * as Data from "effect/Data"
import { nominal } from "./internal/refined.ts"
import { sha256 } from "./internal/sha256.ts"
import type { ProjectId } from "./Project.ts"

/** Identifier of an API key, a UUID. It is no secret, unlike the token. */
export type ApiKeyId = Branded<string, "@tenure/core/ApiKeyId">

/** Brands the id of an API key. */
export const ApiKeyId = nominal<string, ApiKeyId>()

/** The SHA-256 digest of a token, in hexadecimal: all that is ever stored of it. */
export type TokenDigest = Branded<string, "@tenure/core/TokenDigest">

/** Brands a digest that a store kept. */
export const TokenDigest = nominal<string, TokenDigest>()

/** An API key as stored. */
export interface ApiKey {
  readonly id: ApiKeyId
  readonly digest: TokenDigest
  /** The projects the key opens. */
  readonly projects: ReadonlySet<ProjectId>
  /** Milliseconds since the epoch, as are the other instants. */
  readonly createdAt: number
  readonly expiresAt: number | undefined
  readonly revokedAt: number | undefined
}

/** There is no such API key. */
export class ApiKeyNotFound extends Data.TaggedError("ApiKeyNotFound")<{
  readonly keyId: string
}> {
  override get message(): string {
    return `There is no API key "${this.keyId}".`
  }
}

/** The token is a key's that was revoked: it opens nothing any more. */
export class ApiKeyRevoked extends Data.TaggedError("ApiKeyRevoked")<{
  readonly keyId: string
}> {
  override get message(): string {
    return `The API key "${this.keyId}" was revoked.`
  }
}

/** Tells whether a key opens anything at `now` (milliseconds since the epoch). */
export const isLive = (key: ApiKey, now: number): boolean =>
  key.revokedAt === undefined && (key.expiresAt === undefined || key.expiresAt > now)

const tokenPattern = /^[\x21-\x7e]([\x20-\x7e]{0,1022}[\x21-\x7e])?$/

/**
 * Tells whether a text can be a bearer token: 1 to 1,024 characters of visible ASCII, spaces only
 * inside. That is wider than the `b64token` of RFC 6750, for hosts whose clients have tokens already.
 */
export const isToken = (text: string): boolean => tokenPattern.test(text)

const utf8 = new TextEncoder()
// Nothing here waits, so one scratch area serves every call.
const scratch = new Uint8Array(3 * 1024)

/** The UTF-8 of a text, which holds until the next call; a token is never too long for the scratch. */
const bytesOf = (text: string): Uint8Array => {
  const { read, written } = utf8.encodeInto(text, scratch)
  return read === text.length ? scratch.subarray(0, written) : utf8.encode(text)
}

/** The character code of a hexadecimal digit. */
const digitCode = (digit: number): number => digit + (digit < 10 ? 0x30 : 0x57)

// A text that grows digit by digit would have to be put together once more before it is looked up.
const toHex = (bytes: Uint8Array): string => {
  const codes: Array<number> = []
  for (const byte of bytes) codes.push(digitCode(byte >>> 4), digitCode(byte & 15))
  return String.fromCharCode(...codes)
}

/** The digest under which a token is stored and looked up. */
export const digest = (token: string): TokenDigest => TokenDigest(toHex(sha256(bytesOf(token))))
