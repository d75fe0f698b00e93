/** Encrypts stored webhook secrets with AES-256-GCM. */

import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { makeLruCache } from "../base/lru-cache.ts"
import * as Setting from "../base/setting.ts"
import { TaggedError } from "../base/tagged-error.ts"
import type { BrandConstructor } from "../base/values.ts"
import type { WebhookRef } from "./outbox.ts"
import {
  type EncryptedSecret,
  type Keyring,
  StoredSecret,
  formatStoredSecret,
  isEncrypted,
  isEncryptedWith,
  keyringOption,
  parseStoredSecret,
} from "./secrets.ts"
import { SigningKey, WebhookSecret } from "./signature.ts"
import { type HeadersText, type OwnHeaders, parseHeaders } from "./webhook-headers.ts"

/** Options for encryption. */
export const encryptionOptions = Setting.object({
  /**
   * The keys to encrypt and decrypt webhooks' stored secrets, signing keys and own headers. Without it, the store
   * keeps them in plain text.
   */
  encryption: Setting.optional(keyringOption),
  /**
   * Whether to start (`"allow"`) or not (`"refuse"`) if a key that stored secrets need is missing or
   * another one. Default: `"refuse"`.
   */
  missingKeys: Setting.withDefault(Setting.oneOf(["refuse", "allow"]), "refuse"),
})

/** The options as a host gives them. */
export interface EncryptionOptions extends Setting.InputOf<typeof encryptionOptions> {}

/** The options as the library uses them. */
export interface EncryptionSettings extends Setting.OutputOf<typeof encryptionOptions> {}

/** A secret cannot be encrypted or decrypted. Nothing in it shows a secret or a key. */
export class SecretUnreadable extends TaggedError("SecretUnreadable")<{
  readonly webhookId: string
  readonly problem: string
  /**
   * Whether there is no such key, the key cannot be loaded now, it does not decrypt the secret, or the secret is
   * invalid.
   */
  readonly fault: "KeyMissing" | "KeyNotLoaded" | "Undecryptable" | "Invalid"
  /** The error from the host's function for keys. */
  readonly cause?: unknown
}> {
  override get message(): string {
    return `The secret of the webhook "${this.webhookId}" cannot be used: ${this.problem}.`
  }
}

/** Encrypts and decrypts a webhook's secrets; its own headers are like them. */
export interface Encryption {
  /** Encrypts a secret for the store. */
  readonly seal: (
    owner: WebhookRef,
    plain: WebhookSecret | SigningKey | HeadersText,
  ) => Effect.Effect<StoredSecret, SecretUnreadable>

  /** Reads a stored secret, encrypted or not. */
  readonly secret: (
    owner: WebhookRef,
    stored: StoredSecret,
  ) => Effect.Effect<WebhookSecret, SecretUnreadable>

  /** Reads a stored signing key, encrypted or not. */
  readonly signingKey: (
    owner: WebhookRef,
    stored: StoredSecret,
  ) => Effect.Effect<SigningKey, SecretUnreadable>

  /** Reads stored headers, encrypted or not. */
  readonly headers: (
    owner: WebhookRef,
    stored: StoredSecret,
  ) => Effect.Effect<OwnHeaders, SecretUnreadable>

  /** Tells whether a secret is encrypted as `seal` would encrypt it now. */
  readonly isCurrent: (stored: StoredSecret) => boolean
}

type Open = (owner: WebhookRef, stored: StoredSecret) => Effect.Effect<string, SecretUnreadable>

// The maximum number of decrypted secrets in the cache.
const maxSecrets = 10_000

// The maximum number of cached keys. Their ids come from the store.
const maxKeys = 64

const keyTimeout = "10 seconds"

const ivBytes = 12

const unreadable = (
  { webhookId }: WebhookRef,
  fault: SecretUnreadable["fault"],
  problem: string,
  cause?: unknown,
): SecretUnreadable => new SecretUnreadable({ webhookId, problem, fault, cause })

const branded =
  <A extends string>({ is }: BrandConstructor<string, A>) =>
  (text: string): A | undefined =>
    is(text) ? text : undefined

const make = (
  open: Open,
  { isCurrent, seal }: Pick<Encryption, "seal" | "isCurrent">,
): Encryption => {
  /** Reads what is in plain text, or after decryption. */
  const read =
    <A>(parse: (text: string) => A | undefined) =>
    (owner: WebhookRef, stored: StoredSecret) => {
      const parsed = (text: string): Effect.Effect<A, SecretUnreadable> => {
        const value = parse(text)
        return value === undefined
          ? Effect.fail(unreadable(owner, "Invalid", "it is invalid"))
          : Effect.succeed(value)
      }
      return isEncrypted(stored) ? Effect.flatMap(open(owner, stored), parsed) : parsed(stored)
    }
  return {
    seal,
    isCurrent,
    secret: read(branded(WebhookSecret)),
    signingKey: read(branded(SigningKey)),
    headers: read(parseHeaders),
  }
}

/** Keeps secrets as they are. */
const sealingNothing: Pick<Encryption, "seal" | "isCurrent"> = {
  seal: (_, plain) => Effect.succeed(StoredSecret(plain)),
  isCurrent: (stored) => !isEncrypted(stored),
}

