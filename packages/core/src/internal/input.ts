/** Arguments of in-process calls: plain texts that become ids, or a clear error. */

import * as Effect from "effect/Effect"
import { EventId, EventType } from "../Event.ts"
import { InvalidInput } from "../InvalidInput.ts"
import { UserId } from "../Membership.ts"
import { ProjectId } from "../Project.ts"
import * as Setting from "../Setting.ts"
import type { Refined } from "./refined.ts"

const reader =
  <Id extends string>(field: string, constructor: Refined<string, Id>, expected: string) =>
  (text: string): Effect.Effect<Id, InvalidInput> =>
    typeof text === "string" && constructor.is(text)
      ? Effect.succeed(text)
      : Effect.fail(new InvalidInput({ field, message: `${field}: expected ${expected}` }))

export const projectId = reader(
  "projectId",
  ProjectId,
  "1 to 255 characters, no control characters, and not . or ..",
)

export const userId = reader("userId", UserId, "1 to 64 decimal digits")

export const eventId = reader("eventId", EventId, "the id of an event, a UUID")

/** An instant in milliseconds since the epoch, up to the last that a Date can hold. */
export const instant = (field: string, millis: number): Effect.Effect<number, InvalidInput> =>
  Setting.count(field, millis, { least: 0, most: 8_640_000_000_000_000 })

/** The number of items that a page may have. */
export const limit = (items: number): Effect.Effect<number, InvalidInput> =>
  Setting.count("limit", items, { least: 1, most: 10_000 })

export const eventType = reader(
  "type",
  EventType,
  "words of letters, digits, _ and -, joined by dots, 128 characters at most",
)
