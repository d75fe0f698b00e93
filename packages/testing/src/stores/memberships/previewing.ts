/** Previews of what a change publishes, compared with what it then publishes. */

import { expect } from "@effect/vitest"
import {
  EventType,
  MembershipStore,
  Millis,
  Outbox,
  type PreviewedChange,
  WebhookId,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import {
  change as changeOf,
  in2027,
  in2028,
  in2029,
  p1,
  sequenceOf,
  u1,
  u2,
  u3,
} from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { disable } from "../outbox/steps.ts"
import { addWebhook, dayMillis, expectFailure } from "../steps.ts"
import { nowhere, prepared } from "./model.ts"

const types = ["membership.extended", "memberships.extended", "memberships.imported", "other"]

/** Makes a change, whose event has a type. Returns what is to be previewed, and how to make it. */
const changes = {
  extend: (type: string) => {
    const extension = { ...changeOf(p1, type), userId: u1, endDate: in2028 }
    return {
      change: extension,
      previewed: { _tag: "One", userId: u1 } satisfies PreviewedChange,
      make: MembershipStore.use((store) => store.extend(extension)),
    }
  },
  extendAll: (type: string) => {
    const extension = {
      ...changeOf(p1, type),
      bulk: { mode: "extendBy", by: Millis(dayMillis) } as const,
    }
    return {
      change: extension,
      previewed: { _tag: "All" } satisfies PreviewedChange,
      make: MembershipStore.use((store) => store.extendAll(extension)),
    }
  },
  import: (type: string) => {
    const imported = {
      ...changeOf(p1, type),
      memberships: [u1, u3].map((userId) => ({ userId, endDate: in2029 })),
    }
    return {
      change: imported,
      previewed: { _tag: "Import", size: 2 } satisfies PreviewedChange,
      make: MembershipStore.use((store) => store.import(imported)),
    }
  },
}

const kinds = ["extend", "extendAll", "import"] as const

const receivers = fc.array(
  fc.record({
    eventTypes: fc.option(fc.subarray(types, { minLength: 1 }), { nil: undefined }),
    isDisabled: fc.boolean(),
  }),
  { maxLength: 14 },
)

/** Declares the tests. */
export const previewingTests = ({ describe, property, test }: StoreTests): void => {
  describe("previewPublication", () => {
    property(
      "tells the sequence, the metadata and the webhooks of what is then published",
      fc.record({
        receivers,
        steps: fc.array(fc.tuple(fc.constantFrom(...kinds), fc.constantFrom(...types)), {
          minLength: 1,
          maxLength: 4,
        }),
        metadata: fc.constantFrom({}, { plan: "gold" }),
      }),
      Effect.fnUntraced(function* ({ metadata, receivers: asked, steps }) {
        const store = yield* prepared
        const outbox = yield* Outbox
        for (const { eventTypes, isDisabled } of asked) {
          const webhook = yield* addWebhook(p1, { eventTypes: eventTypes?.map(EventType) })
          if (isDisabled) yield* disable([webhook])
        }
        yield* store.grant({ ...changeOf(p1, "unheard"), userId: u1, endDate: in2027, metadata })
        for (const [kind, type] of steps) {
          const { change, make, previewed } = changes[kind](type)
          const preview = yield* store.previewPublication(p1, EventType(type), previewed)
          yield* make
          const published = yield* outbox.find(p1, change.event.id)
          expect(preview.sequence).toBe(sequenceOf(published))
          expect(preview.total).toBe(published.deliveries.length)
          expect(preview.first.map(({ webhookId }) => WebhookId(webhookId))).toEqual(
            published.deliveries.slice(0, 10).map(({ webhookId }) => webhookId),
          )
          expect(preview.first.map(({ url }) => url)).toEqual(
            preview.first.map(({ webhookId }) => `https://receiver.example/${webhookId}`),
          )
          expect(JSON.parse(preview.metadata ?? "{}")).toEqual(kind === "extend" ? metadata : {})
        }
      }),
    )

    test("changes nothing, and fails without the project", function* () {
      const store = yield* prepared
      const type = EventType("other")
      const preview = (previewed: PreviewedChange, projectId = p1) =>
        store.previewPublication(projectId, type, previewed)
      const all: ReadonlyArray<PreviewedChange> = [
        { _tag: "One", userId: u2 },
        { _tag: "All" },
        { _tag: "Import", size: 3 },
      ]
      for (const previewed of all) {
        expect(yield* preview(previewed)).toEqual(yield* preview(previewed))
        yield* expectFailure("ProjectNotFound", preview(previewed, nowhere))
      }
      expect(yield* store.history(p1, { userId: u2, limit: 10 })).toHaveLength(1)
    })
  })
}
