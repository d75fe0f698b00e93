/** API keys: each is found by its bearer token, and opens projects. */

import type { Branded } from "effect/Brand"
import { sha256 } from "../base/bytes.ts"
import { TaggedError } from "../base/tagged-error.ts"
import { type ApiKeyId, type ProjectId, branded } from "../base/values.ts"

/** A token's SHA-256 digest in hexadecimal. Stores keep it instead of the token. */
export type TokenDigest = Branded<string, "@tenure/core/TokenDigest">

/** Brands a stored digest. */
export const TokenDigest = branded<string, TokenDigest>()

/** An API key as stored. */
export interface ApiKey {
  /** The id, which is no secret. */
  readonly id: ApiKeyId
  /** The digest of its token. */
  readonly digest: TokenDigest
  /** What it permits. */
  readonly role: Role
  /** The key's name for people. */
  readonly name: string | undefined
  /** The key's projects, or `"all"` for all existing and future ones. */
  readonly projects: ReadonlySet<ProjectId> | "all"
  /** In milliseconds since the epoch, as all instants here. */
  readonly createdAt: number
  /** When it expires; `undefined` for never. */
  readonly expiresAt: number | undefined
  /** When it was revoked; `undefined` if it was not. */
  readonly revokedAt: number | undefined
  /** About when the key was last used, see `LastUse`; `undefined` if it never was. */
  readonly lastUsedAt: number | undefined
}

/** The API key does not exist. */
export class ApiKeyNotFound extends TaggedError("ApiKeyNotFound")<{
  /** The id that no key has. */
  readonly keyId: string
}> {
  override get message(): string {
    // An invalid id may contain anything.
    return `The API key ${JSON.stringify(this.keyId)} does not exist.`
  }
}

/** The token is a revoked API key's. */
export class ApiKeyRevoked extends TaggedError("ApiKeyRevoked")<{
  /** The id of the revoked key. */
  readonly keyId: string
}> {
  override get message(): string {
    return `The API key "${this.keyId}" was revoked.`
  }
}

/** The token belongs to an API key with another role. */
export class ApiKeyConflict extends TaggedError("ApiKeyConflict")<{
  /** The id of the key that has the token. */
  readonly keyId: string
  /** The role of that key. */
  readonly role: Role
}> {
  override get message(): string {
    return `The token is that of the API key "${this.keyId}", whose role is ${this.role}.`
  }
}

/**
 * A call with the same idempotency key has already issued the key. Its token cannot be disclosed again:
 * if it is lost, revoke the key and issue another.
 */
export class ApiKeyIssued extends TaggedError("ApiKeyIssued")<{
  /** The id of the issued key. */
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
 * Tells whether a value can be a bearer token: 1 to 1,024 visible ASCII characters, with spaces only
 * inside. RFC 6750's `b64token` allows fewer, but a host's clients may already have other tokens.
 */
export const isToken = (value: string): boolean =>
  typeof value === "string" && tokenPattern.test(value)

const utf8 = new TextEncoder()
// Calls are synchronous, so they can share one buffer.
const scratch = new Uint8Array(3 * 1024)

/** Returns text in UTF-8, valid until the next call. Every token fits into the shared buffer. */
const bytesOf = (text: string): Uint8Array => {
  const { read, written } = utf8.encodeInto(text, scratch)
  return read === text.length ? scratch.subarray(0, written) : utf8.encode(text)
}

/** Returns a hexadecimal digit's character code. */
const digitCode = (digit: number): number => digit + (digit < 10 ? 0x30 : 0x57)

// Shared too, because growing an array for each token costs more than the digits.
const codes = Array.from({ length: 64 }, () => 0)

// Appending digit by digit creates a rope, and a `Map` flattens it before each look-up.
const toHex = (bytes: Uint8Array): string => {
  for (let index = 0; index < 32; index++) {
    const byte = bytes[index] ?? 0
    codes[2 * index] = digitCode(byte >>> 4)
    codes[2 * index + 1] = digitCode(byte & 15)
  }
  return String.fromCharCode(...codes)
}

/** Computes a token's digest. */
export const digestToken = (token: string): TokenDigest =>
  TokenDigest(toHex(sha256(bytesOf(token))))

/** All roles. Each includes its predecessors' permissions. */
export const roles = ["client", "operator", "admin"] as const

/**
 * A role.
 *
 * - `client`: sets end dates, manages webhooks and reads memberships, in its projects
 * - `operator`: everything in its projects
 * - `admin`: also API keys and the projects themselves
 */
export type Role = (typeof roles)[number]

/** Tells whether a role includes another one. */
export const roleCovers = (role: Role, needed: Role): boolean =>
  roles.indexOf(role) >= roles.indexOf(needed)

/** A ticket as stored. */
export interface Ticket {
  readonly digest: TokenDigest
  /** The principal: an API key's id, or one from the host. */
  readonly keyId: ApiKeyId
  /** The digest of the API key's token; `undefined` if the host identified the principal. */
  readonly keyDigest: TokenDigest | undefined
  /** The ticket's projects, if still open to its key; or `"all"` projects open to its key. */
  readonly projects: ReadonlySet<ProjectId> | "all"
}

/** The key has the maximum number of tickets. None lives longer than a minute. */
export class TicketLimitReached extends TaggedError("TicketLimitReached")<{
  /** The id of the key. */
  readonly keyId: string
}> {
  override get message(): string {
    return `The API key "${this.keyId}" has too many tickets that were not used yet.`
  }
}
