/**
 * Begins a part of the audit trail if one is due while rows are kept for `$1` days, by calling the function
 * of the migrations. Returns one row for each of its two steps.
 */
export const beginAudit = (schema: string): string => `
  SELECT * FROM ${schema}.begin_audit($1::double precision * interval '1 day')
`

/**
 * Drops the oldest part of the audit trail if all of it is older than `$1` days, by calling the function of
 * the migrations. Returns one row if it has dropped one.
 */
export const dropAudit = (schema: string): string => `
  SELECT * FROM ${schema}.drop_audit($1::double precision * interval '1 day')
`
