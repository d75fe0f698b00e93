/** The ends of memberships on PostgreSQL: what it costs others that they are announced, and how fast it goes. */

import { extensionRows, idleRows } from "../ends/cost.ts"
import { afterOutage } from "../ends/outage.ts"
import { endTogether, ofAnotherProject, ofTheSameProject } from "../ends/together.ts"
import type { Row, Section } from "../measurement.ts"

const million = 1_000_000

/** The ends of memberships. */
export const expiry: Section = {
  name: "expiry",
  measure: async (settings) => {
    const { isLarge, pick } = settings
    const database = await settings.database()
    const rows: Array<Row> = [
      ...(await extensionRows(database, settings)),
      ...(await idleRows(database, settings, pick(100_000, 100))),
      ...(await endTogether(database, settings, ofTheSameProject, pick(30_000, 200))),
      ...(await endTogether(database, settings, ofAnotherProject, pick(100_000, 200))),
      await afterOutage(database, pick(100_000, 200)),
    ]
    if (isLarge) {
      rows.push(
        ...(await idleRows(database, settings, 10 * million)),
        ...(await endTogether(database, settings, ofAnotherProject, million)),
        await afterOutage(database, million),
      )
    }
    return { rows }
  },
}
