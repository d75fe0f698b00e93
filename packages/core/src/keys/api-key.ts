/** API keys: each is found by its bearer token, and opens projects. */

import type { Branded } from "effect/Brand"
import * as Data from "effect/Data"
import { sha256 } from "../base/bytes.ts"
import { type ApiKeyId, type ProjectId, branded } from "../base/values.ts"

/** The SHA-256 digest of a token, in hexadecimal. Stores keep it in place of the token. */
export type TokenDigest = Branded<string, "@tenure/core/TokenDigest">

/** Brands a digest that a store has kept. */
export const TokenDigest = branded<string, TokenDigest>()

/** An API key as stored. */
export interface ApiKey {
  readonly id: ApiKeyId
  readonly digest: TokenDigest
  readonly role: Role
  /** What people call the key. */
  readonly name: string | undefined
  /** The projects the key opens, or `"all"` for those there are and will be. */
  readonly projects: ReadonlySet<ProjectId> | "all"
  /** In milliseconds since the epoch, as all instants here. */
  readonly createdAt: number
  readonly expiresAt: number | undefined
  readonly revokedAt: number | undefined
  /** About when the key was last used, see `LastUse`; `undefined` if it never was. */
  readonly lastUsedAt: number | undefined
}

/** The API key does not exist. */
export class ApiKeyNotFound extends Data.TaggedError("ApiKeyNotFound")<{
  readonly keyId: string
}> {
  override get message(): string {
    // An invalid id may contain anything.
    return `The API key ${JSON.stringify(this.keyId)} does not exist.`
  }
}

/** The token is a revoked API key's. */
export class ApiKeyRevoked extends Data.TaggedError("ApiKeyRevoked")<{
  readonly keyId: string
}> {
  override get message(): string {
    return `The API key "${this.keyId}" was revoked.`
  }
}

/** The token is that of an API key with another role. */
export class ApiKeyConflict extends Data.TaggedError("ApiKeyConflict")<{
  readonly keyId: string
  readonly role: Role
}> {
  override get message(): string {
    return `The token is that of the API key "${this.keyId}", whose role is ${this.role}.`
  }
}

/**
 * The key was issued before, by a call with the same idempotency key. Its token cannot be shown again: who
 * has not got it revokes the key and issues another.
 */
export class ApiKeyIssued extends Data.TaggedError("ApiKeyIssued")<{
  readonly keyId: string
}> {
  override get message(): string {
    return `The API key "${this.keyId}" was issued before.`
  }
}

/** Tells whether a key is neither revoked nor expired at `now`, in milliseconds since the epoch. */
export const isUsable = (key: ApiKey, now: number): boolean =>
  key.revokedAt === undefined && (key.expiresAt === undefined || key.expiresAt > now)

const tokenPattern = /^[\x21-\x7e]([\x20-\x7e]{0,1022}[\x21-\x7e])?$/

/**
 * Tells whether a value can be a bearer token: 1 to 1,024 characters of visible ASCII, with spaces
 * only inside. The `b64token` of RFC 6750 allows fewer, but clients of a host may already have tokens
 * of other forms.
 */
export const isToken = (value: string): boolean =>
  typeof value === "string" && tokenPattern.test(value)

const utf8 = new TextEncoder()
// Calls are synchronous, so they can share one buffer.
const scratch = new Uint8Array(3 * 1024)

/** The UTF-8 encoding of text, valid until the next call. Every token fits into the shared buffer. */
const bytesOf = (text: string): Uint8Array => {
  const { read, written } = utf8.encodeInto(text, scratch)
  return read === text.length ? scratch.subarray(0, written) : utf8.encode(text)
}

/** The character code of a hexadecimal digit. */
const digitCode = (digit: number): number => digit + (digit < 10 ? 0x30 : 0x57)

// Shared, too: an array that grows for each token costs more than the digits.
const codes = Array.from({ length: 64 }, () => 0)

// Appending to a string digit by digit makes a rope, which a `Map` flattens before it looks it up.
const toHex = (bytes: Uint8Array): string => {
  for (let index = 0; index < 32; index++) {
    const byte = bytes[index] ?? 0
    codes[2 * index] = digitCode(byte >>> 4)
    codes[2 * index + 1] = digitCode(byte & 15)
  }
  return String.fromCharCode(...codes)
}

/** Computes the digest under which a token is stored and found. */
export const digestToken = (token: string): TokenDigest =>
  TokenDigest(toHex(sha256(bytesOf(token))))

/** Roles: what the holder of an API key, or whom the host identified, may do. */

/** Every role. Each may also do what those before it may. */
export const roles = ["client", "operator", "admin"] as const

/**
 * A role.
 *
 * - `client`: sets end dates, manages webhooks and reads memberships, in its projects
 * - `operator`: everything in its projects
 * - `admin`: also API keys and the projects themselves
 */
export type Role = (typeof roles)[number]

/** Tells whether a role may do what another one may. */
export const roleCovers = (role: Role, needed: Role): boolean =>
  roles.indexOf(role) >= roles.indexOf(needed)

/** Tickets: each lets a page in a browser follow the feed once, without the key that it stands for. */

/** A ticket as stored. */
export interface Ticket {
  readonly digest: TokenDigest
  /** Whose ticket it is: an API key's, or whom else the host identified. */
  readonly keyId: ApiKeyId
  /** The digest of the token of the API key; `undefined` if the host identified the sender. */
  readonly keyDigest: TokenDigest | undefined
  /** The projects whose feeds the ticket opens, if its key opens them; or `"all"` that the key opens. */
  readonly projects: ReadonlySet<ProjectId> | "all"
}

/** The key has as many tickets as it may have. None of them lives longer than a minute. */
export class TicketLimitReached extends Data.TaggedError("TicketLimitReached")<{
  readonly keyId: string
}> {
  override get message(): string {
    return `The API key "${this.keyId}" has too many tickets that were not used yet.`
  }
}
