/** Delivery attempts: a webhook's by quarter hour, and a project's by minute. */

import type { WebhookActivity, WebhookHealth } from "@tenure/client"
import { api } from "../lib/api.ts"
import { useSees } from "../lib/identity.ts"
import { to } from "../lib/route.ts"
import { type Loading, Loaded, useLoad } from "./load.tsx"
import { CountsTable, Plot } from "./plot.tsx"
import { Table } from "./screen.tsx"
import { Url, durationOf } from "./text.tsx"

// How often the attempts are asked for, in milliseconds.
const interval = 60_000

// Each webhook is a request, every two minutes.
const timesInterval = 120_000

const maxWebhooks = 10

const height = 26

const cellWidth = 10

/** The attempts in a minute or a quarter hour. */
interface Attempts {
  readonly at: string
  readonly delivered: number
  readonly failed: number
}

const wordsOf = ({ delivered, failed }: Omit<Attempts, "at">) =>
  `${delivered.toLocaleString("en")} succeeded, ${failed.toLocaleString("en")} failed`

const countsOf = (all: ReadonlyArray<Attempts>) => ({
  times: all.map(({ at }) => at),
  series: [
    {
      name: "succeeded",
      tone: "good" as const,
      values: all.map(({ delivered }) => delivered),
    },
    { name: "failed", tone: "bad" as const, values: all.map(({ failed }) => failed) },
  ],
})

const cellOf = (index: number, size = height): string =>
  `M${index * cellWidth} 0h${cellWidth - 2}v${size.toFixed(1)}h-${cellWidth - 2}z`

/** The last 24 hours: a cell for each quarter hour, red in proportion to failed attempts. */
const Strip = ({ quarters }: Pick<WebhookActivity, "quarters">) => {
  const all = quarters.reduce(
    (sum, { delivered, failed }) => ({
      delivered: sum.delivered + delivered,
      failed: sum.failed + failed,
    }),
    { delivered: 0, failed: 0 },
  )
  return (
    <svg
      class="strip"
      viewBox={`0 0 ${quarters.length * cellWidth} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`Attempts in 24 hours: ${wordsOf(all)}`}
    >
      <path d={quarters.map((_, index) => cellOf(index)).join("")} />
      {quarters.map((quarter, index) => {
        const { at, delivered, failed } = quarter
        const total = delivered + failed
        const share = failed === 0 ? 0 : Math.max(0.25, failed / total)
        return (
          total > 0 && (
            <g key={at}>
              <title>{`${at.slice(11, 16)} UTC: ${wordsOf(quarter)}`}</title>
              {delivered > 0 && <path d={cellOf(index)} class="good" />}
              {share > 0 && <path d={cellOf(index, share * height)} class="bad" />}
            </g>
          )
        )
      })}
    </svg>
  )
}

const millisOf = (millis: number | null): string => (millis === null ? "–" : durationOf(millis))

/** A webhook's last 24 hours. */
export const LastDay = (props: { readonly project: string; readonly webhook: string }) => {
  const activity = useLoad(
    async (signal) => {
      const input = { project_id: props.project, webhook_id: props.webhook }
      return (await api.webhooks.activity(input, { signal })).data
    },
    "",
    { everyMillis: interval },
  )
  return (
    <Loaded from={activity}>
      {({ p50_ms, p99_ms, quarters }) => (
        <figure class="plot">
          <figcaption>
            <h2>24 hours</h2>
            <span class="readout">
              answers in {millisOf(p50_ms)} (median), {millisOf(p99_ms)} (p99)
            </span>
          </figcaption>
          <Strip quarters={quarters} />
          <p class="axis" aria-hidden="true">
            <span>24 hours ago</span>
            <span>12</span>
            <span>now</span>
          </p>
          <CountsTable {...countsOf(quarters)} unit="quarter" />
        </figure>
      )}
    </Loaded>
  )
}

/** Attempts by the minute. */
export const Minutes = ({ of }: { readonly of: ReadonlyArray<Attempts> }) => (
  <Plot title="Deliveries a minute" unit="minute" isStacked {...countsOf(of)} />
)

/** A project's last hour, if the role permits it. */
export const ProjectHour = ({ project }: { readonly project: string }) => {
  const maySee = useSees("operator")
  const hour = useLoad(
    async (signal) =>
      maySee ? (await api.projects.activity({ project_id: project }, { signal })).data : undefined,
    project,
    { everyMillis: interval },
  )
  if (!maySee) return null
  return (
    <section class="panel">
      <Loaded from={hour}>{(found) => found && <Minutes of={found.minutes} />}</Loaded>
    </section>
  )
}

/** The response times of a project's webhooks. */
export const AnswerTimes = (props: {
  readonly project: string
  readonly webhooks: Loading<ReadonlyArray<WebhookHealth>>
}) => {
  const { project, webhooks } = props
  const all = webhooks.value ?? []
  const first = all.slice(0, maxWebhooks)
  const times = useLoad(
    (signal) =>
      Promise.all(
        first.map(async ({ id }) => {
          const input = { project_id: project, webhook_id: id }
          return (await api.webhooks.activity(input, { signal })).data
        }),
      ),
    JSON.stringify([project, first.map(({ id }) => id)]),
    { everyMillis: timesInterval, isKept: true },
  )
  if (all.length === 0) return null
  return (
    <section class="panel">
      <h2>Answer time of webhooks</h2>
      <Loaded from={times}>
        {(found) => (
          <Table
            label="Answer time of webhooks"
            columns={[
              "Webhook",
              { name: "Median", isNumber: true },
              "24 hours",
              { name: "p99", isNumber: true },
            ]}
          >
            {first.map(({ id, url }, index) => {
              const activity = found[index]
              return (
                activity !== undefined && (
                  <tr key={id}>
                    <td class="long">
                      <a href={to("projects", project, "webhooks", id)}>
                        <Url of={url} />
                      </a>
                    </td>
                    <td class="number">{millisOf(activity.p50_ms)}</td>
                    <td class="sparse">
                      <Strip quarters={activity.quarters} />
                    </td>
                    <td class="number">{millisOf(activity.p99_ms)}</td>
                  </tr>
                )
              )
            })}
          </Table>
        )}
      </Loaded>
      {all.length > maxWebhooks && (
        <p class="dim">
          The first {maxWebhooks} of {all.length}.
        </p>
      )}
    </section>
  )
}
