/** A webhook: its health, its deliveries, and actions on it. */

import type { Delivery, WebhookHealth } from "@tenure/client"
import { useState } from "preact/hooks"
import { api } from "../lib/api.ts"
import { useMay, useSees } from "../lib/identity.ts"
import { go, to } from "../lib/route.ts"
import { Action } from "../parts/action.tsx"
import { DeliveryRow } from "../parts/deliveries.tsx"
import { DateField, requiredDateOf } from "../parts/fields.tsx"
import { Loaded, Paged, useLoad, usePages } from "../parts/load.tsx"
import { ProjectScreen } from "../parts/screen.tsx"
import { Hidden } from "../parts/sensitive.tsx"
import { Ago, Facts, State, Time, amountOf } from "../parts/text.tsx"
import { stateOf, typesOf } from "./webhooks.tsx"

interface Of {
  readonly project_id: string
  readonly webhook_id: string
}

interface Props {
  readonly webhook: Of
  readonly onDone: () => void
}

/** Sends an event to a webhook again. */
export const SendAgain = ({ event, onDone, webhook }: Props & { readonly event: string }) => (
  <Action
    label="Send again"
    isSmall
    title="Send the event again?"
    run={async () => {
      await api.webhooks.replay({ ...webhook, event_id: event })
      return { message: "The event is sent again." }
    }}
    onDone={onDone}
  />
)

const Ping = ({ onDone, webhook }: Props) => (
  <Action
    label="Ping"
    title="Send a ping to this webhook?"
    run={async () => {
      await api.webhooks.ping(webhook)
      return { message: "The ping is on its way." }
    }}
    onDone={onDone}
  >
    <p>It gets the event webhook.ping, signed like all others.</p>
  </Action>
)

const Enable = ({ onDone, webhook }: Props) => (
  <Action
    label="Enable"
    title="Enable this webhook?"
    run={async () => {
      await api.webhooks.enable(webhook)
      return { message: "The webhook is enabled." }
    }}
    onDone={onDone}
  >
    <p>It gets events from now on. Those it has missed are sent only by a replay.</p>
  </Action>
)

const Replay = ({ onDone, webhook }: Props) => (
  <Action
    label="Replay"
    title="Send what has failed again"
    confirm="Replay"
    run={async (fields) => {
      const { data } = await api.webhooks.replay({
        ...webhook,
        since: requiredDateOf(fields, "since"),
      })
      return { message: `Sent again: ${amountOf(data.replayed, "event")}.` }
    }}
    onDone={onDone}
  >
    <p>
      All events since this time whose delivery has failed. Those that wait are sent when their next
      attempt is due.
    </p>
    <DateField label="Since" name="since" />
  </Action>
)

const Rotate = ({ onDone, webhook }: Props) => (
  <Action
    label="Rotate the secret"
    title="Replace the secret of this webhook?"
    run={async () => {
      const { data } = await api.webhooks.rotate(webhook)
      return {
        message: `This is the new secret. The previous one also signs until ${data.previous_until}.`,
        once: data.secret,
      }
    }}
    onDone={onDone}
  />
)

const Delete = ({ webhook }: { readonly webhook: Of }) => (
  <Action
    label="Delete"
    title="Delete this webhook?"
    confirm="Delete the webhook"
    isDangerous
    run={async () => {
      await api.webhooks.delete(webhook)
      return { message: "The webhook was deleted." }
    }}
    onDone={() => go("projects", webhook.project_id, "webhooks")}
  />
)

const Since = ({ iso }: { readonly iso: string | null }) =>
  iso === null ? (
    <span class="dim">–</span>
  ) : (
    <>
      <Time iso={iso} />{" "}
      <span class="dim">
        <Ago iso={iso} />
      </span>
    </>
  )

