/** Lists of memberships by their ends. */

import type { Membership } from "@tenure/core/Membership"
import type { MembershipStore } from "@tenure/core/MembershipStore"
import { type ProjectId, ProjectNotFound } from "@tenure/core/Project"
import * as Effect from "effect/Effect"
import { type Executor, readsOf } from "../connection/Executor.ts"
import { text } from "../connection/parameters.ts"
import { toMembership } from "../memberships/listMemberships.sql.ts"
import * as keep from "./keep.sql.ts"
import * as Place from "./Place.ts"
import * as walk from "./walk.sql.ts"

// How many memberships a request walks through besides those that it lists, and its first walk at least.
const mostWalked = { inAll: 2000, first: 100 } as const

// How many members a request gives places to.
const mostPlaced = 10_000

/** Makes that operation of the store. */
export const make = ({ execute, schema }: Executor): MembershipStore["Service"]["listEnding"] => {
  const walking = { ends: walk.walkEnds(schema), older: walk.walkOlder(schema) }
  const keeping = {
    begin: keep.begin(schema),
    goOn: keep.goOn(schema),
    note: keep.note(schema),
  }

  /** Assigns places to members of a project that lack one. Returns whether all have one now. */
  const place = Effect.fnUntraced(function* (projectId: ProjectId) {
    const manner = { owner: readsOf(projectId), isLong: true }
    yield* execute(keeping.begin, [text(projectId)], manner)
    const [row] = yield* execute<keep.GoOnRow>(
      keeping.goOn,
      keep.goOnParams(projectId, mostPlaced),
      manner,
    )
    if (row === undefined) return yield* new ProjectNotFound({ projectId })
    yield* execute(keeping.note, [text(projectId), text(row.ends_to)], manner)
    return row.ends_to === keep.beyondAll
  })

  const go = (at: Place.Place, asked: walk.Asked) => {
    const manner = { owner: readsOf(asked.projectId) }
    return at._tag === "Own"
      ? execute<walk.WalkRow>(walking.ends, walk.walkEndsParams(at, asked), manner)
      : execute<walk.WalkRow>(walking.older, walk.walkOlderParams(at, asked), manner)
  }

  return Effect.fnUntraced(function* (projectId, { after, before, limit }) {
    const memberships: Array<Membership> = []
    let at: Place.Place | undefined = after === undefined ? Place.start : Place.fromCursor(after)
    let most = Math.max(limit, mostWalked.first)
    let left = limit + mostWalked.inAll
    while (at !== undefined && memberships.length < limit && left > 0) {
      const asked = {
        projectId,
        before,
        most: Math.min(most, left),
        limit: limit - memberships.length,
      }
      const [first, ...others] = yield* go(at, asked)
      if (first === undefined) return yield* new ProjectNotFound({ projectId })
      if (!first.is_kept) {
        if (yield* place(projectId)) continue
        break
      }
      const { next, rows } = Place.judge(at, [first, ...others], asked)
      memberships.push(...rows.flatMap((row) => toMembership(projectId, row)))
      left -= asked.most
      most *= 4
      at = next
    }
    return { memberships, next: at && Place.cursorOf(at) }
  })
}
