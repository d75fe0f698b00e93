/** The latest attempt of a webhook, and what needs somebody about it. */

import type { LastAttempt, WebhookNeedingAttention } from "@tenure/client"
import type { ComponentChildren } from "preact"
import { to } from "../lib/route.ts"
import type { Need } from "./attention.tsx"
import { Ago, State } from "./text.tsx"

// The maximum for counts.
const maxWaiting = 10_000

/** Prints a count of deliveries up to 10,000. */
export const waitingOf = (waiting: number): string =>
  waiting >= maxWaiting ? "10,000+" : waiting.toLocaleString("en")

/** A result, such as `HTTP 500`, or the code of an error. */
export const resultOf = (attempt: {
  readonly status: number | null
  readonly error: string | null
}) => (attempt.status === null ? (attempt.error ?? "no response") : `HTTP ${attempt.status}`)

/** Whether the receiver has taken the event. */
const isTaken = ({ status }: LastAttempt): boolean =>
  status !== null && status >= 200 && status < 300

/** When the latest attempt was, and its result. */
export const Latest = ({ of }: { readonly of: LastAttempt | null }) =>
  of === null ? (
    <span class="dim">no attempt</span>
  ) : (
    <>
      <span class={isTaken(of) ? undefined : "bad"}>{resultOf(of)}</span>{" "}
      <span class="dim">
        · <Ago iso={of.at} />
      </span>
    </>
  )

const reasons = {
  unreadable_secret: "unreadable secret",
  failing: "failing",
  disabled: "disabled",
}

/** A webhook in the list of problems. */
export const webhookNeed = (
  of: Omit<WebhookNeedingAttention, "url_host">,
  name: ComponentChildren,
  button: ComponentChildren,
): Need => ({
  key: of.id,
  what: (
    <a data-row href={to("projects", of.project_id, "webhooks", of.id)}>
      {name}
    </a>
  ),
  why: (
    <>
      <State of={reasons[of.reason]} /> <span class="dim">·</span> <Latest of={of.last_attempt} />
    </>
  ),
  since: (
    <>
      since <Ago iso={of.since} />
    </>
  ),
  waits: of.waiting > 0 && `${waitingOf(of.waiting)} wait`,
  button,
})
