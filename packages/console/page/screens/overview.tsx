/** The server at a glance: problems first, then its last hour. */

import type { Activity, Status } from "@tenure/client"
import { useContext, useRef, useState } from "preact/hooks"
import { api } from "../lib/api.ts"
import { now } from "../lib/clock.ts"
import { to } from "../lib/route.ts"
import { AnswerTimes, Minutes } from "../parts/activity.tsx"
import { Attention, type Need } from "../parts/attention.tsx"
import { Ends, useEnds } from "../parts/ends.tsx"
import { webhookNeed } from "../parts/latest.tsx"
import { Known, Loaded, Projects, useLoad } from "../parts/load.tsx"
import { Plot } from "../parts/plot.tsx"
import { Copy, Screen, ShortId, Table, shortOf, toTab } from "../parts/screen.tsx"
import { Figure, cappedOf, durationOf } from "../parts/text.tsx"

// How often the status is asked for, in milliseconds.
const interval = 15_000

// How often the last hour is asked for, in milliseconds.
const activityInterval = 30_000

// From when on a due delivery is late, in milliseconds.
const late = 60_000

// The most webhooks named in the status.
const maxWebhooks = 50

// The most refused keys on screen.
const mostRefused = 10

const names: Readonly<Record<keyof Status["stores"], string>> = {
  memberships: "Memberships",
  webhooks: "Webhooks",
  api_keys: "API keys",
  deliveries: "Deliveries",
  rate_limits: "Rate limits",
}

const isStore = (name: string): name is keyof typeof names => name in names

/** Counts from the database. */
interface Counted {
  readonly waiting: number
  readonly dueFor: number | null
  readonly lateFor: number | null
  readonly failed: number
  readonly disabled: number
}

const countedIn = (status: Status): Counted | undefined => {
  const { backlog, disabled_webhooks, failed_deliveries } = status
  return backlog === null || disabled_webhooks === null || failed_deliveries === null
    ? undefined
    : {
        waiting: backlog.waiting,
        dueFor: backlog.due_for_ms,
        lateFor: backlog.late_for_ms,
        failed: failed_deliveries,
        disabled: disabled_webhooks,
      }
}

const Again = ({ onClick }: { readonly onClick: () => void }) => (
  <button type="button" onClick={onClick}>
    Ask again
  </button>
)

/** Stores without an answer. */
const silentStores = ({ stores }: Status, reload: () => void): ReadonlyArray<Need> => {
  const silent = Object.entries(stores).flatMap(([name, answers]) =>
    answers ? [] : [isStore(name) ? names[name] : name],
  )
  if (silent.length === 0) return []
  const isAll = silent.length === Object.keys(stores).length
  return [
    {
      key: "stores",
      what: <strong>{isAll ? "The database does not answer" : "Stores do not answer"}</strong>,
      why: isAll ? "No store can be read or changed." : silent.join(", "),
      button: <Again onClick={reload} />,
    },
  ]
}

const limiting = {
  local: "This server limits requests by itself, so clients may send more.",
  open: "This server does not limit requests.",
  closed: "This server answers requests 503.",
}

const unlimited = ({ rate_limiting }: Status, reload: () => void): ReadonlyArray<Need> =>
  rate_limiting === "store"
    ? []
    : [
        {
          key: "limiting",
          what: <strong>The store of rate limits fails</strong>,
          why: limiting[rate_limiting],
          button: <Again onClick={reload} />,
        },
      ]

const lateDeliveries = (counted: Counted | undefined, reload: () => void): ReadonlyArray<Need> =>
  counted === undefined || (counted.lateFor ?? 0) <= late
    ? []
    : [
        {
          key: "late",
          what: <strong>Deliveries are late</strong>,
          why: `One has waited ${durationOf(counted.lateFor ?? 0)} for a server to send it.`,
          waits: `${cappedOf(counted.waiting)} wait`,
          button: <Again onClick={reload} />,
        },
      ]

const suspendedKeys = ({ suspended_keys }: Status): ReadonlyArray<Need> =>
  suspended_keys.map((id) => ({
    key: id,
    isMild: true,
    what: (
      <>
        <strong>API key suspended</strong> <ShortId id={id} />
      </>
    ),
    why: "This server has refused it too often, and rejects everything it sends for a while.",
    button: (
      <a class="button" href={to("keys")}>
        Open
      </a>
    ),
  }))

const webhookNeeds = (
  { webhooks_needing_attention }: Status,
  onDone: () => void,
): ReadonlyArray<Need> =>
  (webhooks_needing_attention ?? []).map((webhook) => {
    const name = (
      <>
        {webhook.url_host} <span class="dim">in {webhook.project_id}</span>{" "}
        {webhook.description ?? <code>{shortOf(webhook.id)}</code>}
      </>
    )
    return webhookNeed(webhook, name, onDone)
  })

