/** Webhooks in words. */

import type { EventsPreview, WebhookHealth } from "@tenure/client"

/** Returns the host in a webhook's URL, and the rest after it. */
export const partsOf = (url: string): { readonly host: string; readonly rest: string } => {
  try {
    const { hash, host, pathname, search } = new URL(url)
    const rest = `${pathname}${search}${hash}`
    return { host, rest: rest === "/" ? "" : rest }
  } catch {
    return { host: url, rest: "" }
  }
}

/** Describes a webhook's state in a word. */
export const stateOf = ({
  disabled_at,
  failing_since,
}: Pick<WebhookHealth, "disabled_at" | "failing_since">): "disabled" | "enabled" | "failing" => {
  if (disabled_at !== null) return "disabled"
  return failing_since === null ? "enabled" : "failing"
}

/** Describes the webhooks of a dry run in a sentence. */
export const previewOf = (events: EventsPreview | undefined): string => {
  if (events === undefined) return ""
  if (events.total === 0) return " No webhook would be sent."
  const types = Object.entries(events.by_type).map(([type, count]) =>
    count === events.total ? type : `${count.toLocaleString("en")} × ${type}`,
  )
  return ` ${events.total.toLocaleString("en")} webhook${events.total === 1 ? "" : "s"} would be sent: ${types.join(", ")}.`
}

/** Reads event types that are separated by commas. */
export const listOf = (text: string): ReadonlyArray<string> => text.split(/[\s,]+/).filter(Boolean)

/** Describes the webhook's event types in words. */
export const typesOf = (types: ReadonlyArray<string> | null): string =>
  types === null ? "all types" : types.join(", ")
