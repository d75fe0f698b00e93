/** The first tables. */

import { createClaim } from "./migration0001Claim.ts"

export const migration0001 = (schema: string): ReadonlyArray<string> => [
  `
  CREATE TABLE ${schema}.projects (
    id            text COLLATE "C" PRIMARY KEY,
    -- How many memberships and webhooks the project has.
    members       bigint NOT NULL DEFAULT 0,
    webhooks      integer NOT NULL DEFAULT 0,
    -- The last bulk extension: it holds for every membership whose seq is smaller.
    bulk_end_date timestamptz,
    bulk_seq      bigint NOT NULL DEFAULT 0
  ) WITH (fillfactor = 50)
  `,
  `
  CREATE TABLE ${schema}.memberships (
    project_id        text COLLATE "C" NOT NULL REFERENCES ${schema}.projects,
    user_id           text COLLATE "C" NOT NULL,
    end_date          timestamptz NOT NULL,
    -- The project's bulk_seq when end_date was set.
    seq               bigint NOT NULL,
    -- What held before the last change: a statement that changes it also records that.
    previous_end_date timestamptz,
    PRIMARY KEY (project_id, user_id)
  ) WITH (fillfactor = 60)
  `,
  `
  CREATE VIEW ${schema}.memberships_current AS
  SELECT m.project_id, m.user_id,
         CASE WHEN m.seq >= p.bulk_seq THEN m.end_date ELSE p.bulk_end_date END AS end_date
  FROM ${schema}.memberships m
  JOIN ${schema}.projects p ON p.id = m.project_id
  `,
  `
  CREATE TABLE ${schema}.audit (
    id         bigint GENERATED ALWAYS AS IDENTITY,
    project_id text COLLATE "C" NOT NULL,
    -- NULL for a change of all memberships of the project.
    user_id    text COLLATE "C",
    action     text NOT NULL,
    from_date  timestamptz,
    to_date    timestamptz,
    at         timestamptz NOT NULL,
    request_id text,
    key_id     text,
    PRIMARY KEY (project_id, id)
  )
  `,
  `CREATE INDEX audit_of_user ON ${schema}.audit (project_id, user_id, id)`,
  `
  CREATE TABLE ${schema}.api_keys (
    id         text PRIMARY KEY,
    position   bigint GENERATED ALWAYS AS IDENTITY,
    digest     text NOT NULL UNIQUE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz
  )
  `,
  `
  CREATE TABLE ${schema}.api_key_projects (
    key_id     text NOT NULL REFERENCES ${schema}.api_keys,
    project_id text COLLATE "C" NOT NULL REFERENCES ${schema}.projects,
    PRIMARY KEY (key_id, project_id)
  )
  `,
  `
  CREATE TABLE ${schema}.webhooks (
    id          uuid PRIMARY KEY,
    position    bigint GENERATED ALWAYS AS IDENTITY,
    project_id  text COLLATE "C" NOT NULL REFERENCES ${schema}.projects,
    url         text NOT NULL,
    secret      text NOT NULL,
    -- The secret before the last rotation, which signs as well until then.
    previous_secret text,
    previous_until  timestamptz,
    -- The key that signs besides the secret, where one was asked for.
    signing_key text,
    -- The types of events that it gets; NULL for all.
    event_types text[],
    created_at  timestamptz NOT NULL,
    disabled_at timestamptz,
    -- Attempts that have failed since one succeeded, and when the first of them did.
    failures      integer NOT NULL DEFAULT 0,
    failing_since timestamptz,
    -- Until when the webhook is left alone.
    held_until    timestamptz
  )
  `,
  `CREATE INDEX webhooks_held ON ${schema}.webhooks (held_until) WHERE held_until IS NOT NULL`,
  `CREATE INDEX webhooks_of_project ON ${schema}.webhooks (project_id, position)`,
  `
  CREATE TABLE ${schema}.events (
    id         uuid PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL,
    type       text NOT NULL,
    at         timestamptz NOT NULL,
    body       text NOT NULL
  )
  `,
  `CREATE INDEX events_by_age ON ${schema}.events (at)`,
  `
  CREATE TABLE ${schema}.deliveries (
    event_id   uuid NOT NULL,
    webhook_id uuid NOT NULL,
    position   bigint GENERATED ALWAYS AS IDENTITY,
    -- 'ready', 'later' and 'leased' are open; 'delivered', 'failed' and 'cancelled' are ended.
    state      text NOT NULL DEFAULT 'ready',
    -- When it is to be attempted next, or when its lease passes.
    due_at     timestamptz NOT NULL,
    lease      bigint,
    claims     integer NOT NULL DEFAULT 0,
    attempts   jsonb NOT NULL DEFAULT '[]',
    PRIMARY KEY (event_id, webhook_id)
    -- Most rows change twice soon after they were made: vacuum has to come often.
  ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01)
  `,
  `CREATE INDEX deliveries_of_webhook ON ${schema}.deliveries (webhook_id, position)`,
  `
  CREATE INDEX deliveries_ready ON ${schema}.deliveries (webhook_id, due_at, position)
  WHERE state = 'ready'
  `,
  `CREATE INDEX deliveries_leased ON ${schema}.deliveries (webhook_id) WHERE state = 'leased'`,
  `
  CREATE INDEX deliveries_due ON ${schema}.deliveries (due_at)
  WHERE state = 'later' OR state = 'leased'
  `,
  `CREATE SEQUENCE ${schema}.leases`,
  createClaim(schema),
  // What a crash of the server takes with it are limits that were used up: nobody's loss.
  `
  CREATE UNLOGGED TABLE ${schema}.buckets (
    key text COLLATE "C" PRIMARY KEY,
    tat bigint NOT NULL
  ) WITH (fillfactor = 70)
  `,
]