const none: Encryption = make(
  (owner) =>
    Effect.fail(unreadable(owner, "KeyMissing", "it is encrypted, but there is no encryption key")),
  sealingNothing,
)

const utf8 = new TextEncoder()

/** Binds a ciphertext to its webhook: it cannot be decrypted as another's secret. */
const algorithm = ({ projectId, webhookId }: WebhookRef, iv: Uint8Array<ArrayBuffer>) => ({
  name: "AES-GCM",
  iv,
  additionalData: utf8.encode(`tenure ${webhookId} ${projectId}`),
})

/** Creates a function to import and cache keys. */
const importing = Effect.fnUntraced(function* ({ find }: Keyring) {
  const { subtle } = yield* WebCrypto

  const load = async (id: string) => {
    const bytes = await find(id)
    if (bytes === undefined) return undefined
    return subtle.importKey("raw", bytes, "AES-GCM", false, ["encrypt", "decrypt"])
  }
  const imported = makeLruCache<string, ReturnType<typeof load>>(maxKeys)

  const cached = (id: string): ReturnType<typeof load> => {
    const known = imported.get(id)
    if (known !== undefined) return known
    const loading = load(id)
    imported.set(id, loading)
    return loading
  }

  return (owner: WebhookRef, id: string) =>
    Effect.tryPromise({
      try: () => cached(id),
      catch: (cause) =>
        unreadable(owner, "KeyNotLoaded", `the encryption key "${id}" cannot be loaded`, cause),
    }).pipe(
      Effect.timeoutOrElse({
        duration: keyTimeout,
        orElse: () =>
          Effect.fail(
            unreadable(owner, "KeyNotLoaded", `the encryption key "${id}" did not load in time`),
          ),
      }),
      Effect.flatMap((key) =>
        key === undefined
          ? Effect.fail(unreadable(owner, "KeyMissing", `there is no valid encryption key "${id}"`))
          : Effect.succeed(key),
      ),
      // The next call asks again.
      Effect.tapError(() => Effect.sync(() => imported.delete(id))),
    )
})

type KeyOf = Effect.Success<ReturnType<typeof importing>>

const opening = Effect.fnUntraced(function* (keyOf: KeyOf) {
  const { subtle } = yield* WebCrypto
  const opened = makeLruCache<string, string>(maxSecrets)

  const decrypt = Effect.fnUntraced(function* (
    owner: WebhookRef,
    { bytes, keyId }: EncryptedSecret,
  ) {
    const key = yield* keyOf(owner, keyId)
    const iv = bytes.slice(0, ivBytes)
    const plain = yield* Effect.tryPromise({
      try: async () =>
        new Uint8Array(await subtle.decrypt(algorithm(owner, iv), key, bytes.slice(ivBytes))),
      catch: () =>
        unreadable(
          owner,
          "Undecryptable",
          `it was not encrypted for this webhook by the key "${keyId}"`,
        ),
    })
    return new TextDecoder().decode(plain)
  })

  const open: Open = (owner, stored) => {
    const entry = `${owner.webhookId} ${owner.projectId} ${stored}`
    const known = opened.get(entry)
    if (known !== undefined) return Effect.succeed(known)
    const sealed = parseStoredSecret(stored)
    if (sealed === undefined) return Effect.fail(unreadable(owner, "Invalid", "it is damaged"))
    return Effect.tap(decrypt(owner, sealed), (plain) =>
      Effect.sync(() => opened.set(entry, plain)),
    )
  }
  return open
})

const sealing = Effect.fnUntraced(function* (keyOf: KeyOf, current: string) {
  const crypto = yield* WebCrypto

  const seal: Encryption["seal"] = Effect.fnUntraced(function* (owner, plain) {
    const key = yield* keyOf(owner, current)
    const iv = crypto.getRandomValues(new Uint8Array(ivBytes))
    const encrypted = yield* Effect.tryPromise({
      try: async () =>
        new Uint8Array(await crypto.subtle.encrypt(algorithm(owner, iv), key, utf8.encode(plain))),
      catch: () =>
        unreadable(owner, "KeyNotLoaded", `it cannot be encrypted by the key "${current}"`),
    })
    const bytes = Uint8Array.of(...iv, ...encrypted)
    return formatStoredSecret({ keyId: current, bytes })
  })

  return { seal, isCurrent: (stored: StoredSecret) => isEncryptedWith(current, stored) }
})

const encrypting = Effect.fnUntraced(function* (keyring: Keyring) {
  const { current } = keyring
  const keyOf = yield* importing(keyring)
  return make(
    yield* opening(keyOf),
    current === undefined ? sealingNothing : yield* sealing(keyOf, current),
  )
})

/** Encrypts secrets. By default, secrets are stored in plain text. */
export const Encryption = Context.Reference<Encryption>("@tenure/core/Encryption", {
  defaultValue: () => none,
})

/** Encrypts and decrypts with the host's keys, if any. */
export const encryptionLayer = ({
  encryption,
}: Pick<EncryptionSettings, "encryption">): Layer.Layer<never> =>
  encryption === undefined
    ? Layer.succeed(Encryption, none)
    : Layer.effect(Encryption, encrypting(encryption))
