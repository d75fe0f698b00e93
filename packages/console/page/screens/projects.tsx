/** The projects. */

import type { ListedProject } from "@tenure/client"
import { api } from "../lib/api.ts"
import { useMay } from "../lib/identity.ts"
import { to } from "../lib/route.ts"
import { Action, textOf } from "../parts/action.tsx"
import { TextField } from "../parts/fields.tsx"
import { Paged, usePages } from "../parts/load.tsx"
import { Screen, Table } from "../parts/screen.tsx"
import { amountOf } from "../parts/text.tsx"

const Deletion = ({
  project,
  onDone,
}: {
  readonly project: ListedProject
  readonly onDone: () => void
}) => (
  <Action
    label="Delete"
    isSmall
    isDangerous
    title={`Delete the project ${project.id}?`}
    run={async (fields) => {
      if (textOf(fields, "id") !== project.id) throw new Error("That is not the id of the project.")
      await api.projects.delete({ project_id: project.id })
      return { message: `The project ${project.id} was deleted.` }
    }}
    onDone={onDone}
  >
    <p>
      Its {amountOf(project.memberships, "membership")}, {amountOf(project.webhooks, "webhook")},
      events and deliveries go with it. Nothing brings them back.
    </p>
    <TextField label="The id of the project, to confirm" name="id" required />
  </Action>
)

/** The projects. */
export const ProjectsScreen = () => {
  const projects = usePages((after, signal) => api.projects.list({ after }, { signal }))
  const mayChange = useMay("admin")
  return (
    <Screen
      title="Projects"
      actions={
        mayChange && (
          <Action
            label="New project"
            title="New project"
            confirm="Create"
            run={async (fields) => {
              const { data } = await api.projects.create({ project_id: textOf(fields, "id") })
              return { message: `The project ${data.id} is there.` }
            }}
            onDone={projects.page.reload}
          >
            <TextField label="Id" name="id" required maxLength={255} />
          </Action>
        )
      }
    >
      <Paged of={projects}>
        {(data) => (
          <Table
            label="Projects"
            columns={["Project", "Memberships", "Webhooks", ""]}
            isEmpty={data.length === 0}
            empty="There are no projects."
          >
            {data.map((project) => (
              <tr key={project.id}>
                <td class="name">
                  <a href={to("projects", project.id, "members")}>{project.id}</a>
                </td>
                <td class="number">{project.memberships.toLocaleString("en")}</td>
                <td class="number">
                  <a href={to("projects", project.id, "webhooks")}>
                    {project.webhooks.toLocaleString("en")}
                  </a>
                </td>
                <td class="actions">
                  {mayChange && <Deletion project={project} onDone={projects.page.reload} />}
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Paged>
    </Screen>
  )
}
