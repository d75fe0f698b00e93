/** Flags that select changes from the audit trail. */

import { auditActions } from "@tenure/core/store"
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"
import { booleanFlag, dateFlag } from "./flags.ts"

const idFlag = (name: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar("ID"), Flag.withDescription(description), Flag.optional)

/** Flags for changes to a member, or to anything. */
export const auditFlags = {
  key: idFlag("key", "Only changes by this API key, or another author, by its id"),
  action: Flag.Literals("action", auditActions).pipe(
    Flag.withMetavar("ACTION"),
    Flag.withDescription("Only changes of this kind"),
    Flag.optional,
  ),
  request: idFlag("request", "Only changes by the request with this id"),
  since: dateFlag("since", "Only changes since then"),
  until: dateFlag("until", "Only changes before then"),
  noAnnouncements: booleanFlag("no-announcements", "Leaves out expiring, overdue and expired"),
}

/** The flag for changes to a member. */
export const auditedUser = idFlag(
  "user",
  "Only changes to this member, with the extensions of all that applied",
)

/** The values of the flags. */
interface AuditFlags {
  readonly key: Option.Option<string>
  readonly action: Option.Option<(typeof auditActions)[number]>
  readonly request: Option.Option<string>
  readonly since: Option.Option<string>
  readonly until: Option.Option<string>
  readonly noAnnouncements: boolean
}

/** Returns the parameters for the API. */
export const auditFilter = (given: AuditFlags) => ({
  key_id: Option.getOrUndefined(given.key),
  action: Option.getOrUndefined(given.action),
  request_id: Option.getOrUndefined(given.request),
  since: Option.getOrUndefined(given.since),
  until: Option.getOrUndefined(given.until),
  ...(given.noAnnouncements && { announcements: "false" as const }),
})
