/** The keyring, and the format of stored secrets and signing keys. */

import type { Branded } from "effect/Brand"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { decodeBase64, decodeBase64Url, encodeBase64Url, sha256 } from "../base/bytes.ts"
import { InvalidInput } from "../base/errors.ts"
import * as Setting from "../base/setting.ts"
import { branded } from "../base/values.ts"

/**
 * A stored secret, signing key or text of headers: the text itself, or `enc_`, the encryption key's id, `_`, and the
 * ciphertext. Stores do not interpret it.
 */
export type StoredSecret = Branded<string, "@tenure/core/StoredSecret">

/** Brands text from a store. */
export const StoredSecret = branded<string, StoredSecret>()

/** An encrypted secret's parts. */
export interface EncryptedSecret {
  readonly keyId: string
  /** The initialization vector, 12 bytes, the ciphertext, and the tag, 16 bytes. */
  readonly bytes: Uint8Array<ArrayBuffer>
}

/** Tells whether text is a valid id for an encryption key. */
const isKeyId = (text: string): boolean => /^[A-Za-z0-9-]{1,32}$/.test(text)

const prefix = "enc_"

/** Tells whether a secret is encrypted, even if it is damaged. */
export const isEncrypted = (stored: StoredSecret): boolean => stored.startsWith(prefix)

/** Tells whether a secret is encrypted with a key. */
export const isEncryptedWith = (keyId: string, stored: StoredSecret): boolean =>
  stored.startsWith(`${prefix}${keyId}_`)

/** Returns the id of the key that a secret is encrypted with; `undefined` if it is not encrypted, or damaged. */
export const encryptionKeyOf = (stored: StoredSecret): string | undefined =>
  /^enc_([A-Za-z0-9-]{1,32})_/.exec(stored)?.[1]

/** Writes an encrypted secret. */
export const formatStoredSecret = ({ bytes, keyId }: EncryptedSecret): StoredSecret =>
  StoredSecret(`${prefix}${keyId}_${encodeBase64Url(bytes)}`)

/** Reads an encrypted secret. Returns `undefined` if it is damaged. */
export const parseStoredSecret = (stored: StoredSecret): EncryptedSecret | undefined => {
  const end = stored.indexOf("_", prefix.length)
  const keyId = stored.slice(prefix.length, Math.max(prefix.length, end))
  const bytes = decodeBase64Url(stored.slice(end + 1))
  return isEncrypted(stored) && isKeyId(keyId) && bytes !== undefined ? { keyId, bytes } : undefined
}

/** An AES-256 key: 32 bytes, or their base64. */
type Key = string | Uint8Array

/** Keys by id, or a function to return the key with an id, or `undefined` for an unknown id. */
export type Keys =
  | Readonly<Record<string, Key>>
  | ((id: string) => Key | undefined | Promise<Key | undefined>)

type Find = (id: string) => Promise<Uint8Array<ArrayBuffer> | undefined>

/** The keys as the library uses them. */
export interface Keyring {
  /** The encrypting key's id; `undefined` to only decrypt. */
  readonly current: string | undefined
  /** Finds a key. The promise rejects if the host's function does. */
  readonly find: Find
}

/** Copies a key's bytes. Returns `undefined` unless there are 32. */
const bytesOf = (key: unknown): Uint8Array<ArrayBuffer> | undefined => {
  const bytes = typeof key === "string" ? decodeBase64(key) : key
  return bytes instanceof Uint8Array && bytes.length === 32 ? Uint8Array.from(bytes) : undefined
}

interface Found {
  /** The keys' ids; `undefined` if only the host's function knows them. */
  readonly ids: ReadonlySet<string> | undefined
  /** Finds a key by its id. */
  readonly find: Find
}

const readKeys = (given: unknown): Found | undefined => {
  if (Predicate.isFunction(given)) {
    return { ids: undefined, find: async (id) => bytesOf(await given(id)) }
  }
  if (!Predicate.isObject(given)) return undefined
  const keys = new Map<string, Uint8Array<ArrayBuffer>>()
  for (const [id, key] of Object.entries(given)) {
    const bytes = bytesOf(key)
    if (bytes === undefined || !isKeyId(id)) return undefined
    keys.set(id, bytes)
  }
  return { ids: new Set(keys.keys()), find: async (id) => keys.get(id) }
}

// The invalid value may still be a key.
const showNothing = (): string => "another value"

const fields = Setting.object({
  /**
   * The encrypting key's id: 1 to 32 letters, digits and hyphens. Without it, the keys only decrypt,
   * and new secrets are kept in plain text.
   */
  current: Setting.optional(
    Setting.custom<string>(
      "1 to 32 letters, digits and hyphens",
      (given) => (typeof given === "string" && isKeyId(given) ? given : undefined),
      showNothing,
    ),
  ),
  /**
   * The keys by id, each 32 random bytes or their base64; or a function that returns the key with an id,
   * or a promise for it, and whose results are cached. Keep a key while anything is encrypted with it.
   */
  keys: Setting.custom<Keys, Found>(
    "an object of keys by id, each 32 bytes or their base64, or a function that returns a key",
    readKeys,
    showNothing,
  ),
})

/** The option, as a host gives it. */
export interface KeyringInput extends Setting.InputOf<typeof fields> {}

/** The option. Its type has a name, because declarations of other modules lose the comments of fields. */
export const keyringOption: Setting.Setting<KeyringInput, Keyring> = Setting.refine(
  fields,
  ({ current, keys: { find, ids } }, name): Result.Result<Keyring, InvalidInput> =>
    current === undefined || ids === undefined || ids.has(current)
      ? Result.succeed({ current, find })
      : Result.fail(
          new InvalidInput({
            field: `${name}.current`,
            problem: "must be the id of one of the keys",
          }),
        ),
)

const fingerprint = (key: string): string =>
  Array.from(sha256(new TextEncoder().encode(key)).subarray(0, 4), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("")

/** Describes the format for error messages. */
export const keyringFormat =
  'the base64 of 32 bytes, or several of them, separated by commas, or "plain" in place of the first'

// Replaces the encrypting key to keep new secrets in plain text.
const plain = "plain"

/**
 * Reads keys from an environment variable: base64 for 32 bytes; or several, separated by commas, where
 * the first one encrypts. After the word `plain`, all only decrypt. A key's id is derived from its
 * SHA-256 digest.
 *
 * @returns the option, or `undefined` for any other text
 */
export const parseKeyring = (text: string): KeyringInput | undefined => {
  const [first = "", ...others] = text.split(",").map((key) => key.trim())
  const keys = first === plain ? others : [first, ...others]
  if (keys.length === 0 || !keys.every((key) => bytesOf(key) !== undefined)) return undefined
  return {
    current: first === plain ? undefined : fingerprint(first),
    keys: Object.fromEntries(keys.map((key) => [fingerprint(key), key])),
  }
}
