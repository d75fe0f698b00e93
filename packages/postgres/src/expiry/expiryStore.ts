/** The announcements of ends on PostgreSQL, by its clock. */

import * as Event from "@tenure/core/Event"
import type { Judge, Outcome } from "@tenure/core/Expiry"
import type { ExpiryStore } from "@tenure/core/ExpiryStore"
import * as Effect from "effect/Effect"
import type { Executor, Manner } from "../connection/Executor.ts"
import type { EachRow } from "../memberships/fragments.sql.ts"
import { hasDeliveries } from "../outbox/fragments.sql.ts"
import type { Notifications } from "../outbox/Notifications.ts"
import {
  type DueRow,
  findDue,
  findDueOf,
  findDueOfParams,
  findDueParams,
  findProjectsDue,
  findProjectsDueParams,
  type ProjectsDueRow,
  toCandidate,
  toProjectsDue,
} from "./findDue.sql.ts"
import { beginPasses, goOn, type PassRow, passParams } from "./passes.sql.ts"
import { settleDue, settleDueParams } from "./settleDue.sql.ts"
import { watch, type WatchedRow, watchParams } from "./watch.sql.ts"

// The most projects whose alarms are looked at in one step.
const mostProjects = 100

const manner: Manner = { owner: "expiry", isLong: true }

const idOf = ({ announcement }: Outcome): string => announcement?.event.id ?? ""

/** Makes that part of the store of memberships. */
export const make = (executor: Executor, notifications: Notifications): ExpiryStore => {
  const { executeApart, schema } = executor
  const sql = {
    watch: watch(schema),
    beginPasses: beginPasses(schema),
    goOn: goOn(schema),
    findDue: findDue(schema),
    findProjectsDue: findProjectsDue(schema),
    findDueOf: findDueOf(schema),
    settleDue: settleDue(schema),
  }

  /** Sets alarms for members of projects whose own alarm is due. Returns whether there may be more to do. */
  const pass = Effect.fnUntraced(function* (limit: number) {
    const begun = yield* executeApart(sql.beginPasses, passParams(mostProjects), manner)
    const [turn] = yield* executeApart<PassRow>(sql.goOn, passParams(limit), manner)
    return begun.length > 0 || turn?.has_moved === true
  })

  // Whether the next step is for projects in turn, and the last one that had its turn.
  let isForTurns = false
  let lastTurn = 0n

  /** Finds memberships of the next projects that have some that are due. */
  const findInTurn = Effect.fnUntraced(function* (limit: number) {
    const params = findProjectsDueParams(limit, lastTurn)
    const [found] = yield* executeApart<ProjectsDueRow>(sql.findProjectsDue, params, manner)
    lastTurn = BigInt(found?.last ?? 0)
    const due = found === undefined ? [] : toProjectsDue(found)
    return due.length === 0
      ? []
      : yield* executeApart<DueRow>(sql.findDueOf, findDueOfParams(limit, due), manner)
  })

  /**
   * Finds the memberships that are due first and, after as many as asked for, those of projects in turn. So
   * the many of one project do not keep those of others waiting. Returns whether there may be more.
   */
  const find = Effect.fnUntraced(function* (limit: number) {
    if (isForTurns) {
      isForTurns = false
      return { rows: yield* findInTurn(limit), isMore: true }
    }
    const rows = yield* executeApart<DueRow>(sql.findDue, findDueParams(limit), manner)
    isForTurns = rows.length === limit
    return { rows, isMore: isForTurns }
  })

  /** Does what is decided of memberships. Returns the events. */
  const settle = Effect.fnUntraced(function* (rows: ReadonlyArray<DueRow>, judge: Judge) {
    if (rows.length === 0) return []
    const decided = rows
      .map((row) => ({ row, outcome: judge(toCandidate(row), Number(row.now)) }))
      .toSorted((one, other) => (idOf(one.outcome) < idOf(other.outcome) ? -1 : 1))
    const announced = yield* executeApart<EachRow>(sql.settleDue, settleDueParams(decided), manner)
    if (hasDeliveries(announced)) yield* notifications.notify
    return announced.flatMap(({ n, seq }) => {
      const draft = decided[n - 1]?.outcome.announcement?.event
      return draft === undefined ? [] : [Event.complete(draft, Number(seq))]
    })
  })

  return {
    watch: Effect.fnUntraced(function* (leads) {
      let row: WatchedRow | undefined
      while (row === undefined) {
        ;[row] = yield* executeApart<WatchedRow>(sql.watch, watchParams(leads), manner)
      }
      return Number(row.since)
    }),

    sweep: Effect.fnUntraced(function* (limit, judge) {
      const { isMore, rows } = yield* find(limit)
      const events = yield* settle(rows, judge)
      // A pass that fails is gone on with in the next sweep, and holds up no announcement.
      const isPassing = yield* Effect.catchTag(pass(limit), "StoreUnavailable", () =>
        Effect.succeed(false),
      )
      return { events, isMore: isMore || isPassing }
    }),
  }
}
