/** Backlogs of events, published while nobody delivers them. */

import { makeEvent, newEventId } from "@tenure/core/internal"
import { EventType, Outbox, ProjectId } from "@tenure/core/store"
import { postgres } from "@tenure/postgres"
import * as Effect from "effect/Effect"

/** The data of an event: when it was published, and about as much as usual. */
export const data = () => ({ at: Date.now(), padding: "x".repeat(200) })

/** Makes an event. */
export const eventOf = (projectId: string) => {
  const at = Date.now()
  return makeEvent({
    id: newEventId(crypto, at),
    projectId: ProjectId(projectId),
    type: EventType("benchmark"),
    at,
    data: data(),
  })
}

/** Publishes this many events, of each project in turn. */
export const fillBacklog = (
  { schema, url }: { readonly url: string; readonly schema: string },
  projectIds: ReadonlyArray<string>,
  count: number,
): Promise<void> =>
  Effect.runPromise(
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const turns = Array.from(
        { length: count },
        (_, index) => projectIds[index % projectIds.length],
      )
      const publish = (projectId = "") => outbox.publish(eventOf(projectId))
      yield* Effect.forEach(turns, publish, { concurrency: 512, discard: true })
    }).pipe(Effect.provide(postgres({ url, schema }))),
  )
