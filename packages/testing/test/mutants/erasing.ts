/** Stores that are wrong about erasing persons. */

import {
  type AuditRow,
  FeedStore,
  MembershipStore,
  Outbox,
  completeEvent,
  hostOrigin,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { answered } from "../../src/stores/outbox/steps.ts"
import { change, in2027, p2 } from "../../src/support/fixtures.ts"
import { mutantsOf } from "./Mutant.ts"

const wasErased = ({ action, userId }: AuditRow): boolean =>
  userId === undefined && ["granted", "extended", "ended"].includes(action)

const memberships = mutantsOf(MembershipStore, {
  "only ends the membership of a person to erase": ({ end }) => ({
    erase: (erasure) =>
      end(erasure).pipe(Effect.catchTag("MembershipNotFound", () => Effect.succeed(undefined))),
  }),

  "erases only members": ({ erase, find }) => ({
    erase: (erasure) =>
      Effect.matchEffect(find(erasure.projectId, erasure.userId), {
        onSuccess: () => erase(erasure),
        onFailure: () => Effect.succeed(undefined),
      }),
  }),

  "keeps the membership of a person who is erased": ({ erase, grant }) => ({
    erase: Effect.fnUntraced(function* (erasure) {
      const result = yield* erase(erasure)
      const { projectId, userId } = erasure
      yield* Effect.orDie(grant({ ...change(projectId), userId, endDate: in2027 }))
      return result
    }),
  }),

  "says of everybody who is erased that there was a membership": ({ erase }) => ({
    erase: (erasure) =>
      Effect.map(erase(erasure), (result) => result ?? completeEvent(erasure.event, 0)),
  }),

  "erases persons of projects that do not exist": ({ erase }) => ({
    erase: (erasure) =>
      Effect.catchTag(erase(erasure), "ProjectNotFound", () => Effect.succeed(undefined)),
  }),

  "forgets who erased a person": ({ erase }) => ({
    erase: (erasure) => erase({ ...erasure, origin: hostOrigin }),
  }),

  "says in the trail who was erased": ({ erase, history }) => {
    const erased: Array<AuditRow["userId"]> = []
    return {
      erase: (erasure) => {
        erased.push(erasure.userId)
        return erase(erasure)
      },
      history: (projectId, page) =>
        Effect.map(history(projectId, page), (rows) =>
          rows.map((row) => (row.action === "person_erased" ? { ...row, userId: erased[0] } : row)),
        ),
    }
  },

  "drops the changes of a person from the trail": ({ history }) => ({
    history: (projectId, page) =>
      Effect.map(history(projectId, page), (rows) => rows.filter((row) => !wasErased(row))),
  }),

  "keeps the reasons of a person's changes": ({ history }) => {
    const reasons = new Map<number, AuditRow["reason"]>()
    return {
      history: (projectId, page) =>
        Effect.map(history(projectId, page), (rows) =>
          rows
            .toReversed()
            .map((row, index) => {
              if (row.reason !== undefined) reasons.set(index, row.reason)
              return wasErased(row) ? { ...row, reason: reasons.get(index) } : row
            })
            .toReversed(),
        ),
    }
  },

  "erases a person in other projects, too": ({ erase }) => ({
    erase: (erasure) =>
      Effect.tap(erase(erasure), () => Effect.ignore(erase({ ...erasure, ...change(p2) }))),
  }),

  "erases whoever came back, if the erasure is repeated": ({ erase }) => ({
    erase: ({ once: _, ...erasure }) => erase(erasure),
  }),

  "publishes another event for an erasure": ({ erase }) => ({
    erase: (erasure) => erase({ ...erasure, event: change(erasure.projectId).event }),
  }),
})

const outboxes = mutantsOf(Outbox, {
  "keeps the user id in events": ({ find, publish }) => {
    const bodies = new Map<string, string>()
    return {
      publish: (event, ...rest) => {
        bodies.set(event.id, event.body)
        return publish(event, ...rest)
      },
      find: (projectId, eventId) =>
        Effect.map(find(projectId, eventId), (found) => ({
          ...found,
          body: bodies.get(eventId) ?? found.body,
        })),
    }
  },

  "delivers events with the user id": ({ claim, publish }) => {
    const bodies = new Map<string, string>()
    return {
      publish: (event, ...rest) => {
        bodies.set(event.id, event.body)
        return publish(event, ...rest)
      },
      claim: (options) =>
        Effect.map(claim(options), (claimed) => ({
          ...claimed,
          claims: claimed.claims.map((one) => ({
            ...one,
            event: { ...one.event, body: bodies.get(one.event.id) ?? one.event.body },
          })),
        })),
    }
  },

  "keeps what receivers have responded to events of a person": ({ deliveries }) => ({
    deliveries: (webhook, page) =>
      Effect.map(deliveries(webhook, page), (all) =>
        all.map((one) => ({ ...one, attempts: one.attempts.map(() => answered(200)) })),
      ),
  }),
})

const feeds = mutantsOf(FeedStore, {
  "removes the reasons of others from the feed": ({ read }) => ({
    read: (projects, from, size) =>
      Effect.map(read(projects, from, size), (page) => ({
        ...page,
        events: page.events.some(({ body }) => body.includes('"user_id":null'))
          ? page.events.map((one) => ({
              ...one,
              body: one.body.replace(/"reason":"[^"]*"/, '"reason":null'),
            }))
          : page.events,
      })),
  }),

  "drops the events of a person from the feed": ({ read }) => ({
    read: (projects, from, size) =>
      Effect.map(read(projects, from, size), (page) => ({
        ...page,
        events: page.events.filter(({ body }) => !body.includes('"user_id":null')),
      })),
  }),
})

/** Stores that are wrong about erasing persons. */
export const erasing = [...memberships, ...outboxes, ...feeds]
