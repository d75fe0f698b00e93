/** A host that is written with Effect: what stands here is its own, and is to be tested. */

import { type Member, Memberships } from "@tenure/core/Memberships"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** Tells whether a user may come in. */
export const isMember = Effect.fn("isMember")(
  function* (member: Member) {
    const memberships = yield* Memberships
    const { endDate } = yield* memberships.find(member)
    return endDate > (yield* Clock.currentTimeMillis)
  },
  Effect.catchTag("MembershipNotFound", () => Effect.succeed(false)),
)
