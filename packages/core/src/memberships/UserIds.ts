/** The users whose memberships a list is to have. */

import * as Setting from "../base/Setting.ts"
import { UserId } from "./Membership.ts"

// The most users that can be named.
const most = 1000

const isUserId = (given: unknown): given is UserId => typeof given === "string" && UserId.is(given)

/** Returns what are user ids, or `undefined`. */
export const parse = (given: unknown): ReadonlyArray<UserId> | undefined =>
  Array.isArray(given) && given.length <= most && given.every(isUserId) ? given : undefined

/** What user ids look like, for error messages. */
export const expected = `at most ${Setting.grouped(most)} user ids, each ${UserId.expected}`

/** The definition of the users, which may be left out for all. */
export const setting = Setting.optional(
  Setting.make<ReadonlyArray<string>, ReadonlyArray<UserId>>(`an array of ${expected}`, parse),
)
