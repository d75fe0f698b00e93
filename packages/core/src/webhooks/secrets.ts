/** Secrets and signing keys of webhooks in the form in which stores keep them. */

import type { Branded } from "effect/Brand"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { decodeBase64, decodeBase64Url, encodeBase64Url, sha256 } from "../base/bytes.ts"
import { InvalidInput } from "../base/errors.ts"
import * as Setting from "../base/setting.ts"
import { branded } from "../base/values.ts"

/**
 * A secret or a signing key as a store keeps it: the text itself, or `enc_`, the id of the encryption
 * key, `_`, and the ciphertext. A store does not interpret it.
 */
export type StoredSecret = Branded<string, "@tenure/core/StoredSecret">

/** Brands what a store has read. */
export const StoredSecret = branded<string, StoredSecret>()

/** The parts of an encrypted secret. */
export interface EncryptedSecret {
  readonly keyId: string
  /** The initialization vector, 12 bytes, the ciphertext, and the tag, 16 bytes. */
  readonly bytes: Uint8Array<ArrayBuffer>
}

/** Tells whether text can be the id of an encryption key. */
const isKeyId = (text: string): boolean => /^[A-Za-z0-9-]{1,32}$/.test(text)

const prefix = "enc_"

/** Tells whether a secret is encrypted, even if it is damaged. */
export const isEncrypted = (stored: StoredSecret): boolean => stored.startsWith(prefix)

/** Tells whether a secret is encrypted with a key. */
export const isEncryptedWith = (keyId: string, stored: StoredSecret): boolean =>
  stored.startsWith(`${prefix}${keyId}_`)

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

/** The keys that encrypt webhook secrets, as a host gives them. */

/** A key of AES-256: 32 bytes, or their base64. */
type Key = string | Uint8Array

/** Keys by id, or a function that returns the key with an id, or `undefined` if the id is unknown. */
export type Keys =
  | Readonly<Record<string, Key>>
  | ((id: string) => Key | undefined | Promise<Key | undefined>)

type Find = (id: string) => Promise<Uint8Array<ArrayBuffer> | undefined>

/** The keys as the library uses them. */
export interface Keyring {
  /** The id of the key that encrypts; `undefined` if secrets are only decrypted. */
  readonly current: string | undefined
  /** Finds a key. The promise rejects if the function of the host does. */
  readonly find: Find
}

/** Copies the bytes of a key. Returns `undefined` if they are not 32. */
const bytesOf = (key: unknown): Uint8Array<ArrayBuffer> | undefined => {
  const bytes = typeof key === "string" ? decodeBase64(key) : key
  return bytes instanceof Uint8Array && bytes.length === 32 ? Uint8Array.from(bytes) : undefined
}

interface Found {
  /** The ids of the keys; `undefined` if only the function of the host knows them. */
  readonly ids: ReadonlySet<string> | undefined
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

// What is invalid may still be a key.
const showNothing = (): string => "another value"

const fields = Setting.object({
  /**
   * The id of the key that encrypts: 1 to 32 letters, digits and hyphens. Without it, the keys only
   * decrypt, and new secrets are kept as they are.
   */
  current: Setting.optional(
    Setting.custom<string>(
      "1 to 32 letters, digits and hyphens",
      (given) => (typeof given === "string" && isKeyId(given) ? given : undefined),
      showNothing,
    ),
  ),
  /**
   * The keys by id, each 32 random bytes or their base64. Keep a key for as long as anything is
   * encrypted with it. In place of an object, a function may return the key with an id, for example
   * from a key management service, or a promise of it. Its results are cached.
   */
  keys: Setting.custom<Keys, Found>(
    "an object of keys by id, each 32 bytes or their base64, or a function that returns a key",
    readKeys,
    showNothing,
  ),
})

/** The option. */
export const keyringOption = Setting.refine(
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

/** The option, as a host gives it. */
export interface KeyringInput extends Setting.InputOf<typeof fields> {}

const fingerprint = (key: string): string =>
  Array.from(sha256(new TextEncoder().encode(key)).subarray(0, 4), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("")

/** What `fromText` reads, for error messages. */
export const keyringFormat =
  'the base64 of 32 bytes, or several of them, separated by commas, or "plain" in place of the first'

// Stands in place of the key that encrypts, if new secrets are to be kept as they are.
const plain = "plain"

/**
 * Reads keys from a variable of the environment: the base64 of 32 bytes; or several, separated by
 * commas, of which the first one encrypts. After the word `plain`, all of them only decrypt. The id of
 * a key is made from its SHA-256 digest.
 *
 * @returns the option, or `undefined` if the text is anything else
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
