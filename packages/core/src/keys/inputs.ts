/** The inputs of the methods on API keys. */

import * as Result from "effect/Result"
import { InvalidInput } from "../base/errors.ts"
import { type Noun, namesOf, originFields as origin } from "../base/field-names.ts"
import { brandedText, instantSetting, pageSize } from "../base/input.ts"
import { input } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { ApiKeyId, ProjectId, identifierFormat, isIdentifier } from "../base/values.ts"
import { ApiKeyNotFound, isToken, roles } from "./api-key.ts"
import type { KeyScope } from "./store.ts"

const refuse = (field: string, expected: string): Result.Result<never, InvalidInput> =>
  Result.fail(new InvalidInput({ field, problem: `must be ${expected}` }))

/** The id of a key. What cannot be one is the id of no key. */
const keyId: Setting.Setting<string, ApiKeyId, ApiKeyNotFound> = {
  expected: "the id of a key",
  json: { $ref: "Uuid" },
  read: (given) =>
    typeof given === "string" && ApiKeyId.is(given)
      ? Result.succeed(given)
      : Result.fail(new ApiKeyNotFound({ keyId: String(given) })),
}

const project = brandedText(ProjectId)

const projects: Setting.Setting<ReadonlyArray<string> | "all", ReadonlyArray<ProjectId> | "all"> = {
  expected: 'an array of at least one project id, or "all"',
  read: (given, field) => {
    if (given === "all") return Result.succeed(given)
    return Array.isArray(given) && given.length > 0
      ? Result.all(Array.from(given, (id, index) => project.read(id, `${field}[${index}]`)))
      : refuse(field, projects.expected)
  },
}

/** A bearer token, which errors do not show. */
const token: Setting.Setting<string | undefined, string | undefined> = {
  expected: "1 to 1,024 characters of visible ASCII, with spaces only inside",
  isOptional: true,
  read: (given, field) => {
    if (given === undefined || given === null) return Result.succeed(undefined)
    return typeof given === "string" && isToken(given)
      ? Result.succeed(given)
      : refuse(field, token.expected)
  },
}

const scope = Setting.withDefault(
  Setting.guarded<KeyScope>('a set of project ids, or "all"', () => true),
  "all",
)

/** A key to issue. */
export const newKey = input(
  {},
  {
    /**
     * A token clients already use: 1 to 1,024 visible ASCII characters. By default, a new one is
     * generated.
     */
    token,
    /** The holder's role: `"client"` (default), `"operator"` or `"admin"`. */
    role: Setting.withDefault(Setting.oneOf(roles), "client"),
    /** The key's name for people: 1 to 255 characters, without control characters. */
    name: Setting.optional(Setting.string(identifierFormat, isIdentifier)),
    /** The ids of the key's projects, at least one; or `"all"` for all existing and future ones. */
    projects,
    /**
     * When the key expires: a `Date`, text in the form `YYYY-MM-DDTHH:mm:ss.sssZ` or milliseconds since
     * the epoch, in the future. By default, it never does.
     */
    expiresAt: Setting.optional(instantSetting),
  },
)

/** The id in the path of a key's operations. */
export const keyPath = {
  /** The id of the key. */
  keyId,
}

/** A key to revoke. */
export const revocation = input(keyPath, {
  /**
   * Revokes the key only if it opens at least one of these projects and no other; otherwise fails as if
   * it did not exist. Default: `"all"`.
   */
  within: scope,
})

/** A page of keys. */
export const keysPage = input(
  {},
  {
    /** A key's id: lists only keys issued after it. */
    after: Setting.optional(brandedText(ApiKeyId)),
    /** The most keys to return, 1 to 10,000; 100 by default. */
    limit: Setting.withDefault(pageSize, 100),
    /** Lists only keys that open at least one of these projects and no other. Default: `"all"`. */
    within: scope,
  },
)

const repeatable = { idempotencyKey: true }

/** The names of the arguments, by method. */
export const apiKeyNames: Noun = {
  methods: {
    issue: [namesOf(newKey, repeatable), origin],
    revoke: [null, origin, { within: true, ...repeatable }],
    list: [namesOf(keysPage)],
    authenticate: [null],
    byDigest: [null, null],
    recall: [null],
  },
}
