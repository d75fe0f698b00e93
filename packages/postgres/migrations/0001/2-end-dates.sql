-- End dates, also those that bulk extensions give, and when to announce them.

-- Raises the sequence of a project above `last`, and returns it: it is greater than those of all bulk
-- extensions. Fails, so that the caller begins again, if a bulk extension came after `known_bulk_seq`: the
-- caller has read an end date from before it.
CREATE FUNCTION tenure.take_seq(of_project bigint, last bigint, known_bulk_seq bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  taken bigint;
  last_bulk_seq bigint;
BEGIN
  UPDATE tenure.projects p SET seq = greatest(p.seq, last) + 1 WHERE p.number = of_project
  RETURNING p.seq, p.bulk_seq INTO taken, last_bulk_seq;
  IF last_bulk_seq <> known_bulk_seq THEN
    RAISE serialization_failure USING MESSAGE = 'a bulk extension was made in between';
  END IF;
  RETURN coalesce(taken, last + 1);
END $$;

-- Bulk extensions of a project that left later dates as they were, since the last one that set all
-- dates. A later one removes those whose date it covers, so each has an earlier date than the one
-- before. Among those newer than a membership's own date, the first has the latest date.
CREATE TABLE tenure.minimum_end_dates (
  project_number bigint NOT NULL REFERENCES tenure.projects (number) ON DELETE CASCADE,
  -- The seq of the extension.
  seq            bigint NOT NULL,
  end_date       timestamptz NOT NULL,
  PRIMARY KEY (project_number, seq),
  UNIQUE (project_number, end_date)
);

-- The rule, as `effectiveEndDate` says it in core. Its body is one expression without subqueries, so
-- the planner puts it into the statements that call it. `minimum` is used once: a subquery may look it
-- up, and runs only for members with a date from a bulk extension.
CREATE FUNCTION tenure.effective_end_date(
  -- The date of the last change of the membership alone, and its seq.
  own_date timestamptz, own_seq bigint,
  -- Of the project.
  bulk_seq bigint, overwrite_seq bigint, set_date timestamptz,
  -- The first date of minimum_end_dates after own_seq, if there is one.
  minimum timestamptz
) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN own_seq >= bulk_seq THEN own_date
         ELSE greatest(CASE WHEN own_seq >= overwrite_seq THEN own_date ELSE set_date END, minimum) END
$$;

-- Removes the rows that a bulk extension covers, and returns their number. This function and the next
-- are volatile: they read what was committed before their caller got the lock on the project, although
-- its statement may have begun earlier.
CREATE FUNCTION tenure.remove_minimum_end_dates(of_project bigint, until timestamptz) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  removed bigint;
BEGIN
  DELETE FROM tenure.minimum_end_dates WHERE project_number = of_project AND end_date <= until;
  GET DIAGNOSTICS removed = ROW_COUNT;
  RETURN removed;
END $$;

CREATE FUNCTION tenure.minimum_end_date_after(of_project bigint, after_seq bigint) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN (
    SELECT f.end_date FROM tenure.minimum_end_dates f
    WHERE f.project_number = of_project AND f.seq > after_seq ORDER BY f.seq LIMIT 1
  );
END $$;

-- Ends are announced by looking for next checks that are due. A next check is a lower bound: nothing is to be
-- announced before it. Each look sets the next one, so extensions leave a next check as it is. One row,
-- from the first process on that announces ends.
CREATE TABLE tenure.expiry_settings (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  -- What ended before is not announced.
  since   timestamptz NOT NULL,
  -- The longest reminder of all processes so far: a next check is so long before the end date, or earlier.
  longest interval NOT NULL,
  -- The reminders of the process that has started last, in seconds, longest first, and 0 for the end itself.
  leads   integer[] NOT NULL
);

-- Memberships that are to have a next check of their own: those of a project, or all.
CREATE TABLE tenure.expiry_passes (
  id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- The last membership that has its next check, and the last project of the pass.
  after_project bigint NOT NULL,
  after_user    text COLLATE "C" NOT NULL DEFAULT '',
  last_project  bigint NOT NULL,
  -- The pass waits for all transactions that are older than this one.
  begun_in      xid8
);

CREATE INDEX memberships_next_check ON tenure.memberships (next_check_at) WHERE next_check_at IS NOT NULL;

-- For projects to take turns, while more members of one are due than can be looked at in a step.
CREATE INDEX memberships_next_check_by_project
ON tenure.memberships (project_number, next_check_at) WHERE next_check_at IS NOT NULL;

CREATE INDEX projects_next_check ON tenure.projects (next_check_at) WHERE next_check_at IS NOT NULL;

-- The order in which memberships end. An index on the end date itself would make each extension write
-- to it, and a bulk extension changes no membership. So the index has a lower bound, which extensions
-- leave alone; whoever lists the ends sets it anew where a membership ends later. Only projects whose
-- ends were listed have a place in it, because it makes imports dearer by a quarter.
CREATE INDEX memberships_ending ON tenure.memberships (project_number, ending_generation, ending_lower_bound, user_id)
WHERE ending_generation IS NOT NULL;

CREATE VIEW tenure.memberships_current AS
SELECT p.id AS project_id, m.user_id, tenure.effective_end_date(
  m.end_date, m.seq, p.bulk_seq, p.overwrite_seq, p.bulk_end_date, (
    SELECT f.end_date FROM tenure.minimum_end_dates f
    WHERE f.project_number = m.project_number AND f.seq > m.seq ORDER BY f.seq LIMIT 1
  )
) AS end_date
FROM tenure.memberships m
JOIN tenure.projects p ON p.number = m.project_number;
