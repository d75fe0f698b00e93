/** Secrets and signing keys of webhooks in the form in which stores keep them. */

import type { Branded } from "effect/Brand"
import * as Base64 from "../base/Base64.ts"
import { nominal } from "../base/Refined.ts"

/**
 * A secret or a signing key as a store keeps it: the text itself, or `enc_`, the id of the encryption
 * key, `_`, and the ciphertext. A store does not interpret it.
 */
export type StoredSecret = Branded<string, "@tenure/core/StoredSecret">

/** Brands what a store has read. */
export const StoredSecret = nominal<string, StoredSecret>()

/** The parts of an encrypted secret. */
export interface Sealed {
  readonly keyId: string
  /** The initialization vector, 12 bytes, the ciphertext, and the tag, 16 bytes. */
  readonly bytes: Uint8Array<ArrayBuffer>
}

/** Tells whether text can be the id of an encryption key. */
export const isKeyId = (text: string): boolean => /^[A-Za-z0-9-]{1,32}$/.test(text)

const prefix = "enc_"

/** Tells whether a secret is encrypted, even if it is damaged. */
export const isEncrypted = (stored: StoredSecret): boolean => stored.startsWith(prefix)

/** Tells whether a secret is encrypted with a key. */
export const isEncryptedWith = (keyId: string, stored: StoredSecret): boolean =>
  stored.startsWith(`${prefix}${keyId}_`)

/** Writes an encrypted secret. */
export const print = ({ bytes, keyId }: Sealed): StoredSecret =>
  StoredSecret(`${prefix}${keyId}_${Base64.encodeUrl(bytes)}`)

/** Reads an encrypted secret. Returns `undefined` if it is damaged. */
export const parse = (stored: StoredSecret): Sealed | undefined => {
  const end = stored.indexOf("_", prefix.length)
  const keyId = stored.slice(prefix.length, Math.max(prefix.length, end))
  const bytes = Base64.decodeUrl(stored.slice(end + 1))
  return isEncrypted(stored) && isKeyId(keyId) && bytes !== undefined ? { keyId, bytes } : undefined
}
