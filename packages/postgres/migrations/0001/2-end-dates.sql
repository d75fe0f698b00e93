-- End dates, including those from bulk extensions, and when to announce them.

-- Raises a project's sequence above `last`, and returns it: it is greater than those of all bulk extensions.
-- Fails, so that the caller begins again, if a bulk extension came after `known_bulk_seq`: the caller has
-- read an older end date.
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

-- The number for a change to a membership, or the last of `count` numbers. It comes after `later`, the number
-- of the last change to the membership or its project. Where the round ends, this locks the project, which
-- the statement does not update otherwise. So it does where the membership is in a later round than the
-- project, because the statement has then read the project before a bulk extension. One expression, so that
-- the planner inlines it.
CREATE FUNCTION tenure.next_seq(later bigint, of_project bigint, project_seq bigint, bulk_seq bigint, count bigint)
RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN later % 100000 < 100000 - count AND later / 100000 = project_seq / 100000 THEN later + count
         ELSE tenure.take_seq(of_project, (later / 100000 + 1) * 100000 - 1, bulk_seq) + count - 1 END
$$;

-- An end date after bulk extensions, which add to it, and raise it to a minimum. NULL means absent: without a
-- date or an addition, only the minimum counts. Nothing ends after the year 9999. Same rule as `adjust` in
-- core. One expression without subqueries, so that the planner inlines it.
CREATE FUNCTION tenure.adjusted_end_date(end_date timestamptz, addition interval, minimum timestamptz)
RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN end_date + addition IS NULL THEN minimum
         ELSE greatest(least(end_date + addition, timestamptz '9999-12-31 23:59:59.999+00'), minimum) END
$$;

-- Whether a membership is in a pause. It may have one that is over.
CREATE FUNCTION tenure.is_paused(paused_at timestamptz, resumes_at timestamptz)
RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT paused_at IS NOT NULL AND (resumes_at <= statement_timestamp()) IS NOT TRUE
$$;

-- How much later a membership ends after its pause: not at all until that is over.
CREATE FUNCTION tenure.time_paused(
  paused_at timestamptz, resumes_at timestamptz, at timestamptz DEFAULT statement_timestamp()
) RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN resumes_at <= at AND paused_at < resumes_at
         -- Without days, which may have 23 hours in the time zone of a session.
         THEN extract(epoch FROM resumes_at - paused_at) * interval '1 second' ELSE interval '0' END
$$;

-- An end date after a pause, if that is over. Same rule as `endAfterPause` in core. `end_date` is used once.
CREATE FUNCTION tenure.date_after_pause(
  end_date timestamptz, paused_at timestamptz, resumes_at timestamptz, at timestamptz DEFAULT statement_timestamp()
) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT least(end_date + tenure.time_paused(paused_at, resumes_at, at), timestamptz '9999-12-31 23:59:59.999+00')
$$;

-- The value of paused_at when a membership gets another end date: if the pause is over, no time paused is
-- added to that.
CREATE FUNCTION tenure.next_paused_at(paused_at timestamptz, resumes_at timestamptz)
RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN resumes_at <= statement_timestamp() AND paused_at < resumes_at THEN resumes_at ELSE paused_at END
$$;

-- For lists and counts, and to find pauses that are over.
CREATE INDEX memberships_paused ON tenure.memberships (project_number, resumes_at) WHERE paused_at IS NOT NULL;

-- A log of bulk extensions in each project.
CREATE TABLE tenure.bulk_extensions (
  project_number    bigint NOT NULL REFERENCES tenure.projects (number) ON DELETE CASCADE,
  seq               bigint NOT NULL,
  -- The id of its event.
  id                uuid NOT NULL,
  mode              text NOT NULL CHECK (mode IN ('set', 'never_shorten', 'extend_by')),
  end_date          timestamptz(3),
  extend_by         interval,
  -- The extension's effect on an end date: none once it is undone. It includes extensions that were joined
  -- with it.
  own_addition      interval,
  own_minimum       timestamptz(3),
  own_in_days       boolean NOT NULL DEFAULT false,
  -- The effect together with all later ones.
  addition          interval,
  minimum           timestamptz(3),
  in_days           boolean NOT NULL DEFAULT false,
  -- A settled extension is part of members' own dates, or joined with the next one. A settling one cannot be
  -- undone.
  state             text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'settling', 'settled')),
  at                timestamptz NOT NULL,
  -- When it was made and undone, by the same clocks as date_set_at in memberships.
  date_set_at       timestamptz NOT NULL DEFAULT statement_timestamp(),
  date_reset_at     timestamptz,
  request_id        text,
  key_id            text,
  reason            text,
  total             bigint NOT NULL,
  undone_at         timestamptz,
  undone_request_id text,
  undone_key_id     text,
  -- Members up to this user id have it, and all before it, in their own dates.
  settled_to        text COLLATE "C" NOT NULL DEFAULT '',
  made_in           xid8 NOT NULL DEFAULT pg_current_xact_id(),
  PRIMARY KEY (project_number, seq),
  CHECK ((mode = 'extend_by') = (extend_by IS NOT NULL) AND (mode = 'extend_by') = (end_date IS NULL))
);

-- The extensions that end dates follow from.
CREATE INDEX bulk_extensions_kept ON tenure.bulk_extensions (project_number, seq) WHERE state <> 'settled';

CREATE INDEX bulk_extensions_settling ON tenure.bulk_extensions (project_number, seq) WHERE state = 'settling';

