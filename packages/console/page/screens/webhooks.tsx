/** The webhooks of a project. */

import type { Webhook, WebhookDetails } from "@tenure/client"
import { api } from "../api.ts"
import { Action, textOf } from "../parts/action.tsx"
import { TextField } from "../parts/fields.tsx"
import { Loaded, useLoad } from "../parts/load.tsx"
import { ProjectScreen, Table } from "../parts/screen.tsx"
import { State } from "../parts/text.tsx"
import { to } from "../router.ts"
import { useMay } from "../who.ts"

// Each state is a request: no more than limits let through at once.
const mostStates = 15

/** The state of a webhook in a word. */
export const stateOf = ({ disabled_at, failing_since }: WebhookDetails): string => {
  if (disabled_at !== null) return "disabled"
  return failing_since === null ? "enabled" : "failing"
}

/** The types that a webhook gets, in words. */
export const typesOf = (types: ReadonlyArray<string> | null): string =>
  types === null ? "all" : types.join(", ")

const Row = (props: {
  readonly project: string
  readonly webhook: Webhook
  readonly isStateLoaded: boolean
}) => {
  const { isStateLoaded, project, webhook } = props
  const { value } = useLoad(async (signal) =>
    isStateLoaded
      ? (await api.webhooks.get({ project_id: project, webhook_id: webhook.id }, { signal })).data
      : undefined,
  )
  return (
    <tr>
      <td class="long">
        <a href={to("projects", project, "webhooks", webhook.id)}>{webhook.url}</a>
      </td>
      <td>{value && <State of={stateOf(value)} />}</td>
      <td class="number">{value?.failures}</td>
      <td>{value && typesOf(value.event_types)}</td>
    </tr>
  )
}

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
    async (signal) => (await api.webhooks.list({ project_id: project }, { signal })).data,
  )
  const mayCreate = useMay("client")
  return (
    <ProjectScreen
      project={project}
      tab="webhooks"
      actions={mayCreate && <Creation project={project} onDone={webhooks.reload} />}
    >
      <Loaded from={webhooks}>
        {(all) => (
          <Table
            label="Webhooks"
            columns={["URL", "State", "Failures in a row", "Types"]}
            isEmpty={all.length === 0}
            empty="There are no webhooks."
          >
            {all.map((webhook, index) => (
              <Row
                key={webhook.id}
                project={project}
                webhook={webhook}
                isStateLoaded={index < mostStates}
              />
            ))}
          </Table>
        )}
      </Loaded>
    </ProjectScreen>
  )
}
