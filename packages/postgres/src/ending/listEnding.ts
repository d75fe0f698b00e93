/** Lists of memberships by their ends. */

import type { Membership } from "@tenure/core/Membership"
import type { MembershipStore } from "@tenure/core/MembershipStore"
import { ProjectNotFound } from "@tenure/core/Project"
import * as Effect from "effect/Effect"
import { type Executor, readsOf } from "../connection/Executor.ts"
import { toMembership } from "../memberships/listMemberships.sql.ts"
import * as Place from "./Place.ts"
import { walkBulk, walkEnds, walkParams, type WalkRow } from "./walk.sql.ts"

// How many memberships a request walks through besides those that it lists, and its first walk at least.
const mostWalked = { inAll: 2000, first: 100 } as const

/** Makes that operation of the store. */
export const make = ({ execute, schema }: Executor): MembershipStore["Service"]["listEnding"] => {
  const sql = { Own: walkEnds(schema), Bulk: walkBulk(schema) }

  return Effect.fnUntraced(function* (projectId, { after, before, limit }) {
    const manner = { owner: readsOf(projectId) }
    const memberships: Array<Membership> = []
    let place: Place.Place | undefined = after === undefined ? Place.start : Place.fromCursor(after)
    let most = Math.max(limit, mostWalked.first)
    let left = limit + mostWalked.inAll
    while (place !== undefined && memberships.length < limit && left > 0) {
      const asked = {
        projectId,
        before,
        most: Math.min(most, left),
        limit: limit - memberships.length,
      }
      const [first, ...others]: ReadonlyArray<WalkRow> = yield* execute<WalkRow>(
        sql[place._tag],
        walkParams(place, asked),
        manner,
      )
      if (first === undefined) return yield* new ProjectNotFound({ projectId })
      const { next, rows } = Place.judge(place, [first, ...others], asked)
      memberships.push(...rows.flatMap((row) => toMembership(projectId, row)))
      left -= asked.most
      most *= 4
      place = next
    }
    return { memberships, next: place && Place.cursorOf(place) }
  })
}
