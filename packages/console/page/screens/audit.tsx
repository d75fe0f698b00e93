/** The audit trail: a project's, or the one for projects and keys. */

import type { AuditRow } from "@tenure/client"
import { useState } from "preact/hooks"
import { api } from "../lib/api.ts"
import { to } from "../lib/route.ts"
import { Author, Dates, deeds } from "../parts/audit.tsx"
import { SearchField } from "../parts/fields.tsx"
import { Paged, usePages, useSettled } from "../parts/load.tsx"
import { ProjectScreen, Screen, ShortId, Table, shortOf, toTab } from "../parts/screen.tsx"
import { Time } from "../parts/text.tsx"

/** The changed object, with a link to its screen if there is one. */
const Subject = ({ of, project }: { readonly of: AuditRow; readonly project?: string }) => {
  const { action, subject, user_id } = of
  if (project !== undefined && user_id !== null) {
    return <a href={to("projects", project, "members", user_id)}>{user_id}</a>
  }
  if (subject === null) return <span class="dim">–</span>
  if (project !== undefined && action !== "webhook_deleted") {
    const tab = action === "data_shown" ? "events" : "webhooks"
    return (
      <a href={to("projects", project, tab, subject)} title={subject}>
        {shortOf(subject)}
      </a>
    )
  }
  return action === "project_created" ? (
    <a href={toTab(subject, "overview")}>{subject}</a>
  ) : (
    <ShortId id={subject} />
  )
}

/** What changes to show. */
interface Search {
  readonly user: string
  readonly key: string
  readonly request: string
  /** Days or times in UTC, as they are typed. */
  readonly since: string
  readonly until: string
  /** An action; empty for all. */
  readonly action: string
  readonly announcements: boolean
}

const everything: Search = {
  user: "",
  key: "",
  request: "",
  since: "",
  until: "",
  action: "",
  announcements: true,
}

/** Reads a day or a time in UTC. Anything else is left to the API to refuse. */
const timeOf = (typed: string): string => {
  const text = typed.trim()
  const [, day, time = "00:00"] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?))?Z?$/.exec(text) ?? []
  const instant = new Date(`${day}T${time}Z`)
  return Number.isNaN(instant.getTime()) ? text : instant.toISOString()
}

const isAction = (text: string): text is AuditRow["action"] => Object.hasOwn(deeds, text)

// How long typing has to pause before a search, in milliseconds.
const typingPause = 300

/** Returns a search, how to change it, and its parameters for the API once typing has paused. */
const useSearch = () => {
  const [search, setSearch] = useState(everything)
  const { action, announcements, key, request, user, ...times } = useSettled(search, typingPause)
  const [since, until] = [timeOf(times.since), timeOf(times.until)]
  const filter = {
    ...(user.trim() !== "" && { user_id: user.trim() }),
    ...(key.trim() !== "" && { key_id: key.trim() }),
    ...(request.trim() !== "" && { request_id: request.trim() }),
    ...(since !== "" && { since }),
    ...(until !== "" && { until }),
    ...(isAction(action) && { action }),
    ...(!announcements && { announcements: "false" as const }),
  }
  const change = (part: Partial<Search>) => setSearch({ ...search, ...part })
  return { search, change, filter, key: JSON.stringify(filter) }
}

/** What is typed: a part of the search, its label, and an example. */
const fields = [
  ["user", "Changes to the member with the id", "Id of a user"],
  ["key", "Changes by the key with the id", "Id of a key"],
  ["request", "Changes by the request with the id", "Id of a request"],
  ["since", "Changes since a day or time in UTC", "Since 2026-11-30"],
  ["until", "Changes before a day or time in UTC", "Before 2026-12-01"],
] as const

const Filters = (props: {
  readonly of: Pick<ReturnType<typeof useSearch>, "change" | "search">
  readonly isOfProject?: boolean
}) => {
  const { change, search } = props.of
  return (
    <div class="filters" role="search">
      {fields.map(
        ([name, label, placeholder]) =>
          (name !== "user" || props.isOfProject === true) && (
            <SearchField
              key={name}
              label={label}
              placeholder={placeholder}
              value={search[name]}
              onType={(value) => change({ [name]: value })}
            />
          ),
      )}
      <select
        aria-label="Kind of change"
        value={search.action}
        onChange={({ currentTarget: { value } }) => change({ action: value })}
      >
        <option value="">All changes</option>
        {Object.entries(deeds).map(([action, deed]) => (
          <option key={action} value={action}>
            {deed}
          </option>
        ))}
      </select>
      {props.isOfProject === true && (
        <button
          type="button"
          class="chip"
          aria-pressed={search.announcements}
          onClick={() => change({ announcements: !search.announcements })}
        >
          Announcements
        </button>
      )}
    </div>
  )
}

const Rows = (props: {
  readonly of: ReturnType<typeof usePages<AuditRow>>
  readonly project?: string
}) => {
  const { of, project } = props
  const isOfProject = project !== undefined
  return (
    <Paged of={of}>
      {(rows, next) =>
        rows.length === 0 ? (
          <p class="dim">
            {next === null ? "There is no such change." : "None so far. Next looks further back."}
          </p>
        ) : (
          <Table
            label="Audit trail"
            columns={[
              "What",
              "Time (UTC)",
              "Of",
              ...(isOfProject ? ["Change"] : []),
              "Who",
              "Request",
            ]}
          >
            {rows.map((row, index) => (
              <tr key={`${row.at} ${index}`}>
                <td class="deed">{deeds[row.action]}</td>
                <td>
                  <Time iso={row.at} isExact />
                </td>
                <td class="long">
                  <Subject of={row} {...(isOfProject && { project })} />
                </td>
                {isOfProject && (
                  <td class="long">
                    <Dates of={row} />
                    {row.changes.map(({ field }) => field).join(", ")}
                    {row.reason !== null && <blockquote>{row.reason}</blockquote>}
                  </td>
                )}
                <td class="long">
                  <Author of={row} />
                </td>
                <td class="spare">{row.request_id !== null && <ShortId id={row.request_id} />}</td>
              </tr>
            ))}
          </Table>
        )
      }
    </Paged>
  )
}

const Refresh = ({ onClick }: { readonly onClick: () => void }) => (
  <button type="button" onClick={onClick}>
    Refresh
  </button>
)

/** A project's audit trail. */
export const ProjectAuditScreen = ({ project }: { readonly project: string }) => {
  const { filter, key, ...search } = useSearch()
  const rows = usePages(
    (after, signal) => api.projects.audit({ ...filter, project_id: project, after }, { signal }),
    key,
    true,
  )
  return (
    <ProjectScreen project={project} tab="audit" actions={<Refresh onClick={rows.page.reload} />}>
      <Filters of={search} isOfProject />
      <Rows of={rows} project={project} />
    </ProjectScreen>
  )
}

/** The audit trail for projects and keys. */
export const AuditScreen = () => {
  const { filter, key, ...search } = useSearch()
  const rows = usePages(
    (after, signal) => api.audit.list({ ...filter, after }, { signal }),
    key,
    true,
  )
  return (
    <Screen title="Audit" actions={<Refresh onClick={rows.page.reload} />}>
      <p class="dim">Projects and API keys. What was changed in a project is on its own page.</p>
      <Filters of={search} />
      <Rows of={rows} />
    </Screen>
  )
}
