/** How the server is doing. */

import type { Activity, Status } from "@tenure/client"
import type { ComponentChildren } from "preact"
import { useRef } from "preact/hooks"
import { api } from "../lib/api.ts"
import { Bars } from "../parts/bars.tsx"
import { Known, Loaded, useLoad } from "../parts/load.tsx"
import { Screen, Table } from "../parts/screen.tsx"
import { State, durationOf } from "../parts/text.tsx"

// How often the status is asked for, in milliseconds.
const interval = 5000

// How often the last hour is asked for, in milliseconds.
const activityInterval = 15_000

/** The chart's maximum number of points: ten minutes. */
const mostPoints = 120

// The maximum for counts.
const mostCounted = 10_000

const countOf = (count: number | undefined): string => {
  if (count === undefined) return "–"
  return count >= mostCounted ? "10,000 or more" : count.toLocaleString("en")
}

/** A number and its name. */
const Figure = (props: {
  readonly name: string
  readonly value: string
  readonly isBad: boolean
}) => (
  <div class={props.isBad ? "figure bad" : "figure"}>
    <dt>{props.name}</dt>
    <dd>{props.value}</dd>
  </div>
)

const width = 600
const height = 80

/** How many deliveries waited, since the screen was opened. */
const Chart = ({ points }: { readonly points: ReadonlyArray<number> }) => {
  const most = Math.max(...points)
  const line = points
    .map((point, index) => {
      const x = width - (points.length - 1 - index) * (width / (mostPoints - 1))
      return `${x.toFixed(1)},${(height - (point / Math.max(1, most)) * (height - 4) - 2).toFixed(1)}`
    })
    .join(" ")
  const now = points.at(-1) ?? 0
  return (
    <figure class="chart">
      <svg
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Waiting deliveries: ${now} now, ${most} at most`}
      >
        <polyline points={line} fill="none" vector-effect="non-scaling-stroke" />
      </svg>
      <figcaption>
        Waiting deliveries while this screen is open, for up to ten minutes; at most{" "}
        {most.toLocaleString("en")}
      </figcaption>
    </figure>
  )
}

const names: Readonly<Record<keyof Status["stores"], string>> = {
  memberships: "Memberships",
  webhooks: "Webhooks",
  api_keys: "API keys",
  deliveries: "Deliveries",
  rate_limits: "Rate limits",
}

// The maximum number of refused keys on screen.
const mostRefused = 10

const isStore = (name: string): name is keyof typeof names => name in names

/** Counts from the database. */
interface Counted {
  readonly waiting: number
  readonly dueFor: number | null
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
        failed: failed_deliveries,
        disabled: disabled_webhooks,
      }
}

const dueForOf = ({ dueFor }: Counted): string =>
  dueFor === null ? "none is due" : durationOf(dueFor)

/** Names the stores without an answer. */
const Silence = ({ stores }: Pick<Status, "stores">) => {
  const silent = Object.entries(stores).flatMap(([name, answers]) =>
    answers ? [] : [isStore(name) ? names[name] : name],
  )
  if (silent.length === 0) return null
  const isAll = silent.length === Object.keys(stores).length
  return (
    <p class="problem" role="alert">
      The database {!isAll && `of these stores `}does not answer
      {isAll ? "." : `: ${silent.join(", ")}.`}
    </p>
  )
}

/** The latest counts and their time. */
interface Latest {
  readonly counted: Counted
  readonly at: string
}

const Report = (props: {
  readonly status: Status
  /** `undefined` if nothing was counted yet. */
  readonly latest: Latest | undefined
  readonly points: ReadonlyArray<number>
  readonly children: ComponentChildren
}) => {
  const { stores, suspended_keys, versions } = props.status
  const isStale = countedIn(props.status) === undefined
  const counted = props.latest?.counted
  const dueFor = counted?.dueFor ?? 0
  return (
    <>
      <Silence stores={stores} />
      <Known at={props.latest?.at} isStale={isStale}>
        <dl class="figures">
          <Figure name="Waiting deliveries" value={countOf(counted?.waiting)} isBad={false} />
          <Figure
            name="Oldest is due for"
            value={counted === undefined ? "–" : dueForOf(counted)}
            isBad={dueFor > 60_000}
          />
          <Figure
            name="Failed deliveries"
            value={countOf(counted?.failed)}
            isBad={(counted?.failed ?? 0) > 0}
          />
          <Figure
            name="Disabled webhooks"
            value={countOf(counted?.disabled)}
            isBad={(counted?.disabled ?? 0) > 0}
          />
        </dl>
        {props.points.length > 1 && <Chart points={props.points} />}
      </Known>
      {props.children}
      <h2>Stores</h2>
      <ul class="stores">
        {Object.entries(stores).map(([name, answers]) => (
          <li key={name}>
            {isStore(name) ? names[name] : name} <State of={answers ? "answers" : "away"} />
          </li>
        ))}
      </ul>
      <h2>Keys that this server has suspended</h2>
      {suspended_keys.length === 0 ? (
        <p class="dim">None.</p>
      ) : (
        <ul class="bad">
          {suspended_keys.map((id) => (
            <li key={id}>
              <code>{id}</code>
            </li>
          ))}
        </ul>
      )}
      <p class="dim">Tenure {versions.tenure}</p>
    </>
  )
}

/** The answering server's last hour. */
const LastHour = ({ of: { minutes, refusals } }: { readonly of: Activity }) => {
  const starts = minutes.map(({ at }) => at)
  return (
    <>
      <h2>The last hour of this server</h2>
      <p class="dim">Each server counts its own, from its start on.</p>
      <div class="charts">
        <Bars
          title="Attempts to deliver"
          minutes={starts}
          series={[
            { name: "succeeded", tone: "good", counts: minutes.map(({ delivered }) => delivered) },
            { name: "failed", tone: "bad", counts: minutes.map(({ failed }) => failed) },
          ]}
        />
        <Bars
          title="Requests beyond limits"
          minutes={starts}
          series={[
            { name: "refused", tone: "warn", counts: minutes.map(({ refused }) => refused) },
          ]}
        />
      </div>
      {refusals.length > 0 && (
        <Table label="Refusals by key" columns={["API key", "Refused"]} isEmpty={false} empty="">
          {refusals.slice(0, mostRefused).map(({ key_id, refused }) => (
            <tr key={key_id}>
              <td class="long">
                {key_id === null ? "without a valid key, and others" : <code>{key_id}</code>}
              </td>
              <td class="number">{refused.toLocaleString("en")}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  )
}

/** How the server is doing, every few seconds. */
export const OverviewScreen = () => {
  const points = useRef<ReadonlyArray<number>>([])
  const latest = useRef<Latest | undefined>(undefined)
  const status = useLoad(
    async (signal) => {
      const { data } = await api.status.get({}, { signal })
      const counted = countedIn(data)
      if (counted !== undefined) {
        points.current = [...points.current, counted.waiting].slice(-mostPoints)
        latest.current = { counted, at: new Date().toISOString() }
      }
      return data
    },
    "",
    interval,
  )
  const activity = useLoad(
    async (signal) => (await api.status.activity({}, { signal })).data,
    "",
    activityInterval,
  )
  return (
    <Screen title="Overview">
      <Loaded from={status}>
        {(value) => (
          <Report status={value} latest={latest.current} points={points.current}>
            <Loaded from={activity}>{(hour) => <LastHour of={hour} />}</Loaded>
          </Report>
        )}
      </Loaded>
    </Screen>
  )
}
