/**
 * Creates the partitions of today and of the next two days, by calling the function of the migrations.
 * Returns one row for each day that had none.
 */
export const createDays = (schema: string): string => `SELECT * FROM ${schema}.create_days()`

/**
 * Closes the days that are over, by calling the function of the migrations. Returns one row for each.
 */
export const closeDays = (schema: string): string => `SELECT * FROM ${schema}.close_days()`

/**
 * Drops the oldest day that has been over for `$1` days, by calling the function of the migrations.
 * Returns one row if it has dropped one.
 */
export const dropDay = (schema: string): string => `
  SELECT * FROM ${schema}.drop_day($1::double precision * interval '1 day')
`
