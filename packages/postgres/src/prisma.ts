/** Tenure for [Prisma](https://www.prisma.io). Generated from the migrations: `npm run generate`. */

const tables: ReadonlyArray<string> = [
  "api_key_projects",
  "api_keys",
  "audit",
  "bulk_extensions",
  "cells",
  "deleted_projects",
  "delivered_runs",
  "deliveries",
  "delivery_minutes",
  "delivery_quarters",
  "dispatchers",
  "erasures",
  "events",
  "expiry_passes",
  "expiry_settings",
  "feed_state",
  "finished_deliveries",
  "idempotency_keys",
  "late_events",
  "leases",
  "memberships",
  "migrations",
  "move_markers",
  "past_epochs",
  "projects",
  "rate_limit_buckets",
  "tickets",
  "webhooks",
]

/**
 * Returns the tables of Tenure, for `tables.external` in `prisma.config.ts`: Prisma Migrate leaves them alone.
 *
 * @example
 * ```ts
 * import { externalTables } from "tenure/prisma"
 *
 * export default {
 *   schema: "prisma",
 *   experimental: { externalTables: true },
 *   tables: { external: externalTables() },
 * }
 * ```
 */
export const externalTables = (schema = "tenure"): Array<string> =>
  tables.map((table) => `${schema}.${table}`)
