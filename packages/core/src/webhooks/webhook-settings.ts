/** A webhook's settings, which an operator can change. */

import * as Struct from "effect/Struct"
import type { FieldChange } from "../base/change-context.ts"
import * as Setting from "../base/setting.ts"
import type { Disabling, StoredWebhook } from "./webhook.ts"

/** A webhook's settings: all that a store keeps of it, besides its ids, its secrets and its age. */
export interface WebhookSettings extends Omit<
  StoredWebhook,
  "id" | "projectId" | "secret" | "previous" | "signingKey" | "createdAt"
> {}

/** The maximum length of a description, in characters. */
const maxDescriptionLength = 200

// One line. A lone surrogate has no UTF-8 encoding.
const oneLine = /^[^\p{Cc}\p{Cs}]+$/u

const isDescription = (text: string): boolean =>
  oneLine.test(text) && [...text].length <= maxDescriptionLength

/** A webhook's description. */
export const descriptionSetting = Setting.inJson(
  Setting.string(
    `1 to ${maxDescriptionLength} characters without control characters`,
    isDescription,
  ),
  { type: "string", minLength: 1, maxLength: maxDescriptionLength },
)

/** The maximum rate, in attempts per second. */
const maxRate = 10_000

/** A webhook's rate. `null` stands for no limit. */
export const rateSetting = Setting.optional(Setting.orNull(Setting.integer({ most: maxRate })))

type Patch<Settings> = {
  readonly [Name in keyof Settings]:
    | Settings[Name]
    | (undefined extends Settings[Name] ? null : never)
    | undefined
}

/** A change. Settings stay as they are if `undefined`, and optional ones are removed by `null`. */
export interface WebhookPatch extends Patch<Omit<WebhookSettings, "disabled">> {
  readonly disabled: boolean | undefined
}

/** Returns the new value: the one before if none is given, none if it is `null`. */
const replaced = <A>(before: A | undefined, given: A | null | undefined): A | undefined =>
  given === undefined ? before : (given ?? undefined)

/** An operator takes over a webhook disabled because of failures by disabling it again. */
const disabledAfter = (
  before: Disabling | undefined,
  isDisabled: boolean | undefined,
  at: number,
): Disabling | undefined => {
  if (isDisabled === undefined) return before
  return isDisabled ? { at: before?.at ?? at, by: "request" } : undefined
}

/**
 * Changes settings.
 *
 * @param at - the time of the change, in milliseconds since the epoch
 */
export const applyWebhookPatch = (
  before: WebhookSettings,
  patch: WebhookPatch,
  at: number,
): WebhookSettings => ({
  url: patch.url ?? before.url,
  eventTypes: replaced(before.eventTypes, patch.eventTypes),
  ordered: patch.ordered ?? before.ordered,
  rate: replaced(before.rate, patch.rate),
  description: replaced(before.description, patch.description),
  headers: replaced(before.headers, patch.headers),
  disabled: disabledAfter(before.disabled, patch.disabled, at),
})

/** A setting in the audit trail. The hidden part tells whether secret values differ. */
interface AuditedSetting {
  readonly field: string
  readonly shown: FieldChange["to"]
  readonly hidden?: string | undefined
}

/** Returns the settings for the audit trail. One that is left out does not compile: stores compare settings by it, too. */
const auditedSettings = ({
  description,
  disabled,
  eventTypes,
  headers,
  ordered,
  rate,
  url,
}: WebhookSettings): Readonly<Record<keyof WebhookSettings, AuditedSetting>> => ({
  url: { field: "url", shown: url },
  eventTypes: { field: "eventTypes", shown: eventTypes ?? null },
  ordered: { field: "ordered", shown: ordered },
  rate: { field: "rate", shown: rate ?? null },
  description: { field: "description", shown: description ?? null },
  headers: { field: "headers", shown: headers?.names ?? null, hidden: headers?.sealed },
  disabled: { field: "disabledBy", shown: disabled?.by ?? null },
})

/** Compares settings, for the audit trail. */
export const settingChanges = (
  before: WebhookSettings,
  after: WebhookSettings,
): ReadonlyArray<FieldChange> => {
  const [from, to] = [auditedSettings(before), auditedSettings(after)]
  return Struct.keys(from).flatMap((name) =>
    JSON.stringify(from[name]) === JSON.stringify(to[name])
      ? []
      : [{ field: from[name].field, from: from[name].shown, to: to[name].shown }],
  )
}

/** Tells whether a change stops a webhook, so its attempts in flight must be aborted. */
export const isStopping = (before: WebhookSettings, after: WebhookSettings): boolean =>
  after.disabled?.by === "request" && before.disabled?.by !== "request"
