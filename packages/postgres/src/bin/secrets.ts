/** The keys of the environment, and rewriting the secrets of webhooks with them. */

import { InvalidInput } from "@tenure/core/InvalidInput"
import * as Keyring from "@tenure/core/Keyring"
import * as Config from "effect/Config"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { rewriteSecrets } from "../index.ts"

/** Which way secrets are rewritten. */
export type Direction = "encrypt" | "decrypt"

/** Some secrets are as they were. The message names their webhooks. */
class SecretsLeft extends Data.TaggedError("SecretsLeft")<{ readonly message: string }> {}

const variable = "TENURE_ENCRYPTION_KEY"

const invalid = (expected: string) =>
  new InvalidInput({ field: variable, problem: `must ${expected}` })

/** Reads the keys in `TENURE_ENCRYPTION_KEY`; `undefined` if it is not set. */
export const keys = Effect.gen(function* () {
  const text = yield* Effect.orDie(Config.option(Config.String(variable)))
  if (Option.isNone(text)) return undefined
  return Keyring.fromText(text.value) ?? (yield* invalid(`be ${Keyring.expectedText}`))
})

const beginnings = { encrypt: "the key that encrypts", decrypt: '"plain"' } as const

/** Reads the keys. The servers, which have the same ones, must not write secrets the other way. */
const keysTo = Effect.fnUntraced(function* (direction: Direction) {
  const found = (yield* keys) ?? (yield* invalid(`be ${Keyring.expectedText}`))
  if ((found.current === undefined) === (direction === "encrypt"))
    return yield* invalid(`begin with ${beginnings[direction]}`)
  return found
})

/** Rewrites the secrets of all webhooks with the keys of the environment, and returns how many. */
export const rewrite = Effect.fnUntraced(function* (
  schema: string | undefined,
  direction: Direction,
) {
  const encryption = yield* keysTo(direction)
  const { changed, problems } = yield* rewriteSecrets({ schema, encryption })
  if (problems.length > 0) {
    const message = `${problems.join("; ")}. Rewritten: ${changed}. Failed: ${problems.length}.`
    return yield* new SecretsLeft({ message })
  }
  return changed
})
