/** Claims deliveries, by the function of that name that the migrations have made. */
export const claim = (schema: string): string => `SELECT * FROM ${schema}.claim($1, $2, $3, $4, $5)`
