/** The passing of time in tables. */

/** Statements that move all stored times into the past, which has the same effect as time passing. */
export const statementsToPass = (schema: string, millis: number): ReadonlyArray<string> => [
  `UPDATE ${schema}.rate_limit_buckets SET full_at = full_at - ${1000 * millis}, burst_full_at = burst_full_at - ${1000 * millis}`,
  `UPDATE ${schema}.webhooks SET paused_until = paused_until - ${millis} * interval '1 millisecond', paused_since = paused_since - ${millis} * interval '1 millisecond'`,
  `UPDATE ${schema}.deliveries SET next_attempt_at = next_attempt_at - ${millis} * interval '1 millisecond', attempted_at = attempted_at - ${millis} * interval '1 millisecond'`,
  `UPDATE ${schema}.finished_deliveries SET attempted_at = attempted_at - ${millis} * interval '1 millisecond'`,
  `UPDATE ${schema}.delivery_minutes SET at = at - ${Math.floor(millis / 60_000)} * interval '1 minute'`,
  `UPDATE ${schema}.delivery_quarters SET at = at - ${Math.floor(millis / 900_000)} * interval '15 minutes'`,
  `UPDATE ${schema}.tickets SET expires_at = expires_at - ${millis} * interval '1 millisecond'`,
  `UPDATE ${schema}.memberships SET end_date = end_date - ${millis} * interval '1 millisecond', date_set_at = date_set_at - ${millis} * interval '1 millisecond',
  next_check_at = next_check_at - ${millis} * interval '1 millisecond', ending_lower_bound = ending_lower_bound - ${millis} * interval '1 millisecond', announced_end = announced_end - ${millis} * interval '1 millisecond'`,
  `UPDATE ${schema}.projects SET bulk_changed_at = bulk_changed_at - ${millis} * interval '1 millisecond', next_check_at = next_check_at - ${millis} * interval '1 millisecond'`,
  `UPDATE ${schema}.bulk_extensions SET at = at - ${millis} * interval '1 millisecond', date_set_at = date_set_at - ${millis} * interval '1 millisecond', date_reset_at = date_reset_at - ${millis} * interval '1 millisecond', end_date = end_date - ${millis} * interval '1 millisecond', minimum = minimum - ${millis} * interval '1 millisecond', own_minimum = own_minimum - ${millis} * interval '1 millisecond'`,
  `UPDATE ${schema}.expiry_settings SET since = since - ${millis} * interval '1 millisecond'`,
]
