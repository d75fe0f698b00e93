/** New memberships on PostgreSQL: each in a call of its own, and ten thousand in one call. */

import type { Tenure } from "@tenure/core"
import { onDatabase } from "../database.ts"
import type { Findings, Section, Settings } from "../measurement.ts"
import { type Contestant, batches, loops, takeTurns } from "../rounds.ts"

// Enough for batches of any size.
const callers = 256

const endDate = "2099-01-01T00:00:00.000Z"

/** Grants memberships to users who have none yet. */
const granting = (name: string, { memberships }: Tenure): Contestant => {
  let last = 0
  return {
    name,
    run: (seconds) =>
      loops(callers, seconds, () =>
        memberships.grant({ projectId: "granted", userId: String(++last), endDate }),
      ),
  }
}

/** Imports memberships of users who have none yet. */
const importing = (name: string, { memberships }: Tenure, size: number): Contestant => {
  let last = 0
  return {
    name,
    run: (seconds) =>
      batches(size, seconds, () =>
        memberships.import({
          projectId: "imported",
          memberships: Array.from({ length: size }, () => ({ userId: String(++last), endDate })),
        }),
      ),
  }
}

const measure = async (tenure: Tenure, settings: Settings): Promise<Findings> => {
  for (const projectId of ["granted", "imported"]) await tenure.memberships.createProject(projectId)
  const [grant, imported] = await takeTurns(
    [
      granting(`grant: membership, audit row, event; ${callers} in flight`, tenure),
      importing("import: memberships with their audit rows", tenure, settings.pick(10_000, 100)),
    ],
    settings,
  )
  const rowOf = (score: typeof grant, atLeast: number) => ({
    measured: score?.name ?? "",
    unit: "/s",
    figure: score?.rate ?? NaN,
    target: { of: "figure", atLeast } as const,
  })
  return { rows: [rowOf(grant, 15_000), rowOf(imported, 50_000)] }
}

/** The throughput of grants and imports. */
export const grants: Section = {
  name: "grants",
  measure: onDatabase((_, tenure, settings) => measure(tenure, settings)),
}
