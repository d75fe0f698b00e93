/** Removes persons who are erased from what was written of them, a part at a time. */

import { ProjectId, UserId } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Executor } from "./connection/executor.ts"
import * as membershipsStatements from "./memberships.sql.ts"
import { textParam, textsParam } from "./sql/values.ts"

// For how long an erasure waits for the transactions that have published events and are still open.
const patience = { interval: "20 millis", times: 50 } as const

/** Makes the functions of one schema. */
export const makeErasures = (executor: Executor) => {
  const { schema } = executor
  const sql = {
    eraseAudit: membershipsStatements.eraseAudit(schema),
    eraseEvents: membershipsStatements.eraseEvents(schema),
    listPublishing: membershipsStatements.listPublishing(schema),
    findErasure: membershipsStatements.findErasure(schema),
    findErasureDue: membershipsStatements.findErasureDue(schema),
    completeErasure: membershipsStatements.completeErasure(schema),
  }

  const eraseRows = Effect.fnUntraced(function* (erased: membershipsStatements.Erased) {
    const manner = { owner: erased.projectId, isLong: true }
    yield* Effect.repeat(
      executor.execute(sql.eraseAudit, membershipsStatements.eraseAuditParams(erased), manner),
      {
        while: (rows) => rows.length > 0,
      },
    )
    let after: membershipsStatements.EventPlace | undefined = membershipsStatements.beforeFirst
    while (after !== undefined) {
      const params = membershipsStatements.eraseEventsParams(erased, after)
      const rows: ReadonlyArray<membershipsStatements.EventPlace> =
        yield* executor.execute<membershipsStatements.EventPlace>(sql.eraseEvents, params, manner)
      after = rows[0]
    }
  })

  const complete = ({ projectId, userId }: membershipsStatements.Erased, begunIn: string) =>
    executor.execute(
      sql.completeErasure,
      [textParam(projectId), textParam(userId), textParam(begunIn)],
      {
        owner: projectId,
      },
    )

  const publishing = (among: ReadonlyArray<string> | undefined) =>
    Effect.map(
      executor.execute<membershipsStatements.PublishingRow>(sql.listPublishing, [
        among && textsParam(among),
      ]),
      (rows) => rows.map(({ id }) => id),
    )

  /** Waits for a while until what has been published so far is seen. Returns whether it is. */
  const settled = Effect.gen(function* () {
    const open = yield* publishing(undefined)
    if (open.length === 0) return true
    const left = yield* Effect.repeat(publishing(open), {
      until: (ids) => ids.length === 0,
      times: patience.times,
      schedule: Schedule.spaced(patience.interval),
    })
    return left.length === 0
  })

  return {
    /**
     * Removes a person whose erasure has begun. What transactions have published that stay open for longer is left
     * to `eraseDue`: so is all that a transaction of the host leaves that erases a person.
     */
    erase: Effect.fnUntraced(function* (erased: membershipsStatements.Erased) {
      const params = [textParam(erased.projectId), textParam(erased.userId)]
      const manner = { owner: erased.projectId }
      const [pending] = yield* executor.execute<membershipsStatements.ErasureRow>(
        sql.findErasure,
        params,
        manner,
      )
      const isWhole =
        pending !== undefined && !(yield* executor.isInTransaction) && (yield* settled)
      yield* eraseRows(erased)
      if (isWhole) yield* complete(erased, pending.begun_in)
    }),

    /** Completes an erasure that is left. Returns one row if there was one. */
    eraseDue: Effect.gen(function* () {
      const rows = yield* executor.executeApart<membershipsStatements.ErasureRow>(
        sql.findErasureDue,
        [],
      )
      for (const { at, begun_in: begunIn, project_id, user_id } of rows) {
        const person = { projectId: ProjectId(project_id), userId: UserId(user_id) }
        yield* eraseRows({ ...person, at: Number(at), begunIn })
        yield* complete({ ...person, at: undefined }, begunIn)
      }
      return rows
    }),
  }
}
