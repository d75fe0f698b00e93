/** API keys and tickets on PostgreSQL. */

import {
  type ApiKey,
  ApiKeyConflict,
  ApiKeyId,
  ApiKeyNotFound,
  ApiKeyRevoked,
  type ApiKeyStore,
  type ChangeContext,
  IdempotencyMismatch,
  type KeyScope,
  ProjectId,
  ProjectNotFound,
  type Role,
  StoreUnavailable,
  type Ticket,
  TicketLimitReached,
  type TicketLimits,
  type TicketStore,
  TokenDigest,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { makeBatcher } from "./connection/batch.ts"
import type { Executor } from "./connection/executor.ts"
import { runPeriodically } from "./connection/housekeeping.ts"
import type { IdempotencyStore } from "./idempotency.ts"
import {
  type KeyClause,
  auditRow,
  changeContextParams,
  deleteSome,
  noProjectNumber,
  pickForm,
  withAndWithoutKey,
} from "./sql/clauses.ts"
import {
  type Integer,
  daysParam,
  flagParam,
  instantParam,
  instantsParam,
  integerParam,
  jsonOf,
  millisOf,
  textParam,
  textsParam,
  toMillis,
} from "./sql/values.ts"

/** The columns for a key `k`. */
const columns = `k.id, k.digest, k.role, k.name, k.opens_all,
         ${millisOf("k.created_at")} AS created_at, ${millisOf("k.expires_at")} AS expires_at,
         ${millisOf("k.revoked_at")} AS revoked_at, ${millisOf("k.last_used_at")} AS last_used_at`

/** A query for the ids of the projects in the scope of a key `k`. */
const projectsOf = (schema: string): string =>
  `SELECT p.id FROM ${schema}.api_key_projects o
   JOIN ${schema}.projects p ON p.number = o.project_number WHERE o.key_id = k.id`

/** Whether a key `k` has at least one project in its scope, and all are in a parameter. */
const isWithin = (schema: string, param: string): string => `(
    ${param}::text[] IS NULL
    OR NOT k.opens_all AND ${param}::text[] @> ARRAY(${projectsOf(schema)})
    AND EXISTS (${projectsOf(schema)})
  )`

/** The parameter of `isWithin`. */
const withinParam = (within: KeyScope) =>
  within === "all" ? textParam(undefined) : textsParam([...within])

/** A row with a key's columns and projects. */
export interface KeyRow {
  readonly id: string
  readonly digest: string
  readonly role: Role
  readonly name: string | null
  readonly opens_all: boolean
  /** A JSON array of texts. */
  readonly projects: string
  readonly created_at: Integer
  readonly expires_at: Integer | null
  readonly revoked_at: Integer | null
  readonly last_used_at: Integer | null
}

/** Reads project ids from a JSON array. */
const projectsIn = (json: string): ReadonlySet<ProjectId> => {
  const ids: ReadonlyArray<string> = JSON.parse(json)
  return new Set(ids.map(ProjectId))
}

/** Converts a row to a key. */
const toKey = (row: KeyRow): ApiKey => ({
  id: ApiKeyId(row.id),
  digest: TokenDigest(row.digest),
  role: row.role,
  name: row.name ?? undefined,
  projects: row.opens_all ? "all" : projectsIn(row.projects),
  createdAt: Number(row.created_at),
  expiresAt: toMillis(row.expires_at),
  revokedAt: toMillis(row.revoked_at),
  lastUsedAt: toMillis(row.last_used_at),
})

/**
 * Adds a key. If a key with the same digest exists, adds the projects to its scope instead, unless it is
 * revoked or has another role. Returns one row: the key, or the id of a missing project; none if the
 * idempotency key is known.
 */
const addKey = (schema: string, idempotency: KeyClause): string => `
  WITH missing AS (
    SELECT id FROM unnest($9::text[]) AS asked (id)
    WHERE NOT EXISTS (SELECT FROM ${schema}.projects p WHERE p.id = asked.id)
    LIMIT 1
  ),
  key AS (
    INSERT INTO ${schema}.api_keys AS k
      (id, digest, role, name, opens_all, created_at, expires_at, revoked_at)
    SELECT $1::text, $2::text, $3::text, $4::text, $5::boolean,
           $6::timestamptz, $7::timestamptz, $8::timestamptz
    WHERE NOT EXISTS (SELECT FROM missing) ${idempotency.condition}
    -- Locks and returns the existing key, even if nothing changes.
    ON CONFLICT (digest) DO UPDATE SET opens_all =
      k.opens_all OR excluded.opens_all AND k.role = excluded.role AND k.revoked_at IS NULL
    RETURNING k.*
  ),
  opened AS (
    INSERT INTO ${schema}.api_key_projects (key_id, project_number)
    SELECT k.id, p.number FROM key k, ${schema}.projects p
    WHERE p.id = ANY ($9::text[]) AND k.role = $3::text AND k.revoked_at IS NULL
    ON CONFLICT DO NOTHING
    RETURNING key_id
  ),
  changed AS (
    SELECT ${noProjectNumber} AS project_number, k.id AS subject FROM key k
    -- The row from before the statement shows whether the scope becomes all projects only now.
    LEFT JOIN ${schema}.api_keys b ON b.id = k.id
    WHERE b.id IS NULL OR k.opens_all AND NOT b.opens_all OR EXISTS (SELECT FROM opened)
  ),${auditRow(schema, "changed", 10, "CASE s.subject WHEN $1 THEN 'key_issued' ELSE 'key_opened' END")}
  ${idempotency.keeping("key k WHERE k.role = $3::text AND k.revoked_at IS NULL", "k.id", noProjectNumber)}
  SELECT m.id AS missing, ${columns},
         ${jsonOf(`ARRAY(${projectsOf(schema)} UNION SELECT unnest($9::text[]))`)} AS projects
  FROM (VALUES (1)) AS one LEFT JOIN missing m ON true LEFT JOIN key k ON true
  WHERE m.id IS NOT NULL OR k.id IS NOT NULL
`

/** The parameters for `addKey`. */
const addKeyParams = (key: ApiKey, context: ChangeContext) => [
  textParam(key.id),
  textParam(key.digest),
  textParam(key.role),
  textParam(key.name),
  flagParam(key.projects === "all"),
  instantParam(key.createdAt),
  instantParam(key.expiresAt),
  instantParam(key.revokedAt),
  textsParam(key.projects === "all" ? [] : [...key.projects]),
  ...changeContextParams(context),
]

/** The row from `addKey`. */
export interface AddedRow extends KeyRow {
  readonly missing: string | null
}

/** Returns keys by the digests of their tokens. */
const findKeys = (schema: string): string => `
  SELECT ${columns}, ${jsonOf(`ARRAY(${projectsOf(schema)})`)} AS projects
  FROM ${schema}.api_keys k WHERE k.digest = ANY ($1::text[])
`

/**
 * Returns at most $2 keys within the projects $3, oldest first: from the key $1 on, or from the first if that
 * is NULL. If $1 is not one of them, it is not the first in the result.
 */
const listKeys = (schema: string): string => `
  SELECT ${columns}, ${jsonOf(`ARRAY(${projectsOf(schema)})`)} AS projects
  FROM ${schema}.api_keys k
  WHERE k.position >= CASE WHEN $1::text IS NULL THEN 0
                          ELSE (SELECT a.position FROM ${schema}.api_keys a WHERE a.id = $1::text)
                     END
    AND ${isWithin(schema, "$3")}
  ORDER BY k.position
  LIMIT $2::integer
`

/** Returns the names for the key ids `$1`, where there are any. */
const namesOfKeys = (schema: string): string => `
  SELECT k.id, k.name FROM ${schema}.api_keys k
  WHERE k.id = ANY ($1::text[]) AND k.name IS NOT NULL
`

/** The row from `namesOfKeys`. */
export interface NameRow {
  readonly id: string
  readonly name: string
}

/** Revokes a key, unless it is revoked already. Returns one row if the key exists, within the projects $2. */
const revokeKey = (schema: string, idempotency: KeyClause): string => `
  WITH found AS MATERIALIZED (
    SELECT k.id, k.revoked_at FROM ${schema}.api_keys k
    WHERE k.id = $1::text AND ${isWithin(schema, "$2")} ${idempotency.condition}
    FOR NO KEY UPDATE OF k
  ),
  revoked AS (
    UPDATE ${schema}.api_keys k SET revoked_at = $3::timestamptz
    FROM found f WHERE k.id = f.id AND f.revoked_at IS NULL
    RETURNING ${noProjectNumber} AS project_number, k.id AS subject
  ),${auditRow(schema, "revoked", 3, "'key_revoked'")}${idempotency.keeping("found", undefined, noProjectNumber)}
  SELECT id FROM found
`

/**
 * Records when keys were used, unless a later use is recorded. Skips locked keys, which others are recording:
 * two batches with different orders would deadlock.
 */
const touchKeys = (schema: string): string => `
  WITH used AS (
    SELECT k.id, u.at
    FROM unnest($1::text[], $2::timestamptz[]) AS u (id, at)
    JOIN ${schema}.api_keys k ON k.id = u.id
    WHERE k.last_used_at IS NULL OR k.last_used_at < u.at
    FOR NO KEY UPDATE OF k SKIP LOCKED
  )
  UPDATE ${schema}.api_keys k SET last_used_at = u.at FROM used u WHERE k.id = u.id
`

type Revocation = Parameters<ApiKeyStore["Service"]["revoke"]>[0]

/** Makes the API key store. */
export const makePostgresApiKeyStore = Effect.fnUntraced(function* (
  executor: Executor,
  idempotencyStore: IdempotencyStore,
) {
  const { schema } = executor
  const sql = {
    add: withAndWithoutKey(schema, addKey, 12),
    find: findKeys(schema),
    list: listKeys(schema),
    names: namesOfKeys(schema),
    revoke: withAndWithoutKey(schema, revokeKey, 5),
    touch: touchKeys(schema),
  }

  const findMany = (digests: ReadonlyArray<TokenDigest>) =>
    // Authenticates requests, so it does not depend on the host's open transaction.
    Effect.map(
      executor.executeApart<KeyRow>(sql.find, [textsParam(digests)], { owner: "keys" }),
      (rows) => {
        const keys = new Map(rows.map((row) => [row.digest, toKey(row)]))
        return digests.map((digest) => Option.fromUndefinedOr(keys.get(digest)))
      },
    )

  const findGathered = yield* makeBatcher({
    run: findMany,
    isItemError: () => false,
    maxBatch: 256,
    maxInFlight: 2,
    crowded: new StoreUnavailable({ cause: "crowded" }),
  })

  const add = Effect.fnUntraced(function* (key: ApiKey, context: ChangeContext) {
    const form = pickForm(sql.add, addKeyParams(key, context), context.idempotency)
    const [row] = yield* executor.execute<AddedRow>(...form)
    if (row === undefined) return yield* new IdempotencyMismatch()
    if (row.missing !== null) return yield* new ProjectNotFound({ projectId: row.missing })
    const added = toKey(row)
    const { id, revokedAt, role } = added
    if (revokedAt !== undefined) return yield* new ApiKeyRevoked({ keyId: id })
    return role === key.role ? added : yield* new ApiKeyConflict({ keyId: id, role })
  })

  const revoke = Effect.fnUntraced(function* ({ keyId, within, ...context }: Revocation) {
    const params = [textParam(keyId), withinParam(within), ...changeContextParams(context)]
    const rows = yield* executor.execute(...pickForm(sql.revoke, params, context.idempotency))
    if (rows.length === 0) return yield* new ApiKeyNotFound({ keyId })
  })

  const store: ApiKeyStore["Service"] = {
    ping: executor.ping,

    add: (key, context) => idempotencyStore.change(context.idempotency, add(key, context)),

    find: (digest) => Effect.map(findGathered(digest), Option.getOrUndefined),

    revoke: (revocation) => idempotencyStore.change(revocation.idempotency, revoke(revocation)),

    touch: (uses) =>
      executor.executeApart(
        sql.touch,
        [textsParam([...uses.keys()]), instantsParam([...uses.values()])],
        {
          owner: "keys",
          isBrief: true,
        },
      ),

    names: (keyIds) =>
      Effect.map(
        executor.execute<NameRow>(sql.names, [textsParam([...keyIds])]),
        (rows) => new Map(rows.map(({ id, name }) => [ApiKeyId(id), name])),
      ),

    list: Effect.fnUntraced(function* ({ after, limit, within }) {
      const list = (count: number) =>
        executor.execute<KeyRow>(sql.list, [
          textParam(after),
          integerParam(count),
          withinParam(within),
        ])
      if (after === undefined) return (yield* list(limit)).map(toKey)
      const [first, ...rows] = yield* list(limit + 1)
      return first?.id === after ? rows.map(toKey) : yield* new ApiKeyNotFound({ keyId: after })
    }),
  }
  return store
})

/**
 * An expression for whether a ticket is valid. If its remaining life is longer than tickets have, it was
 * added while the clock was ahead; one second more allows for small clock corrections.
 */
const isAlive = `(
      expires_at > clock_timestamp()
      AND expires_at <= clock_timestamp() + life + interval '1 second'
    )`

/** Adds a ticket, with the function in the migrations. */
const addTicket = (schema: string): string => `
  SELECT * FROM ${schema}.add_ticket(
    $1::text, $2::text, $3::text, $4::text[], $5::double precision * interval '1 day', $6::integer
  )
`

/** The parameters for `addTicket`. */
const addTicketParams = (
  { digest, keyDigest, keyId, projects }: Ticket,
  { lifeMillis, most }: TicketLimits,
) => [
  textParam(digest),
  textParam(keyId),
  textParam(keyDigest),
  projects === "all" ? textParam(undefined) : textsParam([...projects]),
  daysParam(lifeMillis),
  integerParam(most),
]

/** Deletes a ticket. Returns it, and whether it was valid. */
const takeTicket = (schema: string): string => `
  DELETE FROM ${schema}.tickets t WHERE t.digest = $1::text
  RETURNING t.digest, t.key_id, t.key_digest, ${jsonOf("t.projects")} AS projects,
            ${isAlive} AS is_alive
`

/** The row from `takeTicket`. */
export interface TicketRow {
  readonly digest: string
  readonly key_id: string
  readonly key_digest: string | null
  /** A JSON array of texts; `null` for all projects. */
  readonly projects: string | null
  readonly is_alive: boolean
}

/** Converts a row to a ticket. */
const toTicket = (row: TicketRow): Ticket => ({
  digest: TokenDigest(row.digest),
  keyId: ApiKeyId(row.key_id),
  keyDigest: row.key_digest === null ? undefined : TokenDigest(row.key_digest),
  projects: row.projects === null ? "all" : projectsIn(row.projects),
})

/** Deletes up to 1000 expired tickets. Returns one row for each. */
const deleteExpiredTickets = (schema: string): string =>
  deleteSome(schema, "tickets", `NOT ${isAlive}`)

const options = { owner: "tickets" }

/** Makes the ticket store, and deletes expired tickets in the background. */
export const makePostgresTicketStore = Effect.fnUntraced(function* ({
  executeApart,
  schema,
}: Executor) {
  const sql = { add: addTicket(schema), take: takeTicket(schema) }
  yield* runPeriodically("1 minute", executeApart(deleteExpiredTickets(schema), [], options))

  const store: TicketStore["Service"] = {
    add: Effect.fnUntraced(function* (ticket, bounds) {
      const rows = yield* executeApart(sql.add, addTicketParams(ticket, bounds), options)
      if (rows.length === 0) return yield* new TicketLimitReached({ keyId: ticket.keyId })
    }),

    take: Effect.fnUntraced(function* (digest) {
      const [row] = yield* executeApart<TicketRow>(sql.take, [textParam(digest)], options)
      return row?.is_alive === true ? toTicket(row) : undefined
    }),
  }
  return store
})
