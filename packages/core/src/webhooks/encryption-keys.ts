/** Finds encryption keys of stored secrets that are missing, or have others in their place. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { InvalidInput, type StoreUnavailable } from "../base/errors.ts"
import { Encryption, type EncryptionSettings } from "./encryption.ts"
import { type KeyUse, WebhookStore } from "./store.ts"

/** A missing key. */
interface MissingKey {
  readonly id: string
  /** Whether the host has another key with this id. */
  readonly isAnother: boolean
}

/** Tells which encryption keys are missing. */
export class EncryptionKeys extends Context.Service<
  EncryptionKeys,
  {
    /**
     * The ids of missing keys, and of those with another key in their place. The answer is up to 20 seconds old,
     * because the store reads all webhooks for it.
     */
    readonly missing: Effect.Effect<ReadonlyArray<string>, StoreUnavailable>
  }
>()("@tenure/core/EncryptionKeys") {
  /** Fails if a key is missing at the start, unless this is allowed. */
  static readonly layer = (
    settings: Pick<EncryptionSettings, "missingKeys">,
  ): Layer.Layer<EncryptionKeys, InvalidInput, WebhookStore> =>
    Layer.effect(EncryptionKeys, make(settings))
}

/** Judges a key by samples of secrets. Returns `undefined` if it is there, or if this is unknown. */
const missingKeyOf = Effect.fnUntraced(function* ({
  keyId,
  samples,
}: KeyUse): Effect.fn.Return<MissingKey | undefined> {
  const encryption = yield* Encryption
  // At the same time, so that they wait together for a key that does not come.
  const faults = yield* Effect.forEach(
    samples,
    ({ secret, ...owner }) =>
      Effect.match(encryption.secret(owner, secret), {
        onSuccess: () => "None" as const,
        onFailure: ({ fault }) => fault,
      }),
    { concurrency: "unbounded" },
  )
  if (faults.includes("KeyMissing")) return { id: keyId, isAnother: false }
  // A single secret may have been changed in the store, and the key is right.
  const isAnother =
    faults.includes("Undecryptable") && !faults.some((one) => one === "None" || one === "Invalid")
  return isAnother ? { id: keyId, isAnother } : undefined
})

const find = Effect.gen(function* () {
  const { encryptionKeys } = yield* WebhookStore
  const used = yield* encryptionKeys(yield* Clock.currentTimeMillis)
  const found = yield* Effect.forEach(used, missingKeyOf, { concurrency: "unbounded" })
  return found.flatMap((key) => key ?? [])
})

const listOf = (keys: ReadonlyArray<MissingKey>): string =>
  `the ${keys.length === 1 ? "key" : "keys"} ${keys.map(({ id }) => `"${id}"`).join(", ")}`

/** Says which keys must be given. */
const problemOf = (missing: ReadonlyArray<MissingKey>): string => {
  const absent = missing.filter(({ isAnother }) => !isAnother)
  const others = missing.filter(({ isAnother }) => isAnother)
  return [
    ...(absent.length === 0
      ? []
      : [`must have ${listOf(absent)}, which secrets of webhooks are encrypted with`]),
    ...(others.length === 0
      ? []
      : [
          `has another key in place of ${listOf(others)}: it does not decrypt the secrets of webhooks`,
        ]),
  ].join(", and ")
}

const cacheLife = "20 seconds"

const idsOf = (missing: ReadonlyArray<MissingKey>): ReadonlyArray<string> => [
  ...new Set(missing.map(({ id }) => id)),
]

const make = Effect.fnUntraced(function* ({
  missingKeys,
}: Pick<EncryptionSettings, "missingKeys">) {
  const context = yield* Effect.context<WebhookStore>()
  const cached = yield* Effect.cachedWithTTL(Effect.provide(find, context), (exit) =>
    Exit.isSuccess(exit) ? cacheLife : 0,
  )
  // An outage of the store does not prevent a start.
  const missing = yield* Effect.orElseSucceed(cached, () => [])
  if (missing.length > 0) {
    const problem = problemOf(missing)
    if (missingKeys === "refuse") {
      return yield* new InvalidInput({
        field: "webhooks.encryption",
        problem: `${problem}; to start nevertheless, set webhooks.missingKeys to "allow"`,
      })
    }
    yield* Effect.logWarning(
      `webhooks.encryption ${problem}. Nothing is sent to webhooks whose secrets cannot be read`,
    )
  }
  return { missing: Effect.map(cached, idsOf) }
})