const missingKeys = ({ missing_encryption_keys }: Status): ReadonlyArray<Need> =>
  (missing_encryption_keys ?? []).map((id) => ({
    key: id,
    what: (
      <>
        <strong>Encryption key missing</strong> <code>{id}</code>
      </>
    ),
    why: "Secrets that it has encrypted cannot be read. Restart the server with it.",
    button: <Copy text={id} what="the id of the key" />,
  }))

/** The project on screen in the overview. */
const Chosen = ({ project }: { readonly project: string }) => {
  const ends = useEnds(project)
  const webhooks = useLoad(
    async (signal) => (await api.webhooks.health({ project_id: project }, { signal })).data,
    project,
  )
  return (
    <>
      <Ends of={ends} project={project} />
      <div class="panels">
        <AnswerTimes project={project} webhooks={webhooks} />
      </div>
    </>
  )
}

/** A project's days, by default the largest project's. */
const ProjectDays = () => {
  const { value } = useContext(Projects)
  const [chosen, setChosen] = useState<string | undefined>()
  const all = value?.data ?? []
  const largest = all.toSorted((a, b) => b.memberships - a.memberships)[0]?.id
  const project = chosen ?? largest
  if (project === undefined) return null
  return (
    <>
      <div class="head between">
        <h2>
          <a href={toTab(project, "overview")}>{project}</a>
        </h2>
        {all.length > 1 && (
          <label class="dim">
            Project{" "}
            <select value={project} onChange={({ currentTarget: { value: id } }) => setChosen(id)}>
              {all.map(({ id }) => (
                <option key={id} value={id}>
                  {id}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      <Chosen key={project} project={project} />
    </>
  )
}

const Figures = ({ of }: { readonly of: Counted | undefined }) => (
  <dl class="figures">
    <Figure name="Deliveries that wait">{cappedOf(of?.waiting)}</Figure>
    <Figure name="Oldest is due for" isBad={(of?.lateFor ?? 0) > late}>
      {of === undefined ? "–" : of.dueFor === null ? "none is due" : durationOf(of.dueFor)}
    </Figure>
    <Figure name="Given up">{cappedOf(of?.failed)}</Figure>
    <Figure name="Webhooks disabled" isBad={(of?.disabled ?? 0) > 0}>
      {cappedOf(of?.disabled)}
    </Figure>
  </dl>
)

/** The last hour. */
const LastHour = ({ of: { minutes, refusals } }: { readonly of: Activity }) => {
  const times = minutes.map(({ at }) => at)
  return (
    <div class="panels">
      <section class="panel">
        <Minutes of={minutes} />
      </section>
      <section class="panel">
        <Plot
          title="Requests beyond limits"
          unit="minute"
          times={times}
          series={[
            { name: "refused", tone: "warn", values: minutes.map(({ refused }) => refused) },
          ]}
        />
        {refusals.length > 0 && (
          <Table label="Refusals by key" columns={["API key", { name: "Refused", isNumber: true }]}>
            {refusals.slice(0, mostRefused).map(({ key_id, refused }) => (
              <tr key={key_id}>
                <td class="long">
                  {key_id === null ? "without a valid key, and others" : <ShortId id={key_id} />}
                </td>
                <td class="number">{refused.toLocaleString("en")}</td>
              </tr>
            ))}
          </Table>
        )}
      </section>
    </div>
  )
}

/** The latest counts and their time. */
interface Latest {
  readonly counted: Counted
  readonly at: string
}

/** The overview, every few seconds. */
export const OverviewScreen = () => {
  const latest = useRef<Latest | undefined>(undefined)
  const status = useLoad(
    async (signal) => {
      const { data } = await api.status.get({}, { signal })
      const counted = countedIn(data)
      if (counted !== undefined) latest.current = { counted, at: new Date(now()).toISOString() }
      return data
    },
    "",
    { everyMillis: interval },
  )
  const activity = useLoad(async (signal) => (await api.status.activity({}, { signal })).data, "", {
    everyMillis: activityInterval,
  })
  return (
    <Screen title="Overview">
      <Loaded from={status}>
        {(value) => {
          const counted = countedIn(value)
          return (
            <>
              <Attention
                fine="All is well: every store answers, no webhook fails, and no delivery is late."
                needs={[
                  ...silentStores(value, status.reload),
                  ...unlimited(value, status.reload),
                  ...missingKeys(value),
                  ...webhookNeeds(value, status.reload),
                  ...lateDeliveries(counted, status.reload),
                  ...suspendedKeys(value),
                ]}
              />
              {value.webhooks_needing_attention?.length === maxWebhooks && (
                <p class="dim">The {maxWebhooks} most urgent webhooks.</p>
              )}
              <Known at={latest.current?.at} isStale={counted === undefined}>
                <Figures of={latest.current?.counted} />
              </Known>
              <ProjectDays />
              <Loaded from={activity}>{(hour) => <LastHour of={hour} />}</Loaded>
              <p class="dim">Tenure {value.versions.tenure}</p>
            </>
          )
        }}
      </Loaded>
    </Screen>
  )
}
