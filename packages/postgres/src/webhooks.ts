/** The webhook store on PostgreSQL. */

import { initialConcurrency } from "@tenure/core/internal"
import {
  type ChangeContext,
  type Disabling,
  EventType,
  type Health,
  type KeyUse,
  ProjectId,
  ProjectNotFound,
  StoredSecret,
  type StoredWebhook,
  type WebhookChange,
  WebhookConflict,
  WebhookId,
  WebhookLimitReached,
  WebhookNotFound,
  type WebhookRef,
  type WebhookSettings,
  type WebhookStore,
  maxKeySamples,
  maxKeyUses,
  maxSampleLength,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { type Executor, readsOf } from "./connection/executor.ts"
import type { IdempotencyStore } from "./idempotency.ts"
import type { Notifications } from "./notifications.ts"
import {
  type KeyClause,
  type StatementForms,
  auditRow,
  changeContextParams,
  isInProject,
  pickForm,
  withAndWithoutKey,
} from "./sql/clauses.ts"
import {
  type Integer,
  flagParam,
  instantParam,
  integerParam,
  jsonOf,
  millisOf,
  textParam,
  textsParam,
  toMillis,
  uuidParam,
} from "./sql/values.ts"

/**
 * Adds a webhook, unless the project has reached its limit. Returns whether the webhook was added, and
 * whether the project exists. That is known only once it is locked, because it may have been deleted
 * meanwhile.
 */
const addWebhook = (schema: string, idempotency: KeyClause): string => `
  WITH project AS MATERIALIZED (
    SELECT number, webhook_count FROM ${schema}.projects WHERE id = $2::text FOR NO KEY UPDATE
  ),
  counted AS (
    UPDATE ${schema}.projects p SET webhook_count = p.webhook_count + 1 FROM project
    WHERE p.number = project.number AND project.webhook_count < $6::integer ${idempotency.condition}
    RETURNING p.number
  ),
  added AS (
    INSERT INTO ${schema}.webhooks (id, project_number, url, secret, created_at, event_types, ordered, rate, description, header_names, headers)
    SELECT $1::uuid, number, $3::text, $4::text, $5::timestamptz, $7::text[], nullif($8::boolean, false), $9::integer, $10::text, $11::text[], $12::text FROM counted
    RETURNING project_number, id::text AS subject
  ),${auditRow(schema, "added", 13, "'webhook_created'")}${idempotency.keeping("added", "subject")}
  SELECT EXISTS (SELECT FROM added) AS added,
         EXISTS (SELECT FROM project) AS project_exists
`

const listParam = (texts: ReadonlyArray<string> | undefined) =>
  texts === undefined ? textParam(undefined) : textsParam(texts)

const headersParams = (headers: StoredWebhook["headers"]) => [
  listParam(headers?.names),
  textParam(headers?.sealed),
]

/** The parameters for `addWebhook`. */
const addWebhookParams = (
  {
    createdAt,
    description,
    eventTypes,
    headers,
    id,
    ordered,
    projectId,
    rate,
    secret,
    url,
  }: StoredWebhook,
  limit: number,
  context: ChangeContext,
) => [
  uuidParam(id),
  textParam(projectId),
  textParam(url),
  textParam(secret),
  instantParam(createdAt),
  integerParam(limit),
  listParam(eventTypes),
  flagParam(ordered),
  integerParam(rate),
  textParam(description),
  ...headersParams(headers),
  ...changeContextParams(context),
]

/** The row from `addWebhook`. */
interface AddedRow {
  readonly added: boolean
  readonly project_exists: boolean
}

/** The columns in `WebhookRow`, from a webhook `w`. */
const webhookColumns = `w.id, w.url, w.secret, w.previous_secret,
         ${millisOf("w.previous_until")} AS previous_until, w.signing_key,
         ${jsonOf("w.event_types")} AS event_types, w.ordered, w.rate, w.description,
         ${jsonOf("w.header_names")} AS header_names, w.headers, ${millisOf("w.created_at")} AS created_at,
         ${millisOf("w.disabled_at")} AS disabled_at, w.disabled_by, w.failures,
         ${millisOf("w.failing_since")} AS failing_since`

/** A row with a webhook's columns. */
interface WebhookRow {
  readonly id: string
  readonly url: string
  readonly secret: string
  readonly previous_secret: string | null
  readonly previous_until: Integer | null
  readonly signing_key: string | null
  /** A JSON array of texts. */
  readonly event_types: string | null
  readonly ordered: boolean | null
  readonly rate: number | null
  readonly description: string | null
  /** A JSON array of texts. */
  readonly header_names: string | null
  readonly headers: string | null
  readonly created_at: Integer
  readonly disabled_at: Integer | null
  readonly disabled_by: Disabling["by"] | null
  readonly failures: number
  readonly failing_since: Integer | null
}

const previousOf = ({ previous_secret, previous_until }: WebhookRow): StoredWebhook["previous"] =>
  previous_secret === null || previous_until === null
    ? undefined
    : { secret: StoredSecret(previous_secret), until: Number(previous_until) }

const headersOf = ({ header_names, headers }: WebhookRow): StoredWebhook["headers"] =>
  header_names === null || headers === null
    ? undefined
    : { names: JSON.parse(header_names), sealed: StoredSecret(headers) }

const disablingOf = ({ disabled_at, disabled_by }: WebhookRow): Disabling | undefined =>
  disabled_at === null || disabled_by === null
    ? undefined
    : { at: Number(disabled_at), by: disabled_by }

const eventTypesOf = (json: string | null): StoredWebhook["eventTypes"] => {
  if (json === null) return undefined
  const types: ReadonlyArray<string> = JSON.parse(json)
  return types.map(EventType)
}

/** Converts a row to a webhook, with the results of its latest attempts. */
const toWebhook = (projectId: ProjectId, row: WebhookRow): StoredWebhook & Health => ({
  id: WebhookId(row.id),
  projectId,
  url: row.url,
  secret: StoredSecret(row.secret),
  previous: previousOf(row),
  signingKey: row.signing_key === null ? undefined : StoredSecret(row.signing_key),
  eventTypes: eventTypesOf(row.event_types),
  ordered: row.ordered === true,
  rate: row.rate ?? undefined,
  description: row.description ?? undefined,
  headers: headersOf(row),
  createdAt: Number(row.created_at),
  disabled: disablingOf(row),
  failures: row.failures,
  failingSince: toMillis(row.failing_since),
})

/**
 * Returns a project's webhooks, oldest first. Returns one empty row if there are none, and no row if the
 * project does not exist.
 */
const listWebhooks = (schema: string): string => `
  SELECT ${webhookColumns}
  FROM ${schema}.projects p
  LEFT JOIN ${schema}.webhooks w ON w.project_number = p.number
  WHERE p.id = $1::text
  ORDER BY w.position
`

/** A row from `listWebhooks`. */
type ListedRow = WebhookRow | { readonly id: null }

/** Whether a row has a webhook. */
const isWebhook = (row: ListedRow): row is WebhookRow => row.id !== null

/** Returns one row with a webhook and the results of its latest attempts, if it exists. */
const findWebhook = (schema: string): string => `
  SELECT ${webhookColumns}
  FROM ${schema}.webhooks w
  WHERE w.id = $2::uuid AND ${isInProject(schema)}
`

/** Replaces a webhook's secret, and keeps the old one for a time. Returns one row if the webhook exists. */
const rotateSecret = (schema: string, idempotency: KeyClause): string => `
  WITH rotated AS (
    UPDATE ${schema}.webhooks
    SET secret = $3::text, previous_secret = secret, previous_until = $4::timestamptz
    WHERE id = $2::uuid AND ${isInProject(schema)} ${idempotency.condition}
    RETURNING project_number, id::text AS subject
  ),${auditRow(schema, "rotated", 5, "'secret_rotated'")}${idempotency.keeping("rotated", "round(extract(epoch FROM $4::timestamptz) * 1000)::bigint::text")}
  SELECT subject FROM rotated
`

/** Adds a signing key to a webhook, unless it has one. Returns the key that it has then. */
const addSigningKey = (schema: string): string => `
  WITH kept AS (
    UPDATE ${schema}.webhooks SET signing_key = coalesce(signing_key, $3::text)
    WHERE id = $2::uuid AND ${isInProject(schema)}
    RETURNING project_number, id::text AS subject, signing_key
  ),
  added AS (SELECT project_number, subject FROM kept WHERE signing_key = $3::text),
  ${auditRow(schema, "added", 4, "'signing_key_added'")}
  SELECT signing_key FROM kept
`

/** Resets a webhook's columns on a condition, as if no attempt had been made. */
const untriedIf = (condition: string): string =>
  Object.entries({
    failures: "0",
    failing_since: "NULL",
    paused_until: "NULL",
    concurrency: String(initialConcurrency),
  })
    .map(([column, value]) => `${column} = CASE WHEN ${condition} THEN ${value} ELSE ${column} END`)
    .join(", ")

/**
 * Replaces a webhook's settings, if they are as expected: `$3` to `$9` with `$10` to `$18`. `$19` has the
 * differences as JSON, or NULL. If this disables the webhook, sends its id on the channel `$20`. Returns one
 * row if the settings were as expected.
 */
const updateWebhook = (schema: string, idempotency: KeyClause): string => `
  WITH changed AS (
    UPDATE ${schema}.webhooks
    SET url = $10::text, event_types = $11::text[], rate = $13::integer, description = $14::text,
        ordered = CASE WHEN $12::boolean OR ordered IS NOT NULL THEN $12::boolean END,
        header_names = $15::text[], headers = $16::text,
        disabled_at = $17::timestamptz, disabled_by = $18::text,
        ${untriedIf("$9::text IS NOT NULL AND $18::text IS NULL")}
    WHERE id = $2::uuid AND ${isInProject(schema)}
      AND (url, event_types, ordered IS TRUE, rate, description, headers, disabled_by)
          IS NOT DISTINCT FROM ($3::text, $4::text[], $5::boolean, $6::integer, $7::text, $8::text, $9::text) ${idempotency.condition}
    RETURNING project_number, id::text AS subject
  ),${auditRow(schema, "(SELECT * FROM changed WHERE $19::text IS NOT NULL)", 21, "'webhook_changed'", "$19::text")}${idempotency.keeping("changed")}
  SELECT subject, CASE WHEN $18::text = 'request' AND $9::text IS DISTINCT FROM 'request'
                  THEN pg_notify($20::text, subject) END
  FROM changed
`

const plainParams = ({ description, eventTypes, ordered, rate, url }: WebhookSettings) => [
  textParam(url),
  listParam(eventTypes),
  flagParam(ordered),
  integerParam(rate),
  textParam(description),
]

/** The parameters for `updateWebhook` between the ids and the context. */
const updateParams = ({ changes, expected, settings }: WebhookChange, channel: string) => [
  ...plainParams(expected),
  textParam(expected.headers?.sealed),
  textParam(expected.disabled?.by),
  ...plainParams(settings),
  ...headersParams(settings.headers),
  instantParam(settings.disabled?.at),
  textParam(settings.disabled?.by),
  textParam(changes.length === 0 ? undefined : JSON.stringify(changes)),
  textParam(channel),
]

/** Enables a webhook. Returns one row if the webhook exists. */
const enableWebhook = (schema: string, idempotency: KeyClause): string => `
  WITH found AS MATERIALIZED (
    SELECT id, project_number, disabled_by FROM ${schema}.webhooks
    WHERE id = $2::uuid AND ${isInProject(schema)} ${idempotency.condition}
    -- Locked, because the audit row has what this changes.
    FOR NO KEY UPDATE
  ),
  enabled AS (
    UPDATE ${schema}.webhooks w
    SET disabled_at = NULL, disabled_by = NULL, ${untriedIf("true")}
    FROM found f
    WHERE w.id = f.id AND w.disabled_at IS NOT NULL
    RETURNING w.project_number, w.id::text AS subject,
              json_build_array(json_build_object('field', 'disabledBy', 'from', f.disabled_by, 'to', NULL))::text AS changes
  ),${auditRow(schema, "enabled", 3, "'webhook_changed'", "s.changes")}${idempotency.keeping("found")}
  SELECT id FROM found
`

/**
 * Removes a webhook, and sends its id on the channel `$3`. This cancels its deliveries, because a claim takes
 * none for a missing webhook. Claimed ones stay until their leases end: settlements lock deliveries before
 * webhooks, so changing them here could deadlock, and a claim under way would still add some. Settlements do
 * not change them, and limits do not count them. Returns one row if the webhook existed.
 */
const removeWebhook = (schema: string, idempotency: KeyClause): string => `
  WITH removed AS (
    DELETE FROM ${schema}.webhooks WHERE id = $2::uuid AND ${isInProject(schema)} ${idempotency.condition}
    RETURNING id, project_number, id::text AS subject
  ),
  counted AS (
    UPDATE ${schema}.projects SET webhook_count = webhook_count - 1
    WHERE id = $1::text AND EXISTS (SELECT FROM removed)
  ),${auditRow(schema, "removed", 4, "'webhook_deleted'")}${idempotency.keeping("removed")}
  SELECT id, pg_notify($3::text, id::text) FROM removed
`

// The secrets that sign at `$1` for webhooks `w`, and the headers.
const usedSecrets = `unnest(ARRAY[
    w.secret, CASE WHEN w.previous_until > $1::timestamptz THEN w.previous_secret END, w.signing_key, w.headers
  ]) AS s (secret)`

/** Returns sample secrets for each encryption key in use, as identified by `encryptionKeyOf` in core. */
const encryptionKeys = (schema: string): string => `
  SELECT used.key, sample.webhook_id, sample.project_id, sample.secret
  FROM (
    SELECT DISTINCT substring(s.secret FROM '^enc_([A-Za-z0-9-]{1,32})_') AS key
    FROM ${schema}.webhooks w CROSS JOIN LATERAL ${usedSecrets}
    WHERE s.secret ~ '^enc_[A-Za-z0-9-]{1,32}_' AND length(s.secret) <= ${maxSampleLength}
    LIMIT ${maxKeyUses}
  ) used
  CROSS JOIN LATERAL (
    SELECT w.id AS webhook_id, p.id AS project_id, s.secret
    FROM ${schema}.webhooks w
    JOIN ${schema}.projects p ON p.number = w.project_number
    CROSS JOIN LATERAL ${usedSecrets}
    WHERE starts_with(s.secret, 'enc_' || used.key || '_') AND length(s.secret) <= ${maxSampleLength}
    LIMIT ${maxKeySamples}
  ) sample
`

/** A row from `encryptionKeys`. */
interface KeyUseRow {
  readonly key: string
  readonly webhook_id: string
  readonly project_id: string
  readonly secret: string
}

/** Groups the samples by key. */
const toKeyUses = (rows: ReadonlyArray<KeyUseRow>): ReadonlyArray<KeyUse> =>
  [...new Set(rows.map(({ key }) => key))].map((keyId) => ({
    keyId,
    samples: rows.flatMap(({ key, project_id: projectId, secret, webhook_id: webhookId }) =>
      key === keyId && ProjectId.is(projectId)
        ? [{ projectId, webhookId: WebhookId(webhookId), secret: StoredSecret(secret) }]
        : [],
    ),
  }))

/** Makes the webhook store. */
export const makePostgresWebhookStore = (
  executor: Executor,
  notifications: Notifications,
  idempotencyStore: IdempotencyStore,
): WebhookStore["Service"] => {
  const { schema } = executor
  const sql = {
    add: withAndWithoutKey(schema, addWebhook, 15),
    list: listWebhooks(schema),
    find: findWebhook(schema),
    encryptionKeys: encryptionKeys(schema),
    rotateSecret: withAndWithoutKey(schema, rotateSecret, 7),
    addSigningKey: addSigningKey(schema),
    update: withAndWithoutKey(schema, updateWebhook, 23),
    enable: withAndWithoutKey(schema, enableWebhook, 5),
    remove: withAndWithoutKey(schema, removeWebhook, 6),
  }

  // Deliveries may have waited for a webhook to be enabled.
  const notifyAfterCommit = executor.afterCommit(notifications.notify)

  const add = Effect.fnUntraced(function* (
    webhook: StoredWebhook,
    limit: number,
    context: ChangeContext,
  ) {
    const { projectId } = webhook
    const form = pickForm(sql.add, addWebhookParams(webhook, limit, context), context.idempotency)
    const [row] = yield* executor.execute<AddedRow>(...form, { owner: projectId })
    if (row?.added === true) return undefined
    return yield* row?.project_exists === true
      ? new WebhookLimitReached({ limit })
      : new ProjectNotFound({ projectId })
  })

  /**
   * Changes an existing webhook, with a statement that returns a row if it exists.
   *
   * @param further - the parameters between the ids and the context
   */
  const change = (
    statement: StatementForms,
    { projectId, webhookId }: WebhookRef,
    further: ReadonlyArray<unknown>,
    context: ChangeContext,
  ) => {
    const params = [
      textParam(projectId),
      uuidParam(webhookId),
      ...further,
      ...changeContextParams(context),
    ]
    const form = pickForm(statement, params, context.idempotency)
    return idempotencyStore.change(
      context.idempotency,
      Effect.flatMap(executor.execute(...form, { owner: projectId }), (rows) =>
        rows.length === 0 ? Effect.fail(new WebhookNotFound({ webhookId })) : Effect.void,
      ),
    )
  }

  return {
    ping: executor.ping,

    encryptionKeys: (now) =>
      Effect.map(
        executor.executeApart<KeyUseRow>(sql.encryptionKeys, [instantParam(now)], {
          owner: "webhooks",
          isLong: true,
        }),
        toKeyUses,
      ),

    add: (webhook, limit, context) =>
      idempotencyStore.change(context.idempotency, add(webhook, limit, context)),

    list: Effect.fnUntraced(function* (projectId) {
      const rows = yield* executor.execute<ListedRow>(sql.list, [textParam(projectId)], {
        owner: readsOf(projectId),
      })
      if (rows.length === 0) return yield* new ProjectNotFound({ projectId })
      return rows.filter(isWebhook).map((row) => toWebhook(projectId, row))
    }),

    find: Effect.fnUntraced(function* (projectId, webhookId) {
      const params = [textParam(projectId), uuidParam(webhookId)]
      const [row] = yield* executor.execute<WebhookRow>(sql.find, params, {
        owner: readsOf(projectId),
      })
      return row === undefined
        ? yield* new WebhookNotFound({ webhookId })
        : toWebhook(projectId, row)
    }),

    rotateSecret: (projectId, webhookId, { previousUntil, secret }, context) =>
      change(
        sql.rotateSecret,
        { projectId, webhookId },
        [textParam(secret), instantParam(previousUntil)],
        context,
      ),

    addSigningKey: Effect.fnUntraced(function* (projectId, webhookId, key, context) {
      const params = [
        textParam(projectId),
        uuidParam(webhookId),
        textParam(key),
        ...changeContextParams(context),
      ]
      const [row] = yield* executor.execute<{ readonly signing_key: string }>(
        sql.addSigningKey,
        params,
        { owner: projectId },
      )
      return row === undefined
        ? yield* new WebhookNotFound({ webhookId })
        : StoredSecret(row.signing_key)
    }),

    update: ({ projectId, webhookId }, changed, context) => {
      const params = [
        textParam(projectId),
        uuidParam(webhookId),
        ...updateParams(changed, notifications.channel),
        ...changeContextParams(context),
      ]
      const form = pickForm(sql.update, params, context.idempotency)
      return idempotencyStore.change(
        context.idempotency,
        Effect.flatMap(executor.execute(...form, { owner: projectId }), (rows) => {
          if (rows.length === 0) return Effect.fail(new WebhookConflict())
          return changed.settings.disabled === undefined ? notifyAfterCommit : Effect.void
        }),
      )
    },

    enable: (projectId, webhookId, context) =>
      Effect.tap(
        change(sql.enable, { projectId, webhookId }, [], context),
        () => notifyAfterCommit,
      ),

    remove: (projectId, webhookId, context) =>
      change(sql.remove, { projectId, webhookId }, [textParam(notifications.channel)], context),
  }
}
