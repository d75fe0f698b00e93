/** Segments: some memberships of a project, by their fields. */

import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { InvalidInput } from "../base/errors.ts"
import { type Decoded, type HostInputOf, input, wireNameOf } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { copyOwn } from "../base/values.ts"
import { dateSetting } from "./inputs.ts"
import {
  type Membership,
  type UserId,
  membershipStates,
  userIdPattern,
  userIdsFormat,
  parseUserIds,
} from "./membership.ts"
import { metadataSetting } from "./metadata.ts"

const fields = input(
  {},
  {
    /** Only memberships with these metadata. They may have more. */
    metadata: Setting.optional(metadataSetting),
    /** Only memberships in this state. */
    state: Setting.optional(Setting.oneOf(membershipStates)),
    /** Only memberships with a later end date. */
    endingAfter: Setting.optional(dateSetting),
    /** Only memberships with an earlier end date. */
    endingBefore: Setting.optional(dateSetting),
    /** Only the memberships of these users, at most 1,000. */
    userIds: Setting.optional(
      Setting.inJson(
        Setting.custom<ReadonlyArray<string>, ReadonlyArray<UserId>>(
          `an array of ${userIdsFormat}`,
          parseUserIds,
        ),
        { type: "array", items: { type: "string", pattern: userIdPattern.source }, maxItems: 1000 },
      ),
    ),
  },
  { needsField: true },
)

/** A segment: the memberships that match all given fields. */
export type Segment = Decoded<typeof fields>

const isGiven = (given: unknown): given is HostInputOf<typeof fields> =>
  Predicate.isObject(given) && !Array.isArray(given)

const inField = (field: string, { field: own, problem }: InvalidInput): InvalidInput =>
  new InvalidInput({ field: own === "" ? field : `${field}.${own}`, problem })

/** A segment, as an argument or in a request. It has at least one field. */
export const segmentSetting: Setting.Setting<HostInputOf<typeof fields>, Segment> = {
  expected: "an object",
  json: {
    type: "object",
    minProperties: 1,
    properties: Object.fromEntries(
      Object.entries(fields.fields).map(([name, one]) => [wireNameOf(name, one), one.json]),
    ),
  },
  read: (given, field, source = "host") => {
    if (!isGiven(given)) {
      const problem = `must be an object; received ${Setting.shown(given)}`
      return Result.fail(new InvalidInput({ field, problem }))
    }
    const read =
      source === "host" ? fields.fromHost(copyOwn(given)) : fields.fromRequest({}, given, source)
    return Result.mapError(read, (error) => inField(field, error))
  },
}

/** Tells whether a membership with the right state and user id is in a segment. A store's list selects by these two. */
export const isInSegment = (membership: Membership, segment: Segment): boolean => {
  const { endingAfter = -Infinity, endingBefore = Infinity, metadata = {} } = segment
  return (
    membership.endDate > endingAfter &&
    membership.endDate < endingBefore &&
    Object.entries(metadata).every(([name, text]) => membership.metadata[name] === text)
  )
}
