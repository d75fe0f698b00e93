/** A project at a glance: problems first, then the days ahead. */

import type { WebhookHealth } from "@tenure/client"
import { useState } from "preact/hooks"
import { api } from "../lib/api.ts"
import { useMay } from "../lib/identity.ts"
import { to } from "../lib/route.ts"
import { stateOf } from "../lib/webhooks.ts"
import { Attention, type Need } from "../parts/attention.tsx"
import { Loaded, useLoad } from "../parts/load.tsx"
import { ProjectScreen, toTab } from "../parts/screen.tsx"
import { Ago, Figure, State, amountOf } from "../parts/text.tsx"
import { BulkExtensions, ExtendAll, ExtendAllBy } from "./bulk-extensions.tsx"
import { Enable } from "./webhook.tsx"
import { Url } from "./webhooks.tsx"

// How often webhooks are asked for, in milliseconds.
const interval = 20_000

const needsOf = (
  project: string,
  webhooks: ReadonlyArray<WebhookHealth>,
  onDone: (() => void) | undefined,
): ReadonlyArray<Need> =>
  webhooks.flatMap((webhook) => {
    const { disabled_at, failing_since, failures, id, url } = webhook
    const since = disabled_at ?? failing_since
    if (since === null) return []
    return [
      {
        key: id,
        what: (
          <a data-row href={to("projects", project, "webhooks", id)}>
            <Url of={url} />
          </a>
        ),
        why: (
          <>
            <State of={stateOf(webhook)} /> {amountOf(failures, "failure")} in a row
          </>
        ),
        since: (
          <>
            since <Ago iso={since} />
          </>
        ),
        button:
          disabled_at !== null && onDone !== undefined ? (
            <Enable webhook={{ project_id: project, webhook_id: id }} onDone={onDone} />
          ) : (
            <a class="button" href={to("projects", project, "webhooks", id)}>
              Open
            </a>
          ),
      },
    ]
  })

/** A project at a glance. */
export const ProjectOverviewScreen = ({ project }: { readonly project: string }) => {
  const facts = useLoad(
    async (signal) => (await api.projects.get({ project_id: project }, { signal })).data,
  )
  const webhooks = useLoad(
    async (signal) => (await api.webhooks.health({ project_id: project }, { signal })).data,
    "",
    { everyMillis: interval },
  )
  const mayExtendAll = useMay("client")
  const mayRepair = useMay("operator")
  const [changes, setChanges] = useState(0)
  const reload = () => {
    facts.reload()
    setChanges((count) => count + 1)
  }
  return (
    <ProjectScreen
      project={project}
      tab="overview"
      actions={
        mayExtendAll &&
        facts.value && (
          <>
            <ExtendAll project={project} onDone={reload} />
            <ExtendAllBy project={project} onDone={reload} />
          </>
        )
      }
    >
      <Loaded from={facts}>
        {({ memberships, webhooks: count }) => (
          <>
            {webhooks.value !== undefined && (
              <Attention
                fine="No webhook fails."
                needs={needsOf(project, webhooks.value, mayRepair ? webhooks.reload : undefined)}
              />
            )}
            <dl class="figures">
              <Figure name="Memberships">
                <a href={toTab(project, "members")}>{memberships.toLocaleString("en")}</a>
              </Figure>
              <Figure name="Webhooks">
                <a href={toTab(project, "webhooks")}>{count.toLocaleString("en")}</a>
              </Figure>
            </dl>
            <BulkExtensions key={changes} project={project} onDone={reload} />
          </>
        )}
      </Loaded>
    </ProjectScreen>
  )
}
