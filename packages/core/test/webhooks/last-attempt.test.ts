/** What is logged, and what the host is told, of deliveries that get no further attempts. */

import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { type Event, hooksLayer as hooks } from "../../src/events/event.ts"
import {
  addWebhook,
  dispatching,
  pass,
  projectId,
  publish,
  publishMany,
  status,
  url,
} from "./dispatching.ts"

type Line = Readonly<Record<string, unknown>>

/** Collects what is logged meanwhile. */
const logging = (lines: Array<Line>) =>
  Logger.layer([
    Logger.make(({ fiber, message }) => {
      const annotations = fiber.getRef(References.CurrentLogAnnotations)
      lines.push({ message: String(message), ...annotations })
    }),
  ])

describe("the last attempt", () => {
  it.effect("of a delivery is logged", () => {
    const lines: Array<Line> = []
    return dispatching(
      { [url]: () => status(500) },
      () =>
        Effect.gen(function* () {
          const { id } = yield* addWebhook()
          yield* publish
          yield* pass("1 minute")
          expect(lines).toEqual([
            {
              message: "A delivery was given up",
              project_id: projectId,
              webhook_id: id,
              event_id: expect.any(String),
              attempts: 2,
              status: 500,
            },
          ])
        }),
      { retrySchedule: ["5 seconds"] },
    ).pipe(Effect.provide(logging(lines)))
  })

  it.effect("for a webhook is logged once, whatever else is in flight", () => {
    const lines: Array<Line> = []
    const told: Array<Event> = []
    return dispatching({ [url]: () => Effect.delay(status(410), "1 second") }, () =>
      Effect.gen(function* () {
        yield* addWebhook()
        yield* publishMany(4)
        yield* pass("1 minute")
        const messages = lines.map(({ message }) => message)
        expect(messages.filter((message) => message === "A webhook was disabled")).toHaveLength(1)
        expect(messages.filter((message) => message === "A delivery was given up")).toHaveLength(3)
        expect(told.filter(({ type }) => type === "webhook.disabled")).toHaveLength(1)
      }),
    ).pipe(
      Effect.provide(logging(lines)),
      Effect.provide(hooks({ onEvent: (event) => void told.push(event) })),
    )
  })
})
