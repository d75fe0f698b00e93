/** A webhook's latest attempt, and its problem if it has one. */

import type { LastAttempt, WebhookNeedingAttention } from "@tenure/client"
import type { ComponentChildren } from "preact"
import { api } from "../lib/api.ts"
import { useMay } from "../lib/identity.ts"
import { to } from "../lib/route.ts"
import { Action } from "./action.tsx"
import type { Need } from "./attention.tsx"
import { Ago, State, cappedOf } from "./text.tsx"

/** Returns a result, such as `HTTP 500`, or an error's code. */
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

/** Enables a disabled webhook. */
export const Enable = (props: {
  readonly webhook: { readonly project_id: string; readonly webhook_id: string }
  readonly onDone: () => void
}) => (
  <Action
    label="Enable"
    title="Enable this webhook?"
    isMain
    run={async () => {
      await api.webhooks.enable(props.webhook)
      return { message: "The webhook is enabled." }
    }}
    onDone={props.onDone}
  >
    <p>
      What waits is sent, and events from now on. Those it has missed are sent only by a replay.
    </p>
  </Action>
)

type Failing = Omit<WebhookNeedingAttention, "description" | "url_host">

/** Enables the webhook, or leads to its page. */
const NeedButton = ({ of, onDone }: { readonly of: Failing; readonly onDone: () => void }) => {
  const { id, project_id, reason } = of
  const mayEnable = useMay("operator")
  return reason === "disabled" && mayEnable ? (
    <Enable webhook={{ project_id, webhook_id: id }} onDone={onDone} />
  ) : (
    <a class="button" href={to("projects", project_id, "webhooks", id)}>
      See why
    </a>
  )
}

/** A webhook in the problem list. */
export const webhookNeed = (of: Failing, name: ComponentChildren, onDone: () => void): Need => ({
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
  waits: of.waiting > 0 && `${cappedOf(of.waiting)} wait`,
  button: <NeedButton of={of} onDone={onDone} />,
})
