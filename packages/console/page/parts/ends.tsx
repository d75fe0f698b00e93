/** A project's end dates by day, and the effect of a bulk extension on them. */

import type { EndCounts } from "@tenure/client"
import { useState } from "preact/hooks"
import { calm } from "../lib/api.ts"
import { hasClock, now } from "../lib/clock.ts"
import { ClockControl } from "./clock-control.tsx"
import { type Loading, Loaded, messageOf, useLoad, useSettled } from "./load.tsx"
import { Plot } from "./plot.tsx"
import { toMembers } from "./screen.tsx"
import { Figure } from "./text.tsx"

const dayMillis = 86_400_000

const daysBack = 14

const daysAhead = 45

// A server counts for one request at a time.
const interval = 120_000

const typingPause = 500

const dayOf = (millis: number): string => new Date(millis).toISOString().slice(0, 10)

/** Loads the counts. */
export const useEnds = (project: string): Loading<EndCounts> =>
  useLoad(
    async (signal) => {
      const time = now()
      const input = {
        project_id: project,
        from: dayOf(time - daysBack * dayMillis),
        to: dayOf(time + daysAhead * dayMillis),
      }
      return (await calm.memberships.ends(input, { signal })).data
    },
    project,
    { everyMillis: interval },
  )

/** A bulk extension to try out. */
type WhatIf =
  | { readonly extend_by: string }
  | { readonly through: string; readonly mode: "set" | "never_shorten" }

/** Reads the typed text; `undefined` if it is incomplete. */
const readWhatIf = (kind: string, value: string): WhatIf | undefined => {
  if (kind === "by") return /^[1-9]\d{0,3}$/.test(value) ? { extend_by: `P${value}D` } : undefined
  return value >= dayOf(now())
    ? { through: value, mode: kind === "through" ? "set" : "never_shorten" }
    : undefined
}

const useWhatIf = (project: string, asked: WhatIf | undefined, counts: EndCounts | undefined) => {
  const first = counts?.days[0]?.day
  const last = counts?.days.at(-1)?.day
  return useLoad(
    async (signal) => {
      if (asked === undefined) return undefined
      const input = { project_id: project, from: first, to: last, ...asked }
      return (await calm.memberships.ends(input, { signal })).data
    },
    JSON.stringify([asked, first, last, counts?.at]),
    { isKept: true },
  )
}

/** Two numbers, if they differ. */
const Change = ({ from, to }: { readonly from: number; readonly to: number | undefined }) => (
  <>
    {from.toLocaleString("en")}
    {to !== undefined && to !== from && <small class="wait"> → {to.toLocaleString("en")}</small>}
  </>
)

const Counts = (props: {
  readonly project: string
  readonly of: EndCounts
  readonly then: EndCounts | undefined
}) => {
  const { of, project, then } = props
  return (
    <dl class="figures">
      <Figure name="Active">
        <a href={toMembers(project, "active")}>
          <Change from={of.active} to={then?.active} />
        </a>
      </Figure>
      {of.overdue > 0 && (
        <Figure name="Overdue">
          <a href={toMembers(project, "overdue")}>
            <Change from={of.overdue} to={then?.overdue} />
          </a>
        </Figure>
      )}
      <Figure name="End today">
        <Change from={of.ends_today} to={then?.ends_today} />
      </Figure>
      <Figure name="End in 7 days">
        <a href={toMembers(project, "soon")}>
          <Change from={of.ends_in_7_days} to={then?.ends_in_7_days} />
        </a>
      </Figure>
      {of.paused > 0 && (
        <Figure name="Paused">
          <a href={toMembers(project, "paused")}>{of.paused.toLocaleString("en")}</a>
        </Figure>
      )}
      <Figure name="Expired">
        <a href={toMembers(project, "expired")}>
          <Change from={of.expired} to={then?.expired} />
        </a>
      </Figure>
    </dl>
  )
}

const Picture = ({
  of,
  then,
}: {
  readonly of: EndCounts
  readonly then: EndCounts | undefined
}) => {
  const today = of.at.slice(0, 10)
  const isOver = (day: string): boolean => day < today
  // A bar is centered on noon.
  const middle = new Date(Date.parse(of.at) - dayMillis / 2).toISOString()
  return (
    <Plot
      title="Ends per day"
      unit="day"
      times={of.days.map(({ day }) => `${day}T00:00:00.000Z`)}
      mark={middle}
      series={[
        {
          name: "ended",
          tone: "rest",
          values: of.days.map(({ day, ends }) => (isOver(day) ? ends : null)),
        },
        {
          name: "to end",
          tone: "link",
          values: of.days.map(({ day, ends }) => (isOver(day) ? null : ends)),
        },
        ...(then === undefined
          ? []
          : [
              {
                name: "with the extension",
                tone: "wait" as const,
                shape: "outline" as const,
                // A bar for zero would draw its outline.
                values: of.days.map((_, index) => then.days[index]?.ends || null),
              },
            ]),
        {
          name: "extended",
          tone: "good",
          shape: "thin",
          values: of.days.map(({ extended }) => extended),
        },
      ]}
    />
  )
}

/** The counts, the picture, and an extension's effect. */
export const Ends = ({
  of,
  project,
}: {
  readonly of: Loading<EndCounts>
  readonly project: string
}) => {
  const [kind, setKind] = useState("by")
  const [value, setValue] = useState("")
  const typed = useSettled(value, typingPause)
  const asked = readWhatIf(kind, typed)
  const found = useWhatIf(project, asked, of.value)
  const then = asked === undefined ? undefined : found.value
  return (
    <Loaded from={of}>
      {(counts) => (
        <>
          <Counts project={project} of={counts} then={then} />
          <section class="panel">
            <Picture of={counts} then={then} />
            {hasClock && <ClockControl days={daysAhead} />}
            <div class="filters what-if" role="group" aria-label="What if">
              <label>
                What if all were extended{" "}
                <select
                  value={kind}
                  onChange={({ currentTarget }) => {
                    setKind(currentTarget.value)
                    setValue("")
                  }}
                >
                  <option value="by">by days</option>
                  <option value="through">through a day</option>
                  <option value="at least">at least through a day</option>
                </select>
              </label>
              <input
                key={kind}
                type={kind === "by" ? "number" : "date"}
                min={kind === "by" ? 1 : undefined}
                max={kind === "by" ? 3650 : "9999-12-30"}
                aria-label={kind === "by" ? "Days" : "Last day"}
                placeholder="3"
                value={value}
                onInput={({ currentTarget }) => setValue(currentTarget.value)}
              />
              <span class="dim" role="status">
                {asked !== undefined && found.error !== undefined && messageOf(found.error)}
                {then !== undefined && found.error === undefined && "Nothing is changed."}
              </span>
            </div>
          </section>
        </>
      )}
    </Loaded>
  )
}
