/** What the statements share that see to alarms. */

/**
 * An expression for the alarm of an end date: NULL if nobody has watched end dates yet. `least` of that and of
 * the alarm that is there ignores NULL, and leaves an earlier alarm as it is. So an extension that postpones
 * the end changes no column that an index has.
 */
export const alarmOf = (schema: string, endDate: string): string =>
  `${endDate} - (SELECT x.longest FROM ${schema}.expiry x)`
