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
      -- Texts by name, as JSON.
      metadata   text NOT NULL DEFAULT '{}',
      -- Columns that Tenure does not use.
      plan       text NOT NULL DEFAULT 'basic',
      note       text,
      PRIMARY KEY (account, customer)
    )
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
      reason     text
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
