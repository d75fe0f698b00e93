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
}> {}

/** Tells whether a key opens anything at `now` (milliseconds since the epoch). */
export const isLive = (key: ApiKey, now: number): boolean =>
  key.revokedAt === undefined && (key.expiresAt === undefined || key.expiresAt > now)

// RFC 6750, 2.1 (b64token), so that every token can be sent in a header as it is.
const tokenPattern = /^[A-Za-z0-9\-._~+/]+=*$/

/** Tells whether a text can be a bearer token (RFC 6750, `b64token`), at most 1,024 characters. */
export const isToken = (text: string): boolean => text.length <= 1024 && tokenPattern.test(text)

const utf8 = new TextEncoder()
const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"))

/** The digest under which a token is stored and looked up. */
export const digest = (token: string): TokenDigest => {
  let text = ""
  for (const byte of sha256(utf8.encode(token))) text += hex[byte]
  return TokenDigest(text)
}
