/** Events as responses show them. */

import * as Event from "../events/Event.ts"
import { timeOf } from "./Operation.ts"

/** Returns what a response has of an event. */
export const of = (event: Event.Event) => ({
  id: event.id,
  type: event.type,
  timestamp: timeOf(event.at),
  data: Event.dataOf(event),
})
