/** A webhook's settings, which an operator can change. */

import type { FieldChange } from "../base/change-context.ts"
import * as Setting from "../base/setting.ts"
import type { EventType } from "../events/event.ts"
import type { Disabling, StoredHeaders, StoredWebhook } from "./webhook.ts"

/** A webhook's settings. */
export interface WebhookSettings extends Pick<
  StoredWebhook,
  "url" | "eventTypes" | "ordered" | "rate" | "description" | "disabled" | "headers"
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

/** A change. Settings stay as they are if `undefined`. */
export interface WebhookPatch {
  readonly url: string | undefined
  readonly eventTypes: ReadonlyArray<EventType> | null | undefined
  readonly ordered: boolean | undefined
  readonly rate: number | null | undefined
  readonly description: string | null | undefined
  readonly headers: StoredHeaders | null | undefined
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

/** Settings for the audit trail. A hidden part tells whether secret values differ. */
const auditedSettings = ({
  description,
  disabled,
  eventTypes,
  headers,
  ordered,
  rate,
  url,
}: WebhookSettings): ReadonlyArray<
  readonly [field: string, shown: FieldChange["to"], hidden?: string | undefined]
> => [
  ["url", url],
  ["eventTypes", eventTypes ?? null],
  ["ordered", ordered],
  ["rate", rate ?? null],
  ["description", description ?? null],
  ["headers", headers?.names ?? null, headers?.sealed],
  ["disabledBy", disabled?.by ?? null],
]

/** Compares settings, for the audit trail. */
export const settingChanges = (
  before: WebhookSettings,
  after: WebhookSettings,
): ReadonlyArray<FieldChange> => {
  const now = new Map(auditedSettings(after).map((one) => [one[0], one]))
  return auditedSettings(before).flatMap((old) => {
    const [field, from] = old
    const one = now.get(field) ?? old
    return JSON.stringify(old) === JSON.stringify(one) ? [] : [{ field, from, to: one[1] }]
  })
}

/** Tells whether a change stops a webhook, so its attempts in flight must be aborted. */
export const isStopping = (before: WebhookSettings, after: WebhookSettings): boolean =>
  after.disabled?.by === "request" && before.disabled?.by !== "request"
