/** The data of an event, once somebody asks for it. */

import { api } from "../api.ts"
import { Hidden } from "./hidden.tsx"
import { Json } from "./text.tsx"

/** The data of an event. */
export const EventData = ({ id, project }: { readonly project: string; readonly id: string }) => (
  <Hidden
    what="data"
    load={async (signal) =>
      (await api.events.get({ project_id: project, event_id: id }, { signal })).data
    }
  >
    {({ data }) => <Json value={data} />}
  </Hidden>
)
