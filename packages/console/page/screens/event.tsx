/** An event and its deliveries. */

import { api } from "../lib/api.ts"
import { useMay } from "../lib/identity.ts"
import { to } from "../lib/route.ts"
import { DeliveryRow } from "../parts/deliveries.tsx"
import { Loaded, useLoad } from "../parts/load.tsx"
import { ProjectScreen } from "../parts/screen.tsx"
import { EventData } from "../parts/sensitive.tsx"
import { Facts, Time } from "../parts/text.tsx"
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
      actions={
        <button type="button" onClick={event.reload}>
          Refresh
        </button>
      }
    >
      <Loaded from={event}>
        {({ deliveries, timestamp, type }) => (
          <>
            <Facts
              of={[
                ["Type", type],
                ["Time (UTC)", <Time iso={timestamp} />],
                ["Id", <code>{id}</code>],
                ["Data", <EventData project={project} id={id} />],
              ]}
            />
            <h2>Deliveries</h2>
            {deliveries.length === 0 && <p class="dim">No webhook was to get it.</p>}
            <ul class="rows">
              {deliveries.map((delivery) => (
                <DeliveryRow
                  key={delivery.webhook_id}
                  delivery={delivery}
                  name={<code>{delivery.webhook_id}</code>}
                  of={{ project_id: project, webhook_id: delivery.webhook_id, event_id: id }}
                >
                  <div class="buttons">
                    <a href={to("projects", project, "webhooks", delivery.webhook_id)}>
                      The webhook
                    </a>
                    {mayReplay && delivery.state !== "cancelled" && (
                      <SendAgain
                        webhook={{ project_id: project, webhook_id: delivery.webhook_id }}
                        event={id}
                        onDone={event.reload}
                      />
                    )}
                  </div>
                </DeliveryRow>
              ))}
            </ul>
          </>
        )}
      </Loaded>
    </ProjectScreen>
  )
}
