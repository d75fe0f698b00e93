/** Replayed events, and the order between pages, on a log read in pages with two events. */

import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import fc from "fast-check"
import {
  type IdempotencyKey,
  type ReplayedResponse,
  replayedResponse,
} from "../../src/base/change-context.ts"
import { ProjectId } from "../../src/base/values.ts"
import {
  EventId,
  EventNotFound,
  EventType,
  knownEventTypes,
  makeEvent,
} from "../../src/events/event.ts"
import { replayPage } from "../../src/webhooks/inputs.ts"
import {
  type ReplayPage,
  type ReplaySelection,
  formatReplayCursor,
  formatReplayPage,
  makeReplays,
  replayKindOf,
  replaySelection,
} from "../../src/webhooks/replay.ts"
import { WebhookId } from "../../src/webhooks/webhook.ts"

const projectId = ProjectId("p1")
const webhookId = WebhookId("00000000-0000-4000-8000-000000000001")
const otherId = WebhookId("00000000-0000-4000-8000-000000000002")
const webhook = { projectId, webhookId }

const idOf = (number: number): EventId =>
  EventId(`00000000-0000-7000-8000-${String(number).padStart(12, "0")}`)

const eventOf = (type: EventType, data: unknown) =>
  makeEvent({ id: idOf(1), projectId, type, at: 0, data })

const read = (given: object) =>
  Result.map(replayPage.fromHost({ ...webhook, since: new Date(0), ...given }), replaySelection)

describe("what became of an event", () => {
  const payment = eventOf(EventType("payment.completed"), { webhook_id: webhookId })

  it("is what became of its delivery, unless that waits or was cancelled", () => {
    const states = [undefined, "failed", "delivered", "waiting", "cancelled"] as const
    expect(states.map((state) => replayKindOf(payment, webhookId, state))).toEqual([
      "missed",
      "failed",
      "delivered",
      undefined,
      undefined,
    ])
  })

  it.each([undefined, "failed", "delivered"] as const)("is nothing for a %s ping", (state) => {
    const ping = eventOf(knownEventTypes.ping, {})
    expect(replayKindOf(ping, webhookId, state)).toBeUndefined()
  })

  it.each([knownEventTypes.failing, knownEventTypes.disabled])(
    "is nothing if it is %s about the webhook itself, which never got it",
    (type) => {
      const news = eventOf(type, { webhook_id: webhookId })
      expect(replayKindOf(news, webhookId, undefined)).toBeUndefined()
      expect(replayKindOf(news, otherId, undefined)).toBe("missed")
      expect(replayKindOf(eventOf(type, {}), webhookId, undefined)).toBe("missed")
    },
  )
})

describe("a selection", () => {
  it("has what was missed or given up, unless it says otherwise", () => {
    for (const [given, selected] of [
      [{}, { kinds: ["missed", "failed"], isDryRun: false, position: undefined }],
      [{ only: "missed" }, { kinds: ["missed"] }],
      [{ only: "failed" }, { kinds: ["failed"] }],
      [{ only: "all" }, { kinds: ["missed", "failed", "delivered"] }],
      [
        { dryRun: true, types: ["a.b"] },
        { isDryRun: true, types: ["a.b"] },
      ],
      [{ since: new Date(5) }, { since: 5 }],
    ] as const) {
      expect(read(given)).toMatchObject({ success: selected })
    }
  })

  it("goes on where a page ended", () => {
    const ids = fc.uuid().map((id) => EventId(id))
    fc.assert(
      fc.property(ids, ids, (after, until) => {
        const cursor = formatReplayCursor({ after, until })
        expect(read({ after: cursor })).toMatchObject({ success: { position: { after, until } } })
      }),
    )
  })

  it.each([
    ["since", "yesterday"],
    ["types", []],
    ["only", "delivered"],
    ["dryRun", "yes"],
    ["after", 5],
  ])("names %s if it is wrong", (field, value) => {
    expect(read({ [field]: value })).toMatchObject({ failure: { _tag: "InvalidInput", field } })
  })

  const cursor = formatReplayCursor({ after: idOf(1), until: idOf(2) })

  it.each(["", ".", idOf(1), `${cursor}.`, `${cursor}.${idOf(3)}`, `${idOf(1)}.`, `.${idOf(1)}`])(
    "cannot go on at '%s'",
    (after) => {
      expect(read({ after })).toMatchObject({
        failure: {
          field: "after",
          problem: "must be the `next` of an earlier page whose events are still kept",
        },
      })
    },
  )
})

