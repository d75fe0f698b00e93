/** The audit trail: a project's, or the one for projects and keys. */

import type { AuditRow } from "@tenure/client"
import { api } from "../lib/api.ts"
import { to } from "../lib/route.ts"
import { Author, Dates, deeds } from "../parts/audit.tsx"
import { Paged, usePages } from "../parts/load.tsx"
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

const Rows = (props: {
  readonly of: ReturnType<typeof usePages<AuditRow>>
  readonly project?: string
}) => {
  const { of, project } = props
  const isOfProject = project !== undefined
  return (
    <Paged of={of}>
      {(rows) =>
        rows.length === 0 ? (
          <p class="dim">No change is kept.</p>
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
  const rows = usePages((after, signal) =>
    api.projects.audit({ project_id: project, after }, { signal }),
  )
  return (
    <ProjectScreen project={project} tab="audit" actions={<Refresh onClick={rows.page.reload} />}>
      <Rows of={rows} project={project} />
    </ProjectScreen>
  )
}

/** The audit trail for projects and keys. */
export const AuditScreen = () => {
  const rows = usePages((after, signal) => api.audit.list({ after }, { signal }))
  return (
    <Screen title="Audit" actions={<Refresh onClick={rows.page.reload} />}>
      <p class="dim">Projects and API keys. What was changed in a project is on its own page.</p>
      <Rows of={rows} />
    </Screen>
  )
}