-- The effective end date. Same rule as `effectiveEndDate` in core, in one expression for the same reason.
-- `adjusted` is used once: a subquery may find the first bulk extension after `own_seq` and adjust the date
-- by it, and runs only if there is one.
CREATE FUNCTION tenure.effective_end_date(
  -- The date that the last change to this membership alone set, and its seq.
  own_date timestamptz, own_seq bigint,
  -- The project's bulk_seq.
  bulk_seq bigint,
  adjusted timestamptz
) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  -- A statement that has waited for the project row may not see the bulk extension that the row mentions.
  SELECT CASE WHEN own_seq >= bulk_seq THEN own_date ELSE coalesce(adjusted, own_date) END
$$;

-- Whether an end date was given as a day, by the last change to this membership alone or by a later bulk
-- extension. Same rule as `effectiveForm` in core; `later` is used once.
CREATE FUNCTION tenure.effective_in_days(own_in_days boolean, own_seq bigint, bulk_seq bigint, later boolean)
RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN own_in_days OR own_seq >= bulk_seq THEN own_in_days ELSE coalesce(later, false) END
$$;

-- The kept day that goes with an end date: none if a later bulk extension may have moved that. Same rule as
-- `effectiveForm` in core; `is_kept` is used once.
CREATE FUNCTION tenure.effective_kept_day(own_kept_day smallint, own_seq bigint, bulk_seq bigint, is_kept boolean)
RETURNS smallint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN own_kept_day IS NULL OR own_seq >= bulk_seq THEN own_kept_day
         WHEN coalesce(is_kept, true) THEN own_kept_day END
$$;

-- Whether an adjustment leaves an end date as it is, and is not that of a date for everybody.
CREATE FUNCTION tenure.keeps_date(end_date timestamptz, addition interval, minimum timestamptz)
RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT addition IS NOT DISTINCT FROM interval '0' AND (minimum > end_date) IS NOT TRUE
$$;

-- Returns an end date after all bulk extensions later than `own_seq`. This function and the next ones are
-- volatile: they read what was committed before their caller locked the project, although its statement may
-- have begun earlier.
CREATE FUNCTION tenure.date_after_bulk_extensions(of_project bigint, own_seq bigint, own_date timestamptz)
RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN (
    SELECT tenure.adjusted_end_date(own_date, b.addition, b.minimum) FROM tenure.bulk_extensions b
    WHERE b.project_number = of_project AND b.seq > own_seq AND b.state <> 'settled' ORDER BY b.seq LIMIT 1
  );
END $$;

CREATE FUNCTION tenure.in_days_after_bulk_extensions(of_project bigint, own_seq bigint)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN (
    SELECT b.in_days FROM tenure.bulk_extensions b
    WHERE b.project_number = of_project AND b.seq > own_seq AND b.state <> 'settled' ORDER BY b.seq LIMIT 1
  );
END $$;

CREATE FUNCTION tenure.keeps_date_after_bulk_extensions(of_project bigint, own_seq bigint, own_date timestamptz)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN (
    SELECT tenure.keeps_date(own_date, b.addition, b.minimum) FROM tenure.bulk_extensions b
    WHERE b.project_number = of_project AND b.seq > own_seq AND b.state <> 'settled' ORDER BY b.seq LIMIT 1
  );
END $$;

