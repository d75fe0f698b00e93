/** A webhook: its health, its deliveries, and actions on it. */

import type { Delivery, WebhookHealth } from "@tenure/client"
import { useState } from "preact/hooks"
import { api } from "../lib/api.ts"
import { now } from "../lib/clock.ts"
import { useMay, useSees } from "../lib/identity.ts"
import { go, to } from "../lib/route.ts"
import { listOf, partsOf, stateOf, typesOf } from "../lib/webhooks.ts"
import { Action, givenOf, textOf } from "../parts/action.tsx"
import { LastDay } from "../parts/activity.tsx"
import { Deliveries, wordOf } from "../parts/deliveries.tsx"
import { DateField, Field, WebhookFields, limitsOf, dateOf } from "../parts/fields.tsx"
import { Enable, Latest } from "../parts/latest.tsx"
import { Loaded, Paged, useLoad, usePages } from "../parts/load.tsx"
import { ProjectScreen, ShortId } from "../parts/screen.tsx"
import { Hidden } from "../parts/sensitive.tsx"
import { Ago, Facts, State, Time, amountOf, cappedOf } from "../parts/text.tsx"

// How often its state is asked for, in milliseconds.
const interval = 20_000

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

/** Kinds of undelivered events. */
const replayParts = ["missed", "failed"] as const

const Replay = ({ onDone, webhook }: Props) => {
  const replay = (fields: FormData, dry_run: boolean) =>
    api.webhooks.replayMany({
      ...webhook,
      since: dateOf(fields, "since") ?? "",
      only: replayParts.find((part) => part === fields.get("only")),
      dry_run,
    })
  return (
    <Action
      label="Replay"
      title="Send what this webhook did not get"
      confirm="Replay"
      mustCheck
      check={async (fields) =>
        `Would be sent again: ${amountOf(await replay(fields, true), "event")}.`
      }
      run={async (fields) => ({
        message: `Sent again: ${amountOf(await replay(fields, false), "event")}.`,
      })}
      onDone={onDone}
    >
      <p>
        Events since this time that are kept, after all others that are due. Those that wait are
        sent when their next attempt is due.
      </p>
      <DateField label="Since" name="since" isPlain />
      <Field label="Which">
        <select name="only">
          <option value="">missed or failed</option>
          <option value="missed">missed: never sent to this webhook</option>
          <option value="failed">failed: given up</option>
        </select>
      </Field>
    </Action>
  )
}

/** Returns the edited settings. Omits others, because somebody else may change them meanwhile. */
const editedOf = (fields: FormData, of: WebhookHealth) => {
  const url = textOf(fields, "url")
  const types = listOf(textOf(fields, "types"))
  const event_types = types.length === 0 ? null : types
  const description = givenOf(fields, "description") ?? null
  const { ordered, rate } = limitsOf(fields)
  return {
    ...(url !== of.url && { url }),
    ...(typesOf(event_types) !== typesOf(of.event_types) && { event_types }),
    ...(description !== of.description && { description }),
    ...(ordered !== of.ordered && { ordered }),
    ...(rate !== of.rate && { rate }),
  }
}

const Edit = ({ of, onDone, webhook }: Props & { readonly of: WebhookHealth }) => (
  <Action
    label="Edit"
    title="Edit this webhook"
    confirm="Save"
    run={async (fields) => {
      const edited = editedOf(fields, of)
      if (Object.keys(edited).length === 0) return { message: "Nothing was edited." }
      await api.webhooks.update({ ...webhook, ...edited })
      return { message: "The webhook was changed." }
    }}
    onDone={onDone}
  >
    <WebhookFields of={of} />
  </Action>
)

