/** The history of one membership, page by page, compared with what the whole trail tells. */

import { PgClient } from "@effect/sql-pg"
import { expect } from "@effect/vitest"
import { type AuditRow, MembershipStore, ProjectId, changesOfUser } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import { testsOn } from "./locking.ts"
import { type Changes, change, trailOf, userId } from "./trails.ts"

const schema = "history"
const onStores = testsOn(schema)

const changes = fc.array(change, { maxLength: 30 })

/** Stores a trail without its first rows, as if these were older than `auditRetention`. */
const store = Effect.fnUntraced(function* (
  projectId: ProjectId,
  { isMember, rows }: ReturnType<typeof trailOf>,
  forgotten: number,
) {
  const client = yield* PgClient.PgClient
  yield* client.unsafe(`INSERT INTO ${schema}.projects (id) VALUES ($1)`, [projectId])
  yield* client.unsafe(
    `INSERT INTO ${schema}.audit (project_number, user_id, subject, seq, action, from_date, to_date, extend_by, at)
     SELECT number, user_id, subject, r.seq, action, date '2030-01-01' + from_date, date '2030-01-01' + to_date,
            extend_by * interval '24 hours', now()
     FROM jsonb_to_recordset($2::jsonb)
     AS r (user_id text, subject text, seq bigint, action text, from_date integer, to_date integer, extend_by integer), ${schema}.projects
     WHERE projects.id = $1`,
    [projectId, JSON.stringify(rows.slice(forgotten))],
  )
  if (!isMember) return
  yield* client.unsafe(
    `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq)
     SELECT number, $2, now(), 0 FROM ${schema}.projects WHERE id = $1`,
    [projectId, userId],
  )
})

/** Reads a history page by page. */
const pagesOf = Effect.fnUntraced(function* (projectId: ProjectId, limit: number) {
  const memberships = yield* MembershipStore
  const rows: Array<AuditRow> = []
  for (;;) {
    const after = rows.at(-1)?.cursor
    const page: ReadonlyArray<AuditRow> = yield* memberships.history(projectId, {
      userId,
      after,
      limit,
    })
    rows.push(...page)
    if (page.length < limit) return rows
  }
})

onStores(
  "the history of a membership has the changes that applied to it, whatever the trail and the pages",
  Effect.gen(function* () {
    const context = yield* Effect.context<PgClient.PgClient | MembershipStore>()
    const memberships = yield* MembershipStore
    let projects = 0
    const isSame = (made: Changes, forgotten: number, limit: number) =>
      Effect.gen(function* () {
        const projectId = ProjectId(`project ${projects++}`)
        const trail = trailOf(made)
        yield* store(projectId, trail, forgotten)
        const all = yield* memberships.history(projectId, { userId: undefined, limit: 100 })
        const expected = changesOfUser(all.toReversed(), userId, trail.isMember)
        expect(yield* pagesOf(projectId, limit)).toEqual(expected.toReversed())
      }).pipe(Effect.runPromiseWith(context))
    const property = fc.asyncProperty(changes, fc.nat(8), fc.integer({ min: 1, max: 5 }), isSame)
    yield* Effect.promise(() => fc.assert(property, { numRuns: 200 }))
  }),
)
