/** The types of events that a webhook is sent, or that a reader of the feed asks for. */

import * as Setting from "../base/Setting.ts"
import { EventType } from "./Event.ts"

/** The most types that can be named. */
export const most = 100

const isType = (given: unknown): given is EventType =>
  typeof given === "string" && EventType.is(given)

const parse = (given: unknown): ReadonlyArray<EventType> | undefined =>
  Array.isArray(given) && given.length > 0 && given.length <= most && given.every(isType)
    ? given
    : undefined

/** The definition of the types, which may be left out for all. */
export const setting = Setting.optional(
  Setting.make<ReadonlyArray<string>, ReadonlyArray<EventType>>(
    `an array of 1 to ${most} event types, each ${EventType.expected}`,
    parse,
  ),
)