const Disable = ({ onDone, webhook }: Props) => (
  <Action
    label="Disable"
    title="Disable this webhook?"
    isDangerous
    run={async () => {
      await api.webhooks.update({ ...webhook, disabled: true })
      return { message: "The webhook is disabled." }
    }}
    onDone={onDone}
  >
    <p>
      Nothing is sent until it is enabled. What waits stays waiting; events from now on are not for
      it.
    </p>
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
        shownOnce: data.secret,
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

const Side = (props: {
  readonly of: WebhookHealth
  readonly webhook: Of
  /** Another one after each change. */
  readonly turn: number
}) => {
  const { of, turn, webhook } = props
  return (
    <aside aria-label="About this webhook">
      <Facts
        of={[
          ["URL", <span class="long">{of.url}</span>],
          ...(of.description === null ? [] : [["Description", of.description] as const]),
          ["Types of events", typesOf(of.event_types)],
          ...(of.ordered ? [["Order", "a member's events one by one"] as const] : []),
          ...(of.rate === null ? [] : [["Attempts a second", `at most ${of.rate}`] as const]),
          ...(of.header_names.length === 0
            ? []
            : [["Own headers", of.header_names.join(", ")] as const]),
          [
            "Created (UTC)",
            <>
              <Time iso={of.created_at} />{" "}
              <span class="dim">
                <Ago iso={of.created_at} />
              </span>
            </>,
          ],
          ["Id", <ShortId id={of.id} />],
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
    </aside>
  )
}

const states = ["waiting", "delivered", "failed", "cancelled"] as const

const Sent = ({ turn, webhook }: { readonly webhook: Of; readonly turn: number }) => {
  const [state, setState] = useState<Delivery["state"] | undefined>()
  const deliveries = usePages(
    (after, signal) =>
      api.webhooks.deliveries(
        // A webhook without attempts has no latest attempt.
        {
          ...webhook,
          after,
          state,
          limit: 50,
          order: state === "waiting" ? "created" : "latest_attempt",
        },
        { signal },
      ),
    `${state} ${turn}`,
    true,
  )
  const mayReplay = useMay("operator")
  return (
    <>
      <h2>Deliveries</h2>
      <div class="filters">
        {[undefined, ...states].map((one) => (
          <button
            key={one ?? ""}
            type="button"
            class="chip"
            aria-pressed={one === state}
            onClick={() => setState(one)}
          >
            {one === undefined ? "All" : wordOf(one).replace(/^./, (first) => first.toUpperCase())}
          </button>
        ))}
        <button type="button" class="end" onClick={deliveries.page.reload}>
          Refresh
        </button>
      </div>
      <Paged of={deliveries}>
        {(data) =>
          data.length === 0 ? (
            <p class="dim">
              {state === undefined ? "No attempt was made yet." : "There are none."}
            </p>
          ) : (
            <Deliveries
              what="Event"
              items={data.map((delivery) => ({
                delivery,
                of: { ...webhook, event_id: delivery.event_id },
                name: delivery.type,
                member:
                  delivery.user_id === null ? (
                    ""
                  ) : (
                    <a href={to("projects", webhook.project_id, "members", delivery.user_id)}>
                      {delivery.user_id}
                    </a>
                  ),
                actions: (
                  <>
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
                  </>
                ),
              }))}
            />
          )
        }
      </Paged>
    </>
  )
}

/** The state, and how the latest attempts went. */
const Health = ({ of }: { readonly of: WebhookHealth }) => {
  const since = of.disabled_at ?? of.failing_since
  return (
    <>
      <State of={stateOf(of)} />
      {of.disabled_by !== null && <span>by {of.disabled_by}</span>}
      {since !== null && (
        <span>
          since <Ago iso={since} />
        </span>
      )}
      <span>
        <Latest of={of.last_attempt} />
      </span>
      {of.next_attempt_at !== null && (
        <span>
          next{" "}
          {Date.parse(of.next_attempt_at) > now() ? <Ago iso={of.next_attempt_at} /> : "is due"}
        </span>
      )}
      {of.waiting > 0 && (
        <span>
          {cappedOf(of.waiting)} {of.waiting === 1 ? "waits" : "wait"}
        </span>
      )}
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
  const found = useLoad((signal) => find(webhook, signal), "", { everyMillis: interval })
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
  const url = value === undefined ? undefined : partsOf(value.url)
  return (
    <ProjectScreen
      project={project}
      tab="webhooks"
      title={url?.host ?? "Webhook"}
      rest={url?.rest}
      sub={value && <Health of={value} />}
      actions={
        value && (
          <>
            {mayRepair && (
              <>
                {value.disabled_at === null ? <Disable {...props} /> : <Enable {...props} />}
                <Edit {...props} of={value} />
                <Ping {...props} />
                <Replay {...props} />
                <Rotate {...props} />
              </>
            )}
            {mayDelete && <Delete webhook={webhook} />}
          </>
        )
      }
    >
      <Loaded from={found}>
        {(of) => (
          <div class="sides">
            <div>
              <LastDay project={project} webhook={id} />
              {maySee && <Sent webhook={webhook} turn={changes} />}
            </div>
            <Side of={of} webhook={webhook} turn={changes} />
          </div>
        )}
      </Loaded>
    </ProjectScreen>
  )
}
