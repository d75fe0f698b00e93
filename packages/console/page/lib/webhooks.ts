/** Webhooks in words. */

import type { WebhookHealth } from "@tenure/client"

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

/** Describes the webhook's event types in words. */
export const typesOf = (types: ReadonlyArray<string> | null): string =>
  types === null ? "all types" : types.join(", ")
