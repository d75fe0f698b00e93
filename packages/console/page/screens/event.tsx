/** An event and its deliveries. */

import { api } from "../lib/api.ts"
import { useMay } from "../lib/identity.ts"
import { to } from "../lib/route.ts"
import { Deliveries } from "../parts/deliveries.tsx"
import { Loaded, useLoad } from "../parts/load.tsx"
import { Copy, ProjectScreen } from "../parts/screen.tsx"
import { EventData } from "../parts/sensitive.tsx"
import { Ago, Facts, Time } from "../parts/text.tsx"
import { SendAgain } from "./webhook.tsx"

/** An event. */
export const EventScreen = ({ id, project }: { readonly project: string; readonly id: string }) => {
  const event = useLoad(
    async (signal) =>
      (await api.events.get({ project_id: project, event_id: id, data: "false" }, { signal })).data,
  )
  const mayReplay = useMay("operator")
  return (
    <ProjectScreen
      project={project}
      tab="events"
      title={event.value?.type ?? "Event"}
      sub={event.value && <Ago iso={event.value.timestamp} />}
      actions={
        <button type="button" onClick={event.reload}>
          Refresh
        </button>
      }
    >
      <Loaded from={event}>
        {({ deliveries, timestamp }) => (
          <>
            <Facts
              of={[
                ["Time (UTC)", <Time iso={timestamp} isExact />],
                [
                  "Id",
                  <span class="id">
                    <code>{id}</code>
                    <Copy text={id} what="the id" />
                  </span>,
                ],
                ["Data", <EventData project={project} id={id} />],
              ]}
            />
            <h2>Deliveries</h2>
            {deliveries.length === 0 ? (
              <p class="dim">No webhook was to get it.</p>
            ) : (
              <Deliveries
                what="Webhook"
                items={deliveries.map((delivery) => {
                  const webhook = { project_id: project, webhook_id: delivery.webhook_id }
                  return {
                    delivery,
                    of: { ...webhook, event_id: id },
                    name: <code>{delivery.webhook_id}</code>,
                    actions: (
                      <>
                        <a href={to("projects", project, "webhooks", delivery.webhook_id)}>
                          The webhook
                        </a>
                        {mayReplay && delivery.state !== "cancelled" && (
                          <SendAgain webhook={webhook} event={id} onDone={event.reload} />
                        )}
                      </>
                    ),
                  }
                })}
              />
            )}
          </>
        )}
      </Loaded>
    </ProjectScreen>
  )
}
