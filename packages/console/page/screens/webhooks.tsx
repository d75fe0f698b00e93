/** A project's webhooks. */

import type { WebhookHealth } from "@tenure/client"
import { api } from "../lib/api.ts"
import { useMay } from "../lib/identity.ts"
import { to } from "../lib/route.ts"
import { listOf, stateOf, typesOf } from "../lib/webhooks.ts"
import { Action, givenOf, textOf } from "../parts/action.tsx"
import { WebhookFields, limitsOf } from "../parts/fields.tsx"
import { Latest } from "../parts/latest.tsx"
import { Loaded, useLoad } from "../parts/load.tsx"
import { Empty, ProjectScreen, Table } from "../parts/screen.tsx"
import { State, Url, cappedOf } from "../parts/text.tsx"

const Row = ({ of, project }: { readonly project: string; readonly of: WebhookHealth }) => {
  return (
    <tr>
      <td class="long">
        <a data-row href={to("projects", project, "webhooks", of.id)}>
          <Url of={of.url} />
        </a>
      </td>
      <td>
        <State of={stateOf(of)} />
      </td>
      <td>
        <Latest of={of.last_attempt} />
      </td>
      <td class="number">{cappedOf(of.waiting)}</td>
      <td class="long spare">{typesOf(of.event_types)}</td>
    </tr>
  )
}

const Creation = (props: { readonly project: string; readonly onDone: () => void }) => (
  <Action
    label="New webhook"
    title="New webhook"
    confirm="Create"
    isMain
    run={async (fields) => {
      const types = listOf(textOf(fields, "types"))
      const description = givenOf(fields, "description")
      const { data } = await api.webhooks.create({
        project_id: props.project,
        url: textOf(fields, "url"),
        ...(types.length > 0 && { event_types: types }),
        ...(description !== undefined && { description }),
        ...limitsOf(fields),
      })
      return { message: "The webhook was created. This is its secret.", shownOnce: data.secret }
    }}
    onDone={props.onDone}
  >
    <WebhookFields />
  </Action>
)

/** The webhook list. */
export const WebhooksScreen = ({ project }: { readonly project: string }) => {
  const webhooks = useLoad(
    async (signal) => (await api.webhooks.health({ project_id: project }, { signal })).data,
  )
  const mayCreate = useMay("client")
  const creation = mayCreate && webhooks.value && (
    <Creation project={project} onDone={webhooks.reload} />
  )
  const isEmpty = webhooks.value?.length === 0
  return (
    <ProjectScreen project={project} tab="webhooks" actions={!isEmpty && creation}>
      <Loaded from={webhooks}>
        {(all) =>
          all.length === 0 ? (
            <Empty
              says="There are no webhooks yet: register a URL, and Tenure sends it each event."
              line={`npx tenure webhooks create https://example.com/hook --project ${project}`}
            >
              {creation}
            </Empty>
          ) : (
            <Table
              label="Webhooks"
              columns={[
                "URL",
                "State",
                "Last attempt",
                { name: "Waiting", isNumber: true },
                "Types",
              ]}
            >
              {all.map((webhook) => (
                <Row key={webhook.id} project={project} of={webhook} />
              ))}
            </Table>
          )
        }
      </Loaded>
    </ProjectScreen>
  )
}
