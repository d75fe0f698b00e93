/** How time passes in tables. */

/** Each table's times. */
const times = {
  webhooks: ["paused_until", "paused_since"],
  deliveries: ["next_attempt_at", "attempted_at"],
  leases: ["until"],
  finished_deliveries: ["attempted_at"],
  delivered_runs: ["attempted_at"],
  tickets: ["expires_at"],
  memberships: [
    "end_date",
    "date_set_at",
    "set_with_others_at",
    "next_check_at",
    "ending_lower_bound",
    "announced_end",
    "paused_at",
    "resumes_at",
  ],
  projects: ["grace_set_at", "bulk_changed_at", "bulk_unseen_since", "next_check_at"],
  expiry_passes: ["changed_at"],
  bulk_extensions: ["at", "date_set_at", "date_reset_at", "end_date", "minimum", "own_minimum"],
  expiry_settings: ["since"],
  audit: ["paused_at", "resumes_at"],
}

/** Statements that move all stored times into the past, which has the same effect as time passing. */
export const statementsToPass = (schema: string, millis: number): ReadonlyArray<string> => {
  const update = (table: string, columns: ReadonlyArray<string>, passed: string) =>
    `UPDATE ${schema}.${table} SET ${columns.map((column) => `${column} = ${column} - ${passed}`).join()}`
  return [
    ...Object.entries(times).map(([table, columns]) =>
      update(table, columns, `${millis} * interval '1 millisecond'`),
    ),
    update("rate_limit_buckets", ["full_at", "burst_full_at"], String(1000 * millis)),
    update("delivery_minutes", ["at"], `${Math.floor(millis / 60_000)} * interval '1 minute'`),
    update("delivery_quarters", ["at"], `${Math.floor(millis / 900_000)} * interval '15 minutes'`),
  ]
}
