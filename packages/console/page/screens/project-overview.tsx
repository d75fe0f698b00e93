/** A project at a glance: problems first, then the days ahead. */

import type { WebhookHealth } from "@tenure/client"
import { useState } from "preact/hooks"
import { api } from "../lib/api.ts"
import { useMay } from "../lib/identity.ts"
import { stateOf } from "../lib/webhooks.ts"
import { AnswerTimes, ProjectHour } from "../parts/activity.tsx"
import { Attention, type Need } from "../parts/attention.tsx"
import { Ends, useEnds } from "../parts/ends.tsx"
import { webhookNeed } from "../parts/latest.tsx"
import { Loaded, useLoad } from "../parts/load.tsx"
import { useProject } from "../parts/project.tsx"
import { ProjectScreen } from "../parts/screen.tsx"
import { Url } from "../parts/text.tsx"
import { BulkExtensions, ExtendAll, ExtendAllBy } from "./bulk-extensions.tsx"

// How often webhooks are asked for, in milliseconds.
const interval = 20_000

const needsOf = (
  project: string,
  webhooks: ReadonlyArray<WebhookHealth>,
  onDone: () => void,
): ReadonlyArray<Need> =>
  webhooks.flatMap((webhook) => {
    const { disabled_at, disabled_by, failing_since, id, last_attempt, url, waiting } = webhook
    const since = disabled_at ?? failing_since
    const state = stateOf(webhook)
    if (since === null || state === "enabled" || disabled_by === "request") return []
    const isUnreadable = last_attempt?.error === "SecretUnreadable"
    const reason = state === "failing" && isUnreadable ? ("unreadable_secret" as const) : state
    const need = { project_id: project, id, reason, since, last_attempt, waiting }
    return [webhookNeed(need, <Url of={url} />, onDone)]
  })

/** A project at a glance. */
export const ProjectOverviewScreen = ({ project }: { readonly project: string }) => {
  const facts = useProject(project)
  const webhooks = useLoad(
    async (signal) => (await api.webhooks.health({ project_id: project }, { signal })).data,
    "",
    { everyMillis: interval },
  )
  const ends = useEnds(project)
  const mayExtendAll = useMay("client")
  const [changes, setChanges] = useState(0)
  const reload = () => {
    ends.reload()
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
            <ExtendAll project={project} zone={facts.value.time_zone} onDone={reload} />
            <ExtendAllBy project={project} onDone={reload} />
          </>
        )
      }
    >
      <Loaded from={facts}>
        {() => (
          <>
            {webhooks.value !== undefined && (
              <Attention
                fine="No webhook fails."
                needs={needsOf(project, webhooks.value, webhooks.reload)}
              />
            )}
            <Ends of={ends} project={project} />
            <div class="panels">
              <ProjectHour project={project} />
              <AnswerTimes project={project} webhooks={webhooks} />
            </div>
            <BulkExtensions key={changes} project={project} onDone={reload} />
          </>
        )}
      </Loaded>
    </ProjectScreen>
  )
}
