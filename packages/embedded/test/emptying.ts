/** Empties a database, for all who test on one that lasts. */

/** Removes all rows, but those that describe the tables and their history. */
export const emptyTables = `
  DO $$
  DECLARE
    name text;
  BEGIN
    -- In any order.
    SET LOCAL session_replication_role = replica;
    FOR name IN
      SELECT oid::regclass FROM pg_class
      WHERE relnamespace = 'tenure'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
        AND relname NOT IN ('migrations', 'history', 'feed_state')
    LOOP
      EXECUTE 'DELETE FROM ' || name;
    END LOOP;
  END $$
`
