/** A project's webhooks. */

import type { WebhookHealth } from "@tenure/client"
import { api } from "../lib/api.ts"
import { useMay } from "../lib/identity.ts"
import { to } from "../lib/route.ts"
import { Action, textOf } from "../parts/action.tsx"
import { TextField } from "../parts/fields.tsx"
import { Loaded, useLoad } from "../parts/load.tsx"
import { ProjectScreen, Table } from "../parts/screen.tsx"
import { State } from "../parts/text.tsx"

/** Describes a webhook's state in a word. */
export const stateOf = ({ disabled_at, failing_since }: WebhookHealth): string => {
  if (disabled_at !== null) return "disabled"
  return failing_since === null ? "enabled" : "failing"
}

/** Describes the webhook's event types in words. */
export const typesOf = (types: ReadonlyArray<string> | null): string =>
  types === null ? "all" : types.join(", ")

const Row = ({ of, project }: { readonly project: string; readonly of: WebhookHealth }) => (
  <tr>
    <td class="long">
      <a href={to("projects", project, "webhooks", of.id)}>{of.url}</a>
    </td>
    <td>
      <State of={stateOf(of)} />
    </td>
    <td class="number">{of.failures}</td>
    <td>{typesOf(of.event_types)}</td>
  </tr>
)

const Creation = ({
  project,
  onDone,
}: {
  readonly project: string
  readonly onDone: () => void
}) => (
  <Action
    label="New webhook"
    title="New webhook"
    confirm="Create"
    run={async (fields) => {
      const types = textOf(fields, "types")
        .split(/[\s,]+/)
        .filter(Boolean)
      const { data } = await api.webhooks.create({
        project_id: project,
        url: textOf(fields, "url"),
        ...(types.length > 0 && { event_types: types }),
      })
      return { message: "The webhook was created. This is its secret.", once: data.secret }
    }}
    onDone={onDone}
  >
    <TextField label="URL" name="url" type="url" required maxLength={2048} />
    <TextField label="Types of events" hint="separated by commas; all without" name="types" />
  </Action>
)

/** The list of webhooks. */
export const WebhooksScreen = ({ project }: { readonly project: string }) => {
  const webhooks = useLoad(
    async (signal) => (await api.webhooks.health({ project_id: project }, { signal })).data,
  )
  const mayCreate = useMay("client")
  return (
    <ProjectScreen
      project={project}
      tab="webhooks"
      actions={
        mayCreate && webhooks.value && <Creation project={project} onDone={webhooks.reload} />
      }
    >
      <Loaded from={webhooks}>
        {(all) => (
          <Table
            label="Webhooks"
            columns={["URL", "State", "Failures in a row", "Types"]}
            isEmpty={all.length === 0}
            empty="There are no webhooks."
          >
            {all.map((webhook) => (
              <Row key={webhook.id} project={project} of={webhook} />
            ))}
          </Table>
        )}
      </Loaded>
    </ProjectScreen>
  )
}