-- Makes the time paused part of own dates where pauses in a locked project are over, with the number `new_seq`:
-- bulk extensions with a greater one apply. This changes no effective end date. The sweep announces it.
CREATE FUNCTION tenure.end_pauses(of_project bigint, new_seq bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  -- The statement may have waited for the project.
  locked_at CONSTANT timestamptz := clock_timestamp();
BEGIN
  -- All statements lock memberships in the same order, which avoids deadlocks.
  PERFORM FROM tenure.memberships m
  WHERE m.project_number = of_project AND m.paused_at IS NOT NULL AND m.resumes_at <= locked_at
  ORDER BY m.user_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  WITH log AS MATERIALIZED (
    SELECT greatest(p.settled_seq, (
      SELECT max(b.seq) FROM tenure.bulk_extensions b WHERE b.project_number = of_project
    )) AS last_seq
    FROM tenure.projects p WHERE p.number = of_project
  ),
  over AS MATERIALIZED (
    SELECT m.user_id, stood.end_date AS stood,
           tenure.date_after_pause(stood.end_date, m.paused_at, m.resumes_at, locked_at) AS end_date,
           tenure.effective_in_days(m.in_days, m.seq, l.last_seq,
             tenure.in_days_after_bulk_extensions(of_project, m.seq)) AS in_days,
           CASE WHEN m.paused_at = m.resumes_at THEN tenure.effective_kept_day(m.kept_day, m.seq, l.last_seq,
             tenure.keeps_date_after_bulk_extensions(of_project, m.seq, m.end_date)) END AS kept_day
    FROM log l
    JOIN tenure.memberships m ON m.project_number = of_project
    CROSS JOIN LATERAL (
      SELECT tenure.effective_end_date(m.end_date, m.seq, l.last_seq,
               tenure.date_after_bulk_extensions(of_project, m.seq, m.end_date)) AS end_date OFFSET 0
    ) stood
    WHERE m.paused_at IS NOT NULL AND m.resumes_at <= locked_at
  ),
  ended AS (
    UPDATE tenure.memberships m
    SET end_date = o.end_date, in_days = o.in_days, kept_day = o.kept_day,
        date_set_at = CASE WHEN m.paused_at < m.resumes_at THEN m.resumes_at ELSE m.date_set_at END,
        seq = greatest(m.seq, new_seq), paused_at = NULL,
        ending_generation = tenure.next_ending_generation(m.ending_generation, l.last_seq),
        ending_lower_bound =
          tenure.next_ending_lower_bound(m.ending_generation, m.ending_lower_bound, l.last_seq, o.end_date)
    FROM over o, log l
    WHERE m.project_number = of_project AND m.user_id = o.user_id
    RETURNING m.user_id, m.resumes_at, m.in_days, m.kept_day, o.stood, o.end_date
  )
  INSERT INTO tenure.audit (project_number, user_id, seq, action, from_date, to_date, at, in_days, kept_day, resumes_at)
  SELECT of_project, e.user_id, new_seq / 100000, 'resumed', e.stood, e.end_date, locked_at,
         nullif(e.in_days, false), e.kept_day, e.resumes_at
  FROM ended e ORDER BY e.resumes_at, e.user_id;
END $$;

-- The same for a project that is not locked. A function, because only a statement that is reached needs the right
-- to write: most projects have no pause that is over, and can be read where nothing can be written.
CREATE FUNCTION tenure.end_pauses_in(of_project_id text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  found tenure.projects;
BEGIN
  IF NOT EXISTS (
    SELECT FROM tenure.memberships m
    WHERE m.project_number = (SELECT p.number FROM tenure.projects p WHERE p.id = of_project_id)
      AND m.paused_at IS NOT NULL AND m.resumes_at <= statement_timestamp()
  ) THEN RETURN; END IF;
  UPDATE tenure.projects p SET seq = (p.seq / 100000 + 1) * 100000 WHERE p.id = of_project_id RETURNING p.* INTO found;
  PERFORM tenure.end_pauses(found.number, found.seq);
END $$;

-- Joins a project's settling bulk extensions with the next one if no member's date was set between them: then
-- the two have the same effect on every member. Audit rows show this for as long as the first one's row
-- exists, and no transaction is open that may have begun before the second.
CREATE FUNCTION tenure.join_bulk_extensions(of_project bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  one tenure.bulk_extensions;
  next tenure.bulk_extensions;
BEGIN
  FOR next IN
    SELECT * FROM tenure.bulk_extensions b WHERE b.project_number = of_project AND b.state = 'settling' ORDER BY b.seq
  LOOP
    -- No member has it in its own date yet.
    IF one.seq IS NOT NULL AND one.settled_to = '' AND next.made_in < pg_snapshot_xmin(pg_current_snapshot())
      AND EXISTS (
        SELECT FROM tenure.audit a
        WHERE a.project_number = of_project AND a.seq = one.seq / 100000 AND a.subject = one.id::text
      )
      AND NOT EXISTS (
        SELECT FROM tenure.audit a
        WHERE a.project_number = of_project AND a.seq >= one.seq / 100000 AND a.seq < next.seq / 100000
          AND a.action IN ('granted', 'imported', 'extended', 'moved', 'resumed', 'reverted')
      )
    THEN
      next.own_minimum := tenure.adjusted_end_date(one.own_minimum, next.own_addition, next.own_minimum);
      next.own_addition := one.own_addition + next.own_addition;
      next.own_in_days := one.own_in_days OR next.own_in_days;
      next.date_set_at :=
        greatest(one.date_set_at, one.date_reset_at, next.date_set_at, next.date_reset_at);
      UPDATE tenure.bulk_extensions b SET state = 'settled'
      WHERE b.project_number = of_project AND b.seq = one.seq;
      UPDATE tenure.bulk_extensions b
      SET own_addition = next.own_addition, own_minimum = next.own_minimum,
          own_in_days = next.own_in_days, addition = one.addition, minimum = one.minimum, in_days = one.in_days,
          date_set_at = next.date_set_at
      WHERE b.project_number = of_project AND b.seq = next.seq;
      next.addition := one.addition;
      next.minimum := one.minimum;
      next.in_days := one.in_days;
    END IF;
    one := next;
  END LOOP;
END $$;

-- Adds a bulk extension, and composes it onto earlier ones. If more than 64 are open, all but the newest 32
-- start settling.
CREATE FUNCTION tenure.add_bulk_extension(
  of_project bigint, new_seq bigint, new_id uuid, new_mode text, new_end_date timestamptz, new_extend_by interval,
  new_in_days boolean, made_at timestamptz, new_request_id text, new_key_id text, new_reason text, members bigint
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  new_addition CONSTANT interval := CASE new_mode WHEN 'never_shorten' THEN interval '0' ELSE new_extend_by END;
BEGIN
  PERFORM tenure.end_pauses(of_project, new_seq - 1);
  UPDATE tenure.bulk_extensions b
  SET addition = b.addition + new_addition,
      minimum = tenure.adjusted_end_date(b.minimum, new_addition, new_end_date),
      in_days = b.in_days OR new_in_days
  WHERE b.project_number = of_project AND b.state <> 'settled';
  INSERT INTO tenure.bulk_extensions
    (project_number, seq, id, mode, end_date, extend_by, own_addition, own_minimum, own_in_days, addition, minimum, in_days,
     at, date_set_at, request_id, key_id, reason, total)
  VALUES (of_project, new_seq, new_id, new_mode, new_end_date, new_extend_by, new_addition, new_end_date, new_in_days,
          new_addition, new_end_date, new_in_days, made_at, greatest(made_at, statement_timestamp()), new_request_id, new_key_id, new_reason, members);
  IF 64 < (SELECT count(*) FROM tenure.bulk_extensions b WHERE b.project_number = of_project AND b.state = 'open') THEN
    UPDATE tenure.bulk_extensions b SET state = 'settling'
    WHERE b.project_number = of_project AND b.state = 'open' AND b.seq < (
      SELECT o.seq FROM tenure.bulk_extensions o WHERE o.project_number = of_project ORDER BY o.seq DESC OFFSET 31 LIMIT 1
    );
    PERFORM tenure.join_bulk_extensions(of_project);
  END IF;
END $$;

-- Undoes a bulk extension that was made after `made_after`, and composes the others again. Returns 'undone',
-- or why it could not: 'unknown', 'undone before' or 'settled'.
CREATE FUNCTION tenure.undo_bulk_extension(
  of_project bigint, undone_id uuid, made_after timestamptz,
  undone_time timestamptz, by_request_id text, by_key_id text
) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  one tenure.bulk_extensions;
  later_addition interval := interval '0';
  later_minimum timestamptz;
  later_in_days boolean := false;
BEGIN
  SELECT * INTO one FROM tenure.bulk_extensions b WHERE b.project_number = of_project AND b.id = undone_id;
  IF NOT FOUND THEN RETURN 'unknown'; END IF;
  IF one.undone_at IS NOT NULL THEN RETURN 'undone before'; END IF;
  IF one.state <> 'open' OR one.at <= made_after THEN RETURN 'settled'; END IF;
  -- The undo gets the first number in the next round.
  PERFORM tenure.end_pauses(of_project, (p.seq / 100000 + 1) * 100000 - 1)
  FROM tenure.projects p WHERE p.number = of_project;
  UPDATE tenure.bulk_extensions b
  SET undone_at = undone_time, date_reset_at = greatest(undone_time, statement_timestamp()),
      undone_request_id = by_request_id, undone_key_id = by_key_id,
      own_addition = interval '0', own_minimum = NULL, own_in_days = false
  WHERE b.project_number = of_project AND b.seq = one.seq;
  FOR one IN
    SELECT * FROM tenure.bulk_extensions b WHERE b.project_number = of_project AND b.state <> 'settled'
    ORDER BY b.seq DESC
  LOOP
    later_minimum := tenure.adjusted_end_date(one.own_minimum, later_addition, later_minimum);
    later_addition := one.own_addition + later_addition;
    later_in_days := one.own_in_days OR later_in_days;
    UPDATE tenure.bulk_extensions b SET addition = later_addition, minimum = later_minimum, in_days = later_in_days
    WHERE b.project_number = of_project AND b.seq = one.seq;
  END LOOP;
  RETURN 'undone';
END $$;

-- Makes one project's settling bulk extensions part of own dates for the next `most` members, and stops at
-- the first one that is locked. This changes no effective end date. Returns a row if there may be more to do.
CREATE FUNCTION tenure.settle_bulk_extensions(most integer) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
  newest tenure.bulk_extensions;
  one tenure.bulk_extensions;
  -- The effect that each settling extension has together with all later ones, oldest first.
  seqs bigint[] := '{}';
  additions interval[] := '{}';
  minimums timestamptz[] := '{}';
  days boolean[] := '{}';
  -- The last time when one was made or undone.
  times timestamptz[] := '{}';
  changed_at timestamptz;
  addition interval := interval '0';
  minimum timestamptz;
  gives_day boolean := false;
  page text[];
  free text[];
  stopped_at text;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended('tenure.bulk_extensions', 0)) THEN RETURN; END IF;
  SELECT * INTO newest FROM tenure.bulk_extensions b WHERE b.state = 'settling' ORDER BY b.project_number LIMIT 1;
  IF NOT FOUND THEN RETURN; END IF;
  -- Locked so that no extensions are joined meanwhile.
  PERFORM FROM tenure.projects p WHERE p.number = newest.project_number FOR NO KEY UPDATE;
  SELECT * INTO newest FROM tenure.bulk_extensions b
  WHERE b.project_number = newest.project_number AND b.state = 'settling' ORDER BY b.seq DESC LIMIT 1;
  IF NOT FOUND THEN RETURN; END IF;
  FOR one IN
    SELECT * FROM tenure.bulk_extensions b WHERE b.project_number = newest.project_number AND b.state = 'settling'
    ORDER BY b.seq DESC
  LOOP
    minimum := tenure.adjusted_end_date(one.own_minimum, addition, minimum);
    addition := one.own_addition + addition;
    gives_day := gives_day OR one.own_in_days;
    changed_at := greatest(changed_at, one.date_set_at, one.date_reset_at);
    times := changed_at || times;
    seqs := one.seq || seqs;
    additions := addition || additions;
    minimums := minimum || minimums;
    days := gives_day || days;
  END LOOP;

  SELECT coalesce(array_agg(m.user_id ORDER BY m.user_id), '{}') INTO page FROM (
    SELECT o.user_id FROM tenure.memberships o
    WHERE o.project_number = newest.project_number AND o.user_id > newest.settled_to ORDER BY o.user_id LIMIT most
  ) m;
  SELECT coalesce(array_agg(m.user_id), '{}') INTO free FROM (
    SELECT o.user_id FROM tenure.memberships o
    WHERE o.project_number = newest.project_number AND o.user_id = ANY (page)
    FOR NO KEY UPDATE SKIP LOCKED
  ) m;
  SELECT min(u) INTO stopped_at FROM unnest(page) u
  WHERE u <> ALL (free) AND EXISTS (
    SELECT FROM tenure.memberships m WHERE m.project_number = newest.project_number AND m.user_id = u
  );
  -- Members that have changed since then have greater numbers, and are left out.
  UPDATE tenure.memberships m
  SET end_date = tenure.adjusted_end_date(m.end_date, additions[p.place], minimums[p.place]),
      in_days = m.in_days OR days[p.place],
      kept_day = CASE WHEN tenure.keeps_date(m.end_date, additions[p.place], minimums[p.place]) THEN m.kept_day END,
      date_set_at = CASE
        WHEN m.end_date = tenure.adjusted_end_date(m.end_date, additions[p.place], minimums[p.place]) THEN m.date_set_at
        ELSE greatest(m.date_set_at, times[p.place])
      END,
      set_with_others_at = CASE
        WHEN m.end_date = tenure.adjusted_end_date(m.end_date, additions[p.place], minimums[p.place])
        THEN m.set_with_others_at
        ELSE greatest(m.date_set_at, times[p.place])
      END,
      ending_lower_bound = tenure.adjusted_end_date(m.ending_lower_bound, additions[p.place], minimums[p.place]),
      ending_generation = CASE WHEN m.ending_generation < 0 THEN -1 - newest.seq
                          WHEN m.ending_generation IS NOT NULL THEN newest.seq END,
      seq = newest.seq
  FROM (
    SELECT o.user_id, width_bucket(o.seq, seqs) + 1 AS place FROM tenure.memberships o
    WHERE o.project_number = newest.project_number AND o.user_id = ANY (free) AND o.seq < newest.seq
  ) p
  WHERE m.project_number = newest.project_number AND m.user_id = p.user_id
    AND (stopped_at IS NULL OR m.user_id < stopped_at);

  IF stopped_at IS NOT NULL OR cardinality(page) = most THEN
    UPDATE tenure.bulk_extensions b
    SET settled_to = coalesce((SELECT max(u) FROM unnest(page) u WHERE stopped_at IS NULL OR u < stopped_at), b.settled_to)
    WHERE b.project_number = newest.project_number AND b.seq = newest.seq;
  ELSE
    UPDATE tenure.projects p SET settled_seq = newest.seq WHERE p.number = newest.project_number;
    UPDATE tenure.bulk_extensions b SET state = 'settled'
    WHERE b.project_number = newest.project_number AND b.state = 'settling' AND b.seq <= newest.seq;
  END IF;
  -- A locked member is tried again the next time.
  IF stopped_at IS NULL THEN RETURN NEXT newest.project_number; END IF;
END $$;

-- Ends are announced when next checks are due. A next check is a lower bound: there is nothing to announce
-- before it. Each check sets the next one, so that extensions need not change it. One row, from the first
-- process that announces ends.
CREATE TABLE tenure.expiry_settings (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  -- Earlier ends are not announced.
  since   timestamptz NOT NULL,
  -- The longest reminder in any process so far: a next check is at least this long before the end date.
  longest interval NOT NULL,
  -- The reminders in the process that started last, in seconds, longest first, and 0 for the end itself.
  leads   integer[] NOT NULL
);

-- Passes, which give memberships their own next checks: in one project, or in all.
CREATE TABLE tenure.expiry_passes (
  id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- The last membership that has its next check, and the last project in the pass.
  after_project bigint NOT NULL,
  after_user    text COLLATE "C" NOT NULL DEFAULT '',
  last_project  bigint NOT NULL,
  -- When the first bulk extension that the pass is for was made or undone. NULL if it is for all projects.
  changed_at    timestamptz,
  -- The pass waits for all transactions that are older than this one.
  begun_in      xid8
);

CREATE INDEX memberships_next_check ON tenure.memberships (next_check_at) WHERE next_check_at IS NOT NULL;

-- For projects to take turns, while more members in one are due than fit into a step. On an expression, so
-- that no other statement gets this index in place of the one over all projects: to a plan made without
-- statistics, both look equally good.
CREATE INDEX memberships_next_check_by_project
ON tenure.memberships (project_number, (next_check_at AT TIME ZONE interval '0')) WHERE next_check_at IS NOT NULL;

CREATE INDEX projects_next_check ON tenure.projects (next_check_at) WHERE next_check_at IS NOT NULL;

-- The order in which memberships end. An index on the end date itself would cost a write at each extension.
-- So this index has a lower bound, which extensions leave alone; the ending list raises it where a membership
-- ends later. It orders members in the same generation by their own dates, and bulk extensions keep this
-- order: so a bulk extension, or undoing one, changes nothing here. Only projects whose ending list was used
-- are in it, because it makes imports 25 % slower.
CREATE INDEX memberships_ending ON tenure.memberships (project_number, ending_generation, ending_lower_bound, user_id)
WHERE ending_generation IS NOT NULL;

-- The values in this index when a membership gets an end date. One that postpones the end changes no indexed
-- column, unless the date before came from a bulk extension or had passed. NULL stays NULL.
CREATE FUNCTION tenure.next_ending_generation(generation bigint, bulk_seq bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN generation < bulk_seq THEN bulk_seq ELSE generation END
$$;

CREATE FUNCTION tenure.next_ending_lower_bound(
  generation bigint, lower_bound timestamptz, bulk_seq bigint, end_date timestamptz
) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN generation IS NOT NULL
         THEN least(CASE WHEN generation < bulk_seq THEN NULL ELSE lower_bound END, end_date) END
$$;

-- For hosts, like the view below.
CREATE FUNCTION tenure.project_number(of_project_id text) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT p.number FROM tenure.projects p WHERE p.id = of_project_id
$$;

-- The view that hosts may join: columns keep their names, types and meaning, and new ones come last. The
-- comments also appear in the declarations for Drizzle, Kysely and Prisma. Pages ordered by user id need the
-- project number: the planner knows no order for rows joined with a project.
CREATE VIEW tenure.memberships_current AS
SELECT project_id, project_number, user_id, end_date,
       paused_at IS NULL AND end_date + grace_seconds * interval '1 second' > now() AS is_active,
       coalesce(metadata, '{}')::jsonb AS metadata, in_days, kept_day, time_zone, grace_seconds, paused_at, resumes_at
FROM (
  SELECT p.id AS project_id, m.project_number, m.user_id, m.metadata, p.time_zone, p.grace_seconds,
         tenure.effective_in_days(m.in_days, m.seq, p.bulk_seq, (
           SELECT b.in_days FROM tenure.bulk_extensions b
           WHERE b.project_number = m.project_number AND b.seq > m.seq AND b.state <> 'settled' ORDER BY b.seq LIMIT 1
         )) AS in_days,
         CASE WHEN tenure.time_paused(m.paused_at, m.resumes_at) = interval '0'
         THEN tenure.effective_kept_day(m.kept_day, m.seq, p.bulk_seq, (
           SELECT tenure.keeps_date(m.end_date, b.addition, b.minimum) FROM tenure.bulk_extensions b
           WHERE b.project_number = m.project_number AND b.seq > m.seq AND b.state <> 'settled' ORDER BY b.seq LIMIT 1
         )) END AS kept_day,
         tenure.date_after_pause(tenure.effective_end_date(m.end_date, m.seq, p.bulk_seq, (
           SELECT tenure.adjusted_end_date(m.end_date, b.addition, b.minimum) FROM tenure.bulk_extensions b
           WHERE b.project_number = m.project_number AND b.seq > m.seq AND b.state <> 'settled' ORDER BY b.seq LIMIT 1
         )), m.paused_at, m.resumes_at) AS end_date,
         CASE WHEN tenure.is_paused(m.paused_at, m.resumes_at) THEN m.paused_at END AS paused_at,
         CASE WHEN tenure.is_paused(m.paused_at, m.resumes_at) THEN m.resumes_at END AS resumes_at
  FROM tenure.memberships m
  JOIN tenure.projects p ON p.number = m.project_number
) effective;

COMMENT ON VIEW tenure.memberships_current IS
'The memberships of all projects with their effective end dates, for joins with tables of the host.';

COMMENT ON COLUMN tenure.memberships_current.project_id IS 'The id of the project.';

COMMENT ON COLUMN tenure.memberships_current.project_number IS
'The number that the function `project_number` returns for the project, for pages in the order of user ids.';

COMMENT ON COLUMN tenure.memberships_current.user_id IS 'The user id, as text.';

COMMENT ON COLUMN tenure.memberships_current.end_date IS
'The end date, after all bulk extensions. In a pause, the date that stands.';

COMMENT ON COLUMN tenure.memberships_current.is_active IS
'Whether there is no pause, and the end date, with the grace of the project, is later than the beginning of the transaction.';

COMMENT ON COLUMN tenure.memberships_current.in_days IS
'Whether the end date was given as a day. Then it is the end of that day in time_zone, unless that was changed.';

COMMENT ON COLUMN tenure.memberships_current.kept_day IS 'The day of the month that months count with, if the end date hides it.';

COMMENT ON COLUMN tenure.memberships_current.time_zone IS 'The time zone of the project: a name of IANA.';

COMMENT ON COLUMN tenure.memberships_current.grace_seconds IS
'For how many seconds memberships of the project are still active after their end dates.';

COMMENT ON COLUMN tenure.memberships_current.paused_at IS 'When the pause began, if there is one.';

COMMENT ON COLUMN tenure.memberships_current.resumes_at IS 'When the pause ends by itself.';

COMMENT ON COLUMN tenure.memberships_current.metadata IS 'The metadata: texts by name; an empty object without any.';

-- Sets end dates for different users. Each array has one element per membership. Returns the position, from
-- 1, and the number of deliveries for each existing membership.
-- It locks no project, so the seq follows the membership's if that is greater than the project's. Otherwise a
-- statement that read the project before a bulk extension could undo a later extension of the same
-- membership.
-- A function, because a connection plans it only once, even through a pooler: planning takes longer than the
-- extension. The plan has to suit tables that were empty when it was made. So the planner may only look up
-- each row by an index: OFFSET 0 and ANY leave it no other way.
CREATE FUNCTION tenure.extend(
  project_ids text[], user_ids text[], end_dates timestamptz[], times timestamptz[], request_ids text[], key_ids text[],
  event_ids uuid[], event_types text[], heads text[], reasons text[],
  are_in_days boolean[], kept_days smallint[]
) RETURNS TABLE (n integer, project_number bigint, seq bigint, metadata text, deliveries integer) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH placed AS MATERIALIZED (
    SELECT a.*, p.number AS project_number, p.seq AS project_seq, p.bulk_seq
    FROM unnest(project_ids, user_ids, end_dates, times, request_ids, key_ids, event_ids, event_types, heads, reasons,
                are_in_days, kept_days)
    WITH ORDINALITY
    AS a (project_id, user_id, to_date, at, request_id, key_id, event_id, event_type, head, reason, in_days, kept_day, n)
    CROSS JOIN LATERAL (
      SELECT o.number, o.seq, o.bulk_seq FROM tenure.projects o WHERE o.id = a.project_id OFFSET 0
    ) p
    -- All statements lock memberships in the same order, which avoids deadlocks.
    ORDER BY a.project_id COLLATE "C", a.user_id COLLATE "C"
  ),
  found AS (
    UPDATE tenure.memberships m
    SET end_date = p.to_date, in_days = p.in_days, kept_day = p.kept_day,
        date_set_at = CASE WHEN m.end_date = p.to_date AND m.seq >= p.bulk_seq THEN m.date_set_at
                      ELSE greatest(p.at, statement_timestamp()) END,
        seq = tenure.next_seq(
          greatest(m.seq, m.dateless_seq, p.project_seq), p.project_number, p.project_seq, p.bulk_seq, 1),
        next_check_at = least(m.next_check_at, p.to_date - (SELECT x.longest FROM tenure.expiry_settings x)),
        ending_generation = tenure.next_ending_generation(m.ending_generation, p.bulk_seq),
        ending_lower_bound =
          tenure.next_ending_lower_bound(m.ending_generation, m.ending_lower_bound, p.bulk_seq, p.to_date),
        paused_at = tenure.next_paused_at(m.paused_at, m.resumes_at),
        previous_end_date = tenure.date_after_pause(tenure.effective_end_date(m.end_date, m.seq, p.bulk_seq, (
          SELECT tenure.adjusted_end_date(m.end_date, b.addition, b.minimum) FROM tenure.bulk_extensions b
          WHERE b.project_number = m.project_number AND b.seq > m.seq AND b.state <> 'settled' ORDER BY b.seq LIMIT 1
        )), m.paused_at, m.resumes_at)
    FROM placed p
    WHERE m.project_number = ANY (ARRAY[p.project_number]) AND m.user_id = ANY (ARRAY[p.user_id])
    RETURNING p.n, p.project_number, p.user_id, p.to_date, p.at, p.request_id, p.key_id, p.reason, p.event_id, p.event_type,
              p.in_days, p.kept_day,
              CASE WHEN tenure.is_paused(m.paused_at, m.resumes_at) THEN m.paused_at END AS paused_at,
              CASE WHEN tenure.is_paused(m.paused_at, m.resumes_at) THEN m.resumes_at END AS resumes_at,
              m.seq, m.previous_end_date AS from_date, m.metadata,
              -- Same format as `completeEvent` in core.
              p.head || coalesce(',"metadata":' || nullif(m.metadata, '{}'), '') || ',"sequence":' || m.seq || '}}' AS body
  ),
  audited AS (
    INSERT INTO tenure.audit
      (project_number, user_id, seq, action, from_date, to_date, at, request_id, key_id, reason,
       in_days, kept_day, paused_at, resumes_at)
    SELECT f.project_number, f.user_id, f.seq / 100000, 'extended', f.from_date, f.to_date, f.at, f.request_id, f.key_id, f.reason,
           nullif(f.in_days, false), f.kept_day, f.paused_at, f.resumes_at
    FROM found f
    ORDER BY f.n
  ),
  published AS (
    INSERT INTO tenure.events (id, project_number, type, at, body)
    SELECT f.event_id, f.project_number, f.event_type, f.at, f.body FROM found f
  ),
  delivered AS (
    INSERT INTO tenure.deliveries (event_id, webhook_id, next_attempt_at, member)
    SELECT f.event_id, w.id, clock_timestamp(), CASE WHEN w.ordered THEN tenure.member_of(f.body) END
    FROM found f
    CROSS JOIN LATERAL (
      SELECT o.id, o.position, o.ordered FROM tenure.webhooks o
      WHERE o.project_number = f.project_number AND o.disabled_at IS NULL
        AND (o.event_types IS NULL OR f.event_type = ANY (o.event_types))
      OFFSET 0
    ) w
    ORDER BY f.n, w.position
    RETURNING webhook_id
  )
  SELECT f.n::integer, f.project_number, f.seq, f.metadata, (SELECT count(*) FROM delivered)::integer FROM found f;
END $$;

-- The same for extensions with different idempotency keys. It makes those whose key is unknown, and runs
-- again if another statement stores one at the same time.
CREATE FUNCTION tenure.extend_once(
  project_ids text[], user_ids text[], end_dates timestamptz[], times timestamptz[], request_ids text[], key_ids text[],
  event_ids uuid[], event_types text[], heads text[], reasons text[], are_in_days boolean[], kept_days smallint[],
  owners text[], keys text[], fingerprints text[], responses text[]
) RETURNS TABLE (n integer, project_number bigint, seq bigint, metadata text, deliveries integer) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  stored record;
BEGIN
  FOR stored IN
    SELECT a.n, a.owner, a.key, k.is_known
    FROM unnest(owners, keys) WITH ORDINALITY AS a (owner, key, n)
    CROSS JOIN LATERAL (
      SELECT i.project_number = 0
             OR EXISTS (SELECT FROM tenure.projects o WHERE o.number = i.project_number) AS is_known
      FROM tenure.idempotency_keys i WHERE i.owner = a.owner AND i.key = a.key OFFSET 0
    ) k
    ORDER BY a.owner COLLATE "C", a.key COLLATE "C"
  LOOP
    IF stored.is_known THEN
      -- No project has this id.
      project_ids[stored.n] := NULL;
    ELSE
      -- Its project was deleted, so that others can use the key, and may have done so by now.
      DELETE FROM tenure.idempotency_keys k
      WHERE k.owner = stored.owner AND k.key = stored.key AND k.project_number <> 0
        AND NOT EXISTS (SELECT FROM tenure.projects o WHERE o.number = k.project_number OFFSET 0);
    END IF;
  END LOOP;
  RETURN QUERY
  WITH made AS MATERIALIZED (
    SELECT * FROM tenure.extend(
      project_ids, user_ids, end_dates, times, request_ids, key_ids, event_ids, event_types, heads, reasons,
      are_in_days, kept_days)
  ),
  kept AS (
    INSERT INTO tenure.idempotency_keys (owner, key, project_number, fingerprint, response)
    SELECT owners[m.n], keys[m.n], m.project_number, fingerprints[m.n], coalesce(responses[m.n], '')
    FROM made m
    -- In the same order in all statements, which avoids deadlocks.
    ORDER BY owners[m.n] COLLATE "C", keys[m.n] COLLATE "C"
  )
  SELECT * FROM made;
END $$;

-- Changes memberships of different users in a project, each to an end date with its form and pause, or removes them
-- where the date is NULL: all, if each is as expected, or none. Without an expected date, there is to be no
-- membership. Returns one row for each. It takes a round for the project, as an import does.
-- A function, because what it compares has to be read after the locks.
CREATE FUNCTION tenure.change_each(
  of_project_id text, at timestamptz, user_ids text[],
  to_dates timestamptz[], are_in_days boolean[], kept_days smallint[], pauses timestamptz[], resumptions timestamptz[],
  from_dates timestamptz[], were_in_days boolean[], former_kept_days smallint[], former_pauses timestamptz[],
  former_resumptions timestamptz[]
) RETURNS TABLE (
  n bigint, project_number bigint, user_id text, seq bigint, from_date timestamptz, to_date timestamptz, metadata text,
  in_days boolean, kept_day smallint, paused_at timestamptz, resumes_at timestamptz
) LANGUAGE plpgsql
-- The planner may only look up each row by an index.
SET enable_seqscan = off SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  of_project tenure.projects;
  next_round bigint;
BEGIN
  SELECT * INTO of_project FROM tenure.projects p WHERE p.id = of_project_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  -- All statements lock memberships in the same order, which avoids deadlocks.
  PERFORM FROM tenure.memberships m
  WHERE m.project_number = of_project.number AND m.user_id = ANY (user_ids)
  ORDER BY m.user_id FOR NO KEY UPDATE;
  IF EXISTS (
    SELECT FROM unnest(user_ids, from_dates, were_in_days, former_kept_days, former_pauses, former_resumptions)
    AS a (user_id, end_date, in_days, kept_day, paused_at, resumes_at)
    LEFT JOIN LATERAL (
      SELECT * FROM tenure.memberships_current o
      WHERE o.project_number = of_project.number AND o.user_id = a.user_id OFFSET 0
    ) c ON true
    WHERE (c.end_date, c.in_days, c.kept_day, c.paused_at, c.resumes_at)
      IS DISTINCT FROM (a.end_date, a.in_days, a.kept_day, a.paused_at, a.resumes_at)
  ) THEN RETURN; END IF;
  next_round := (of_project.seq / 100000 + 1) * 100000;
  RETURN QUERY
  WITH asked AS MATERIALIZED (
    SELECT * FROM unnest(user_ids, from_dates, to_dates, are_in_days, kept_days, pauses, resumptions) WITH ORDINALITY
    AS a (user_id, from_date, to_date, in_days, kept_day, paused_at, resumes_at, n)
  ),
  ended AS (
    DELETE FROM tenure.memberships m USING asked a
    WHERE m.project_number = of_project.number AND m.user_id = a.user_id AND a.to_date IS NULL
    RETURNING m.user_id, greatest(m.seq, m.dateless_seq, next_round - 1) + 1 AS seq, m.metadata, false AS is_new
  ),
  changed AS (
    INSERT INTO tenure.memberships AS m
      (project_number, user_id, end_date, in_days, kept_day, paused_at, resumes_at, date_set_at, set_with_others_at, seq,
       next_check_at, ending_generation, ending_lower_bound)
    SELECT of_project.number, a.user_id, a.to_date, a.in_days, a.kept_day, a.paused_at, a.resumes_at,
           greatest(at, statement_timestamp()), greatest(at, statement_timestamp()), next_round,
           least(a.to_date - (SELECT x.longest FROM tenure.expiry_settings x), a.resumes_at),
           CASE WHEN of_project.ending_backfilled_to IS NOT NULL THEN of_project.bulk_seq END,
           CASE WHEN of_project.ending_backfilled_to IS NOT NULL THEN a.to_date END
    FROM asked a WHERE a.to_date IS NOT NULL
    ORDER BY a.user_id COLLATE "C"
    ON CONFLICT (project_number, user_id) DO UPDATE
    SET end_date = excluded.end_date, in_days = excluded.in_days, kept_day = excluded.kept_day,
        date_set_at = CASE WHEN m.end_date = excluded.end_date AND m.seq >= of_project.bulk_seq THEN m.date_set_at
                      ELSE excluded.date_set_at END,
        set_with_others_at = CASE WHEN m.end_date = excluded.end_date AND m.seq >= of_project.bulk_seq
                             THEN m.set_with_others_at ELSE excluded.set_with_others_at END,
        -- A pause that is over stays until that is announced.
        paused_at = CASE WHEN excluded.paused_at IS NOT NULL THEN excluded.paused_at
                    WHEN NOT tenure.is_paused(m.paused_at, m.resumes_at)
                    THEN tenure.next_paused_at(m.paused_at, m.resumes_at) END,
        resumes_at = CASE WHEN excluded.paused_at IS NOT NULL THEN excluded.resumes_at
                     WHEN NOT tenure.is_paused(m.paused_at, m.resumes_at) THEN m.resumes_at END,
        seq = greatest(m.seq + 1, m.dateless_seq + 1, next_round),
        next_check_at = least(m.next_check_at, excluded.next_check_at),
        ending_generation = tenure.next_ending_generation(m.ending_generation, of_project.bulk_seq),
        ending_lower_bound = tenure.next_ending_lower_bound(
          m.ending_generation, m.ending_lower_bound, of_project.bulk_seq, excluded.end_date)
    RETURNING m.user_id, m.seq, m.metadata, xmax = 0 AS is_new
  ),
  made AS MATERIALIZED (SELECT * FROM ended UNION ALL SELECT * FROM changed),
  counted AS (
    UPDATE tenure.projects p
    SET membership_count = p.membership_count + (SELECT count(*) FROM made d WHERE d.is_new) - (SELECT count(*) FROM ended),
        seq = greatest(next_round, (SELECT max(e.seq) FROM ended e))
    WHERE p.number = of_project.number
  )
  SELECT a.n, of_project.number, a.user_id, d.seq, a.from_date, a.to_date, d.metadata,
         a.in_days, a.kept_day, a.paused_at, a.resumes_at
  FROM asked a JOIN made d ON d.user_id = a.user_id;
END $$;
