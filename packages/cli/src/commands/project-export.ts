/**
 * The records in an exported project beside its members, one per line: the project, its bulk extensions
 * and its webhooks without secrets.
 */

import type { BulkExtensionRecord, WebhookHealth } from "@tenure/client"
import { graceSetting } from "@tenure/core/internal"
import { ProjectId, TimeZone, parseTimeZone } from "@tenure/core/store"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { parseDate } from "../support/flags.ts"

/** The exported project. */
export interface ExportedProject {
  readonly record: "project"
  readonly project_id: string
  /** When the export began: a time in UTC. */
  readonly exported_at: string
  /** `undefined` in files of earlier versions. */
  readonly time_zone: string | undefined
  /** A duration; `null` for none, and `undefined` in files of earlier versions. */
  readonly grace: string | null | undefined
}

/** A bulk extension. Members' end dates include extensions from before the export. */
export interface ExportedBulkExtension {
  readonly record: "bulk_extension"
  readonly at: string
  readonly mode: string
  readonly end_date: string | null
  readonly extend_by: string | null
  readonly reason: string | null
  readonly total: number
  readonly undone_at: string | null
}

/** A webhook. */
export interface ExportedWebhook {
  readonly record: "webhook"
  readonly url: string
  /** `null` for all. */
  readonly event_types: ReadonlyArray<string> | null
  readonly ordered: boolean
  /** `null` without a limit. */
  readonly rate: number | null
  readonly description: string | null
  readonly disabled_at: string | null
  /** Its own headers' names. The values are secret. */
  readonly header_names: ReadonlyArray<string>
}

/** A webhook as read back. Headers without values cannot be sent. */
export type ReadWebhook = Omit<ExportedWebhook, "header_names">

/** A line in an exported project, other than a member. Bulk extensions are only counted. */
export type ExportRecord = ExportedProject | Pick<ExportedBulkExtension, "record"> | ReadWebhook

/** Returns a bulk extension as it is exported. */
export const exportBulkExtension = ({
  at,
  end_date,
  extend_by,
  mode,
  reason,
  total,
  undone_at,
}: BulkExtensionRecord): ExportedBulkExtension => ({
  record: "bulk_extension",
  at,
  mode,
  end_date,
  extend_by,
  reason,
  total,
  undone_at,
})

/** Returns a webhook as it is exported. */
export const exportWebhook = ({
  description,
  disabled_at,
  event_types,
  header_names,
  ordered,
  rate,
  url,
}: WebhookHealth): ExportedWebhook => ({
  record: "webhook",
  url,
  event_types,
  ordered,
  rate,
  description,
  disabled_at,
  header_names,
})

const isText = (given: unknown): given is string => typeof given === "string"

const areTexts = (given: unknown): given is ReadonlyArray<string> =>
  Array.isArray(given) && given.every(isText)

const isGrace = (given: unknown): given is string | null | undefined =>
  given === undefined || Result.isSuccess(graceSetting.read(given, "grace"))

/** Reads the project. */
const readProject = ({
  exported_at,
  grace,
  project_id,
  time_zone,
}: Given): ExportedProject | string => {
  const at = isText(exported_at) ? parseDate(exported_at) : undefined
  if (!isText(project_id) || !ProjectId.is(project_id))
    return `project_id must be ${ProjectId.expected}`
  if (at === undefined) return "exported_at must be a time such as 2027-01-31T12:00:00.000Z"
  const zone = isText(time_zone) ? parseTimeZone(time_zone) : undefined
  if (time_zone !== undefined && zone === undefined) return `time_zone must be ${TimeZone.expected}`
  if (!isGrace(grace)) return `grace must be ${graceSetting.expected}`
  return { record: "project", project_id, exported_at: at, time_zone: zone, grace }
}

const readBulkExtension = ({ at, mode }: Given): ExportRecord | string =>
  isText(at) && isText(mode) ? { record: "bulk_extension" } : "at and mode must be text"

const readWebhook = ({
  description,
  disabled_at,
  event_types,
  ordered,
  rate,
  url,
}: Given): ReadWebhook | string => {
  if (!isText(url)) return "url must be text"
  const types = event_types ?? null
  if (types !== null && !areTexts(types)) return "event_types must be an array of texts, or null"
  return {
    record: "webhook",
    url,
    event_types: types,
    ordered: ordered === true,
    rate: typeof rate === "number" ? rate : null,
    description: isText(description) ? description : null,
    disabled_at: isText(disabled_at) ? disabled_at : null,
  }
}

interface Given {
  readonly record?: unknown
  readonly project_id?: unknown
  readonly exported_at?: unknown
  readonly time_zone?: unknown
  readonly grace?: unknown
  readonly at?: unknown
  readonly mode?: unknown
  readonly url?: unknown
  readonly event_types?: unknown
  readonly ordered?: unknown
  readonly rate?: unknown
  readonly description?: unknown
  readonly disabled_at?: unknown
}

/** Tells whether a line is meant as a record, right or wrong. */
export const isRecordLine = (given: unknown): given is { readonly record: unknown } =>
  Predicate.hasProperty(given, "record") && !Predicate.hasProperty(given, "user_id")

/** Reads a record. Returns a text for a wrong record, and `undefined` for a member. */
export const readRecord = (given: object): ExportRecord | string | undefined => {
  if (!isRecordLine(given)) return undefined
  const fields: Given = given
  switch (fields.record) {
    case "project":
      return readProject(fields)
    case "bulk_extension":
      return readBulkExtension(fields)
    case "webhook":
      return readWebhook(fields)
    default:
      return "the record must be a project, a bulk_extension or a webhook"
  }
}
