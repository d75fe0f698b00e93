/** The projects, and one project's settings. */

import type { ChangedProject, Project } from "@tenure/client"
import { useContext } from "preact/hooks"
import { api } from "../lib/api.ts"
import { useMay } from "../lib/identity.ts"
import { go } from "../lib/route.ts"
import { Action, givenOf, textOf } from "../parts/action.tsx"
import { ReasonField, TextField } from "../parts/fields.tsx"
import { Loaded, Paged, Projects, usePages } from "../parts/load.tsx"
import { useProject } from "../parts/project.tsx"
import { Copy, Empty, ProjectScreen, Screen, Table, toTab } from "../parts/screen.tsx"
import { Announced, Facts, Time, amountOf } from "../parts/text.tsx"

const Creation = ({ onDone }: { readonly onDone: () => void }) => (
  <Action
    label="New project"
    title="New project"
    confirm="Create"
    isMain
    run={async (fields) => {
      const { data } = await api.projects.create({ project_id: textOf(fields, "id") })
      return { message: `The project ${data.id} is there.` }
    }}
    onDone={onDone}
  >
    <TextField label="Id" name="id" required maxLength={255} />
  </Action>
)

/** The projects. */
export const ProjectsScreen = () => {
  const projects = usePages((after, signal) => api.projects.list({ after }, { signal }))
  const rail = useContext(Projects)
  const mayChange = useMay("admin")
  const creation = (
    <Creation
      onDone={() => {
        projects.page.reload()
        rail.reload()
      }}
    />
  )
  return (
    <Screen title="Projects" actions={mayChange && creation}>
      <Paged of={projects}>
        {(data) =>
          data.length === 0 ? (
            <Empty says="There are no projects yet." line="npx tenure projects create shop" />
          ) : (
            <Table
              label="Projects"
              columns={[
                "Project",
                { name: "Memberships", isNumber: true },
                { name: "Webhooks", isNumber: true },
              ]}
            >
              {data.map((project) => (
                <tr key={project.id}>
                  <td class="long">
                    <a data-row href={toTab(project.id, "overview")}>
                      {project.id}
                    </a>
                  </td>
                  <td class="number">
                    <a href={toTab(project.id, "members")}>
                      {project.memberships.toLocaleString("en")}
                    </a>
                  </td>
                  <td class="number spare">
                    <a href={toTab(project.id, "webhooks")}>
                      {project.webhooks.toLocaleString("en")}
                    </a>
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Paged>
    </Screen>
  )
}

const Deletion = ({ project }: { readonly project: Project }) => {
  const { reload } = useContext(Projects)
  return (
    <Action
      label="Delete the project"
      isDangerous
      title={`Delete the project ${project.id}?`}
      run={async (fields) => {
        if (textOf(fields, "id") !== project.id)
          throw new Error("That is not the id of the project.")
        await api.projects.delete({ project_id: project.id })
        return { message: `The project ${project.id} was deleted.` }
      }}
      onDone={() => {
        reload()
        go("projects")
      }}
    >
      <p>
        Its {amountOf(project.memberships, "membership")}, {amountOf(project.webhooks, "webhook")},
        events and deliveries go with it. Nothing brings them back.
      </p>
      <TextField label="The id of the project, to confirm" name="id" required />
    </Action>
  )
}

const zones = "zones"

const TimeZone = ({ of, onDone }: { readonly of: Project; readonly onDone: () => void }) => (
  <Action
    label="Set the time zone"
    title={`Time zone of ${of.id}`}
    confirm="Save"
    run={async (fields) => {
      const { data } = await api.projects.update({
        project_id: of.id,
        time_zone: textOf(fields, "zone"),
        reason: givenOf(fields, "reason"),
      })
      return { message: `The time zone is ${data.time_zone}.` }
    }}
    onDone={onDone}
  >
    <p class="dim">Last days and months count by it from now on. No end moves.</p>
    <TextField label="Time zone" name="zone" list={zones} required defaultValue={of.time_zone} />
    <datalist id={zones}>
      {Intl.supportedValuesOf("timeZone").map((zone) => (
        <option key={zone} value={zone} />
      ))}
    </datalist>
    <ReasonField />
  </Action>
)

/** Says what a grace would change at once. */
const effectOf = ({ announcements, would_expire = 0, would_reactivate = 0 }: ChangedProject) => (
  <>
    {amountOf(would_reactivate, "membership")} would be active again,{" "}
    <span class={would_expire > 0 ? "bad" : undefined}>
      {amountOf(would_expire, "membership")} would expire.
    </span>
    <Announced of={announcements} />
  </>
)

const Grace = ({ of, onDone }: { readonly of: Project; readonly onDone: () => void }) => {
  const update = (fields: FormData, dry_run: boolean) =>
    api.projects.update({
      project_id: of.id,
      grace: givenOf(fields, "grace")?.toUpperCase() ?? null,
      reason: givenOf(fields, "reason"),
      ...(dry_run && { dry_run }),
    })
  return (
    <Action
      label="Set the grace"
      title={`Grace of ${of.id}`}
      confirm="Save"
      mustCheck
      check={async (fields) => effectOf((await update(fields, true)).data)}
      run={async (fields) => {
        const { data } = await update(fields, false)
        return { message: `The grace is ${data.grace ?? "none"}.` }
      }}
      onDone={onDone}
    >
      <p class="dim">
        For how long memberships stay active after their end. It counts at once, for past ends, too.
      </p>
      <TextField
        label="Grace"
        name="grace"
        hint="P7D for seven days of 24 hours, PT36H for 36 hours; none without"
        maxLength={64}
        defaultValue={of.grace ?? ""}
      />
      <ReasonField />
    </Action>
  )
}

/** A project's settings. */
export const SettingsScreen = ({ project }: { readonly project: string }) => {
  const found = useProject(project)
  const mayChange = useMay("operator")
  const mayDelete = useMay("admin")
  return (
    <ProjectScreen
      project={project}
      tab="settings"
      actions={
        mayChange &&
        found.value && (
          <>
            <TimeZone of={found.value} onDone={found.reload} />
            <Grace of={found.value} onDone={found.reload} />
          </>
        )
      }
    >
      <Loaded from={found}>
        {(value) => (
          <>
            <Facts
              of={[
                [
                  "Id",
                  <span class="id">
                    <code>{value.id}</code>
                    <Copy text={value.id} what="the id" />
                  </span>,
                ],
                [
                  "Memberships",
                  <a href={toTab(project, "members")}>{value.memberships.toLocaleString("en")}</a>,
                ],
                [
                  "Webhooks",
                  <a href={toTab(project, "webhooks")}>{value.webhooks.toLocaleString("en")}</a>,
                ],
                ["Time zone", value.time_zone],
                ["Grace", value.grace ?? "none"],
                ["All extended to (UTC)", <Time iso={value.last_bulk_end_date} isExact />],
                ["API", <code>{`/v2/projects/${encodeURIComponent(value.id)}`}</code>],
              ]}
            />
            {mayDelete && (
              <section class="panel danger-zone">
                <h2>Delete this project</h2>
                <p class="dim">
                  Removes its memberships, webhooks, events and deliveries for good. API keys do not
                  open it any more.
                </p>
                <Deletion project={value} />
              </section>
            )}
          </>
        )}
      </Loaded>
    </ProjectScreen>
  )
}
