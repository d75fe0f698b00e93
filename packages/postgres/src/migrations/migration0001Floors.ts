/**
 * Creates the function `effective_end_date`, and the table `floors`: the bulk extensions of a project that left later dates as they were, since the
 * last one that set all dates. Each has an earlier date than the one before, because those that a later one
 * covers are removed. So of those that are newer than a membership's own date, the first has the latest date.
 */
export const createFloors = (schema: string): ReadonlyArray<string> => [
  `
  CREATE TABLE ${schema}.floors (
    project_number bigint NOT NULL REFERENCES ${schema}.projects (number) ON DELETE CASCADE,
    -- The seq of the extension.
    seq            bigint NOT NULL,
    end_date       timestamptz NOT NULL,
    PRIMARY KEY (project_number, seq),
    UNIQUE (project_number, end_date)
  )
  `,
  // The one place in SQL that says the rule, as `Bulk.dateOf` does in core. The planner puts it into the statements
  // that call it, because its body is one expression without subqueries. The floor is the argument that is used
  // once, so a subquery may look it up, and does so only for members with a date from a bulk extension.
  `
  CREATE FUNCTION ${schema}.effective_end_date(
    -- The date of the last change of the membership alone, and its seq.
    own_date timestamptz, own_seq bigint,
    -- Of the project.
    bulk_seq bigint, set_seq bigint, set_date timestamptz,
    -- The date of the first floor after own_seq, if there is one.
    floor timestamptz
  ) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN own_seq >= bulk_seq THEN own_date
           ELSE greatest(CASE WHEN own_seq >= set_seq THEN own_date ELSE set_date END, floor) END
  $$
  `,
  // Functions, and volatile, so that they read what was committed before the lock on the project was theirs:
  // the statement that calls them may have begun earlier.
  `
  CREATE FUNCTION ${schema}.remove_floors(of_project bigint, until timestamptz) RETURNS bigint
  LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    removed bigint;
  BEGIN
    DELETE FROM ${schema}.floors WHERE project_number = of_project AND end_date <= until;
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
  END $$
  `,
  `
  CREATE FUNCTION ${schema}.floor_after(of_project bigint, after_seq bigint) RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE AS $$
  BEGIN
    RETURN (
      SELECT f.end_date FROM ${schema}.floors f
      WHERE f.project_number = of_project AND f.seq > after_seq ORDER BY f.seq LIMIT 1
    );
  END $$
  `,
]
