/**
 * Migration 1: what announces the ends of memberships.
 *
 * An alarm is a lower bound of the time at which a membership has something to announce. Whoever looks sets
 * the next one, so extensions leave an alarm that is there.
 */
export const createExpiry = (schema: string): ReadonlyArray<string> => [
  // At most one row, from the first process on that announces ends.
  `
  CREATE TABLE ${schema}.expiry (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    -- What ended before is not announced.
    since   timestamptz NOT NULL,
    -- The longest reminder of all processes so far: an alarm is so long before the end date, or earlier.
    longest interval NOT NULL,
    -- The reminders of the process that has started last, in seconds, longest first, and 0 for the end itself.
    leads   integer[] NOT NULL
  )
  `,
  // Memberships that are to have alarms of their own: those of a project, or all.
  `
  CREATE TABLE ${schema}.expiry_passes (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The last membership that has its alarm, and the last project of the pass.
    after_project bigint NOT NULL,
    after_user    text COLLATE "C" NOT NULL DEFAULT '',
    last_project  bigint NOT NULL,
    -- The pass waits for all transactions that are older than this one.
    begun_in      xid8
  )
  `,
  `CREATE INDEX memberships_alarm ON ${schema}.memberships (alarm_at) WHERE alarm_at IS NOT NULL`,
  // For projects to take turns, while more members of one are due than can be looked at in a step.
  `
  CREATE INDEX memberships_alarm_by_project
  ON ${schema}.memberships (project_number, alarm_at) WHERE alarm_at IS NOT NULL
  `,
  `CREATE INDEX projects_alarm ON ${schema}.projects (alarm_at) WHERE alarm_at IS NOT NULL`,
]
