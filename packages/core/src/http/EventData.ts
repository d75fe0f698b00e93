/** Events as responses show them. */

import * as Event from "../events/Event.ts"
import { timeOf } from "./Operation.ts"

/** Returns what a response has of an event: of its data, nothing unless it is to be shown. */
export const shown = (event: Event.Event, hasData: boolean) => ({
  id: event.id,
  type: event.type,
  timestamp: timeOf(event.at),
  data: hasData ? Event.dataOf(event) : null,
})

/** Returns what a response has of an event. */
export const of = (event: Event.Event) => shown(event, true)
