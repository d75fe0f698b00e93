/** The host's tables. If you have migrations, create the tables there. */

import { PgClient } from "@effect/sql-pg"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

const createTables = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* sql`
    CREATE TABLE IF NOT EXISTS accounts (
      id         text PRIMARY KEY,
      created_at timestamptz NOT NULL DEFAULT now()
    )
  `
  yield* sql`
    CREATE TABLE IF NOT EXISTS subscriptions (
      account    text NOT NULL REFERENCES accounts,
      -- Memberships are listed in the order of code units, which is that of the collation "C".
      customer   text COLLATE "C" NOT NULL,
      paid_until timestamptz NOT NULL,
      -- Whether the date was given as a day, and the day of the month that months count with.
      in_days    boolean NOT NULL DEFAULT false,
      kept_day   smallint,
      -- A pause. Meanwhile paid_until stands.
      paused_at  timestamptz,
      resumes_at timestamptz,
      -- Texts by name, as JSON.
      metadata   text NOT NULL DEFAULT '{}',
      -- Columns that Tenure does not use.
      plan       text NOT NULL DEFAULT 'basic',
      note       text,
      PRIMARY KEY (account, customer)
    )
  `
  // After a pause, a subscription is paid for longer by the time paused.
  yield* sql`
    CREATE OR REPLACE VIEW current_subscriptions AS
    SELECT account, customer, in_days, metadata,
           CASE WHEN is_over THEN least(
             -- Counted in seconds: days would follow the clocks in the session's time zone.
             paid_until + extract(epoch FROM resumes_at - paused_at) * interval '1 second',
             timestamptz '9999-12-31 23:59:59.999+00'
           ) ELSE paid_until END AS paid_until,
           CASE WHEN NOT is_over THEN kept_day END AS kept_day,
           CASE WHEN NOT is_over THEN paused_at END AS paused_at,
           CASE WHEN NOT is_over THEN resumes_at END AS resumes_at
    FROM (
      SELECT *, coalesce(resumes_at <= statement_timestamp(), false) AS is_over FROM subscriptions
    ) s
  `
  // For the ending list.
  yield* sql`
    CREATE INDEX IF NOT EXISTS subscriptions_by_end ON subscriptions (account, paid_until, customer)
  `
  yield* sql`
    CREATE TABLE IF NOT EXISTS subscription_changes (
      id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      account    text NOT NULL,
      -- NULL for a change of all subscriptions of the account.
      customer   text,
      action     text NOT NULL
                 CHECK (action IN (
                   'granted', 'imported', 'extended', 'updated', 'ended', 'moved',
                   'paused', 'resumed',
                   'bulk_extended', 'bulk_lengthened', 'bulk_extended_by'
                 )),
      -- The other customer, of a subscription that was moved.
      other_customer text,
      paid_from  timestamptz,
      paid_until timestamptz,
      -- Of a change of all subscriptions: the id of its event, by how many milliseconds, and how many there were.
      event_id     text,
      added_millis bigint,
      total        integer,
      at         timestamptz NOT NULL,
      request_id text,
      key_id     text,
      reason     text,
      -- The form of the date and the pause afterwards, for reverts. The end of a pause by itself is unasked.
      in_days    boolean NOT NULL DEFAULT false,
      kept_day   smallint,
      paused_at  timestamptz,
      resumes_at timestamptz,
      is_unasked boolean NOT NULL DEFAULT false
    )
  `
  yield* sql`
    CREATE INDEX IF NOT EXISTS subscription_changes_by_customer
    ON subscription_changes (account, customer, id)
  `
  yield* sql`
    CREATE INDEX IF NOT EXISTS subscription_changes_by_other_customer
    ON subscription_changes (account, other_customer) WHERE other_customer IS NOT NULL
  `
})

/** Creates missing tables. */
export const layer = Layer.effectDiscard(createTables)
