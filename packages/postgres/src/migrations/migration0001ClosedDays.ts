/**
 * Migration 1: which days the feed need not look into.
 *
 * A day that is over is closed: whoever stores an event there all the same leaves a row in `late_events`. So
 * a reader whose cursor has seen the closing, and every row of `late_events`, has seen all events of closed
 * days. Neither clocks nor ids take part in that, and transactions may last for days.
 */

import { asOwner, getsLock, listDays, noteLate } from "./migration0001Days.ts"

/** Creates the tables `closed_days` and `late_events`, and what writes them. */
export const createClosedDays = (schema: string): ReadonlyArray<string> => [
  // At most one row: days before open_from were closed when the transaction closed_in ended. After a crash,
  // and in a copy of the database, there is none, and days are closed anew.
  `
  CREATE UNLOGGED TABLE ${schema}.closed_days (
    open_from uuid NOT NULL,
    closed_in xid8 NOT NULL DEFAULT pg_current_xact_id()
  )
  `,
  // The transactions that have stored an event in a closed day, or in none.
  `CREATE TABLE ${schema}.late_events (xid xid8 PRIMARY KEY DEFAULT pg_current_xact_id())`,
  `
  CREATE FUNCTION ${schema}.note_late() RETURNS trigger LANGUAGE plpgsql
  SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$
  BEGIN
    INSERT INTO ${schema}.late_events DEFAULT VALUES ON CONFLICT DO NOTHING;
    RETURN NULL;
  END $$
  `,
  noteLate(schema, `${schema}.events_default`),
  createCloseDays(schema),
]

/**
 * Creates the function `close_days`, which closes the days that are over, and returns them. It stops at a day
 * in which an open or a prepared transaction has stored an event: the lock of that keeps the trigger away.
 */
const createCloseDays = (schema: string): string => `
  CREATE FUNCTION ${schema}.close_days() RETURNS SETOF date LANGUAGE plpgsql ${asOwner}
  AS $$
  DECLARE
    today CONSTANT date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    day date;
    last date;
  BEGIN
    IF NOT ${getsLock(schema)} THEN RETURN; END IF;
    FOR day IN ${listDays(schema)}
    LOOP
      EXIT WHEN day >= today;
      CONTINUE WHEN EXISTS (
        SELECT FROM ${schema}.closed_days c WHERE ${schema}.first_id(day) < c.open_from
      );
      BEGIN
        EXECUTE '${noteLate(schema, `${schema}.events' || to_char(day, '_YYYYMMDD') || '`)}';
      EXCEPTION WHEN lock_not_available THEN EXIT;
      END;
      last := day;
      RETURN NEXT day;
    END LOOP;
    IF last IS NULL THEN RETURN; END IF;
    -- Whoever sees this transaction sees these, too.
    DELETE FROM ${schema}.late_events;
    DELETE FROM ${schema}.closed_days;
    INSERT INTO ${schema}.closed_days (open_from) VALUES (${schema}.first_id(last + 1));
  END $$
`
