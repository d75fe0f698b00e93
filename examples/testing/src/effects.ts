/** Code from a host with Effect. The tests show how to test it. */

import type { Member } from "@tenure/core"
import { Memberships } from "@tenure/core/effect"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** Returns whether a user has an active membership. */
export const isMember = Effect.fn("isMember")(
  function* (member: Member) {
    const memberships = yield* Memberships
    const { endDate } = yield* memberships.find(member)
    return endDate > (yield* Clock.currentTimeMillis)
  },
  Effect.catchTag("MembershipNotFound", () => Effect.succeed(false)),
)