const Details = ({
  of,
  turn,
  webhook,
}: {
  readonly of: WebhookHealth
  readonly webhook: Of
  /** Another one after each change. */
  readonly turn: number
}) => (
  <Facts
    of={[
      ["URL", <span class="long">{of.url}</span>],
      ["State", <State of={stateOf(of)} />],
      ...(of.disabled_at === null ? [] : [["Disabled", <Since iso={of.disabled_at} />] as const]),
      ["Failing since", <Since iso={of.failing_since} />],
      ["Failures in a row", of.failures],
      ["Types of events", typesOf(of.event_types)],
      ["Created", <Since iso={of.created_at} />],
      ["Id", <code>{of.id}</code>],
      [
        "Secret",
        <Hidden
          key={turn}
          what="the secret"
          load={async (signal) => (await api.webhooks.get(webhook, { signal })).data}
        >
          {({ secret }) => <code class="once">{secret}</code>}
        </Hidden>,
      ],
    ]}
  />
)

const states = ["waiting", "delivered", "failed", "cancelled"] as const

const isState = (given: string): given is Delivery["state"] =>
  states.some((state) => state === given)

const Deliveries = ({ turn, webhook }: { readonly webhook: Of; readonly turn: number }) => {
  const [state, setState] = useState<Delivery["state"] | undefined>()
  const deliveries = usePages(
    (after, signal) => api.webhooks.deliveries({ ...webhook, after, state, limit: 50 }, { signal }),
    `${state} ${turn}`,
  )
  const mayReplay = useMay("operator")
  return (
    <>
      <div class="head">
        <h2>Deliveries</h2>
        <div class="filters">
          <label>
            State{" "}
            <select
              value={state ?? ""}
              onChange={({ currentTarget: { value } }) =>
                setState(isState(value) ? value : undefined)
              }
            >
              <option value="">all</option>
              {states.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
          <button type="button" onClick={deliveries.page.reload}>
            Refresh
          </button>
        </div>
      </div>
      <Paged of={deliveries}>
        {(data) =>
          data.length === 0 ? (
            <p class="dim">Nothing was sent.</p>
          ) : (
            <ul class="rows">
              {data.map((delivery) => (
                <DeliveryRow
                  key={delivery.event_id}
                  delivery={delivery}
                  name={delivery.type}
                  of={{ ...webhook, event_id: delivery.event_id }}
                >
                  <div class="buttons">
                    <a href={to("projects", webhook.project_id, "events", delivery.event_id)}>
                      The event
                    </a>
                    {mayReplay && delivery.state !== "cancelled" && (
                      <SendAgain
                        webhook={webhook}
                        event={delivery.event_id}
                        onDone={deliveries.page.reload}
                      />
                    )}
                  </div>
                </DeliveryRow>
              ))}
            </ul>
          )
        }
      </Paged>
    </>
  )
}

/** Finds a webhook in its project's list, because requesting it alone would disclose its secret. */
const find = async (
  { project_id, webhook_id }: Of,
  signal: AbortSignal,
): Promise<WebhookHealth> => {
  const { data } = await api.webhooks.health({ project_id }, { signal })
  const found = data.find(({ id }) => id === webhook_id)
  if (found === undefined) throw new Error(`There is no webhook "${webhook_id}".`)
  return found
}

/** A webhook. */
export const WebhookScreen = ({
  id,
  project,
}: {
  readonly project: string
  readonly id: string
}) => {
  const webhook = { project_id: project, webhook_id: id }
  const found = useLoad((signal) => find(webhook, signal))
  const [changes, setChanges] = useState(0)
  const mayDelete = useMay("client")
  const mayRepair = useMay("operator")
  const maySee = useSees("operator")
  const { value } = found
  const props: Props = {
    webhook,
    onDone: () => {
      found.reload()
      setChanges((before) => before + 1)
    },
  }
  return (
    <ProjectScreen
      project={project}
      tab="webhooks"
      title="Webhook"
      actions={
        <>
          {mayRepair && value && (
            <>
              {value.disabled_at !== null && <Enable {...props} />}
              <Ping {...props} />
              <Replay {...props} />
              <Rotate {...props} />
            </>
          )}
          {mayDelete && value && <Delete webhook={webhook} />}
        </>
      }
    >
      <Loaded from={found}>{(of) => <Details of={of} webhook={webhook} turn={changes} />}</Loaded>
      {maySee && value && <Deliveries webhook={webhook} turn={changes} />}
    </ProjectScreen>
  )
}