/** Sends the events 1 to `count`, two by page, and records the calls. With a key, it does so once. */
const logOf = (count: number) => {
  const calls: Array<ReplaySelection & { readonly key: string | undefined }> = []
  const answers = new Map<string, string>()
  const replayMany = (_: unknown, selection: ReplaySelection, idempotency?: IdempotencyKey) =>
    Effect.suspend((): Effect.Effect<ReplayPage | ReplayedResponse, EventNotFound> => {
      calls.push({ ...selection, key: idempotency?.key })
      const answer = idempotency && answers.get(idempotency.key)
      if (answer !== undefined) return Effect.succeed(replayedResponse(answer))
      const { position } = selection
      const from = position === undefined ? 0 : Number(position.after.slice(-12))
      if (from > count) return new EventNotFound({ eventId: idOf(from) })
      const to = Math.min(count, from + 2)
      const next = to < count ? { after: idOf(to), until: idOf(count) } : undefined
      const page: ReplayPage = { replayed: to - from, next }
      if (idempotency !== undefined) answers.set(idempotency.key, formatReplayPage(page))
      return Effect.succeed(page)
    })
  return { calls, replays: makeReplays({ replayMany }) }
}

const selection: ReplaySelection = {
  since: 0,
  types: undefined,
  kinds: ["missed"],
  position: undefined,
  isDryRun: false,
}

const onceWith = (onReplay?: () => void): IdempotencyKey => ({
  owner: "",
  key: "k",
  fingerprint: "f",
  onReplay,
})

describe("all pages", () => {
  it.effect("send each event once, and count them", () =>
    Effect.gen(function* () {
      const { calls, replays } = logOf(5)
      expect(yield* replays.all({ webhook, selection, idempotency: undefined })).toBe(5)
      const same = { ...selection, key: undefined }
      expect(calls).toEqual([
        same,
        { ...same, position: { after: idOf(2), until: idOf(5) } },
        { ...same, position: { after: idOf(4), until: idOf(5) } },
      ])
    }),
  )

  it.effect("have keys that differ by page and are the same in a repetition", () =>
    Effect.gen(function* () {
      const { calls, replays } = logOf(5)
      let repeated = 0
      const call = { webhook, selection, idempotency: onceWith(() => repeated++) }
      expect(yield* replays.all(call)).toBe(5)
      expect(repeated).toBe(0)
      expect(yield* replays.all(call)).toBe(5)
      expect(repeated).toBe(3)
      const keys = calls.map(({ key }) => key)
      expect(keys[0]).toBe("k")
      expect(new Set(keys).size).toBe(3)
      expect(keys.slice(3)).toEqual(keys.slice(0, 3))
      // Another call, on the same events, has others.
      yield* replays.all({ ...call, idempotency: { ...call.idempotency, key: "l" } })
      expect(new Set(calls.map(({ key }) => key)).size).toBe(6)
    }),
  )
})

describe("a page", () => {
  it.effect("is the same if it is repeated, and the caller is told", () =>
    Effect.gen(function* () {
      let repeated = 0
      const { replays } = logOf(3)
      const call = { webhook, selection, idempotency: onceWith(() => repeated++) }
      const first = yield* replays.page(call)
      expect(first).toEqual({ replayed: 2, next: { after: idOf(2), until: idOf(3) } })
      expect(yield* replays.page(call)).toEqual(first)
      const last = { ...call, selection: { ...selection, position: first.next } }
      const other = { ...last, idempotency: { ...call.idempotency, key: "other" } }
      expect(yield* replays.page(other)).toEqual({ replayed: 1, next: undefined })
      expect(yield* replays.page(other)).toEqual({ replayed: 1, next: undefined })
      expect(repeated).toBe(2)
    }),
  )

  it.effect("that only counts does not use up the key", () =>
    Effect.gen(function* () {
      const { calls, replays } = logOf(1)
      const counting = { ...selection, isDryRun: true }
      yield* replays.page({ webhook, selection: counting, idempotency: onceWith() })
      expect(calls).toEqual([{ ...counting, key: undefined }])
    }),
  )

  it.effect("cannot go on after an event that is not kept any more", () =>
    Effect.gen(function* () {
      const gone = { ...selection, position: { after: idOf(9), until: idOf(9) } }
      const page = logOf(1).replays.page({ webhook, selection: gone, idempotency: undefined })
      expect(yield* Effect.flip(page)).toMatchObject({ _tag: "InvalidInput", field: "after" })
    }),
  )
})
