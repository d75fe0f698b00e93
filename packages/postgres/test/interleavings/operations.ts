/** The operations whose interleavings are run: all that change something, and what they answer. */

import {
  derivedEventId,
  draftEvent,
  formatEndDate,
  isReplayedResponse,
  makeDecideAnnouncement,
  makeEvent,
  reminderLeads,
} from "@tenure/core/internal"
import {
  type AttemptResult,
  type BulkChange,
  type Change,
  type Claim,
  type DecideAnnouncement,
  EndDate,
  type Event,
  type EventId,
  EventType,
  type IdempotencyKey,
  MembershipStore,
  Millis,
  Outbox,
  ProjectId,
  type StorePorts,
  StoredSecret,
  type StoredWebhook,
  UserId,
  WebhookId,
  WebhookStore,
  joinMemberships,
  knownEventTypes,
  hostOrigin,
  settingChanges,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { Database } from "../../src/connection/executor.ts"

const hourMillis = 3_600_000
export const dayMillis = 24 * hourMillis

export const [p1, p2, p3] = [ProjectId("p1"), ProjectId("p2"), ProjectId("p3")]
/** Before everything, in milliseconds since the epoch. */
export const longAgo = -1e13

/** Whose membership the operations on one change, the others of its project, and somebody without one. */
export const own = UserId("1001")
export const bulk = UserId("1002")
export const later = UserId("1003")
const nobody = UserId("1004")
export const users = [own, bulk, later, nobody]

/** Which of two operations one is. They differ in what they set, so that results show what came of which. */
export type Slot = "first" | "second"

/** The names of the webhooks of `p1` that are there before: one is disabled. */
export type WebhookName = "healthy" | "other" | "disabled"

/** What is there before the operations. */
export interface Setting {
  /** When it was made, in milliseconds since the epoch. */
  readonly at: number
  readonly webhooks: Readonly<Record<WebhookName, StoredWebhook>>
  /** A claim of a delivery to the healthy webhook. */
  readonly claim: Claim
  /** The date that the membership of the operations has. */
  readonly expected: EndDate
  /** The two bulk extensions of the scene. */
  readonly bulkExtensions: readonly [EventId, EventId]
}

/** Does something. The answer is compared as JSON. */
export type Run = (
  setting: Setting,
  slot: Slot,
) => Effect.Effect<unknown, unknown, StorePorts | Database>

/** An operation. */
export interface Operation {
  readonly name: string
  readonly run: Run
  /** Calls that it commits together. Those of others may come between them. */
  readonly parts?: ReadonlyArray<Run>
  /** Whether its answer may be of several moments, and is not compared. */
  readonly isNotOne?: boolean
}

/** The dates that each operation sets. Those of the first are earlier. */
const dateOf = (slot: Slot, day: number): EndDate =>
  EndDate(Date.UTC(slot === "first" ? 2031 : 2036, 0, day))

const change = ({ at }: Setting, slot: string, type: EventType, more: object = {}): Change => ({
  projectId: p1,
  origin: hostOrigin,
  at,
  reason: undefined,
  event: draftEvent({
    id: derivedEventId(`${slot} ${type}`, at),
    projectId: p1,
    type,
    at,
    data: { project_id: p1, by: slot, ...more },
  }),
})

const store = <A, E>(use: (store: MembershipStore["Service"]) => Effect.Effect<A, E>) =>
  Effect.flatMap(MembershipStore, use)

/** The host's key and request: those of both slots are the same. */
const once: IdempotencyKey = { owner: "host", key: "a key", fingerprint: "a request" }

const webhookOf = ({ at }: Setting, slot: Slot): StoredWebhook => {
  const id = WebhookId(derivedEventId(`${slot} webhook`, at))
  return {
    id,
    projectId: p1,
    url: `https://receiver.example/${slot}`,
    secret: StoredSecret(`whsec_${slot}`),
    previous: undefined,
    signingKey: undefined,
    eventTypes: undefined,
    ordered: false,
    rate: undefined,
    createdAt: at,
    description: undefined,
    headers: undefined,
    disabled: undefined,
  }
}

/** When ends are announced: a day before, and when they have come. */
export const leads = reminderLeads([Millis(dayMillis)])

/** Announces what has ended in the last day. */
export const judgeOf = ({ at }: Pick<Setting, "at">): DecideAnnouncement =>
  makeDecideAnnouncement({ leads, since: at - dayMillis })

const eventOf = ({ at }: Setting, name: string): Event =>
  makeEvent({
    id: derivedEventId(name, at),
    projectId: p1,
    type: EventType("order.paid"),
    at,
    data: { project_id: p1, name },
  })

const settle = (name: string, of: (setting: Setting, slot: Slot) => AttemptResult): Operation => ({
  name: `settle ${name}`,
  run: (setting, slot) =>
    Effect.flatMap(Outbox, (outbox) => outbox.settle(setting.claim, of(setting, slot))),
})

const attempt = ({ at }: Setting, status: number) => ({
  at,
  durationMillis: 1,
  result: { _tag: "Answered", status, body: "" } as const,
})

const onWebhook = (
  name: string,
  use: (
    webhooks: WebhookStore["Service"],
    setting: Setting,
    slot: Slot,
  ) => Effect.Effect<unknown, unknown>,
): Operation => ({
  name,
  run: (setting, slot) => Effect.flatMap(WebhookStore, (webhooks) => use(webhooks, setting, slot)),
})

const extending = (name: string, more: (setting: Setting) => object): Operation => ({
  name,
  run: (setting, slot) => {
    const endDate = dateOf(slot, 1)
    return store(({ extend }) =>
      extend({
        ...change(setting, slot, knownEventTypes.extended, { user_id: own }),
        userId: own,
        endDate,
        ...more(setting),
      }),
    )
  },
})

const bulkExtending = (name: string, bulkOf: (slot: Slot) => BulkChange): Operation => ({
  name,
  run: (setting, slot) =>
    store(({ extendAll }) =>
      extendAll({
        ...change(setting, slot, knownEventTypes.bulkExtended),
        bulk: bulkOf(slot),
      }),
    ),
})

const granting = (name: string, userId: UserId): Operation => ({
  name,
  run: (setting, slot) =>
    store(({ grant }) =>
      grant({
        ...change(setting, slot, knownEventTypes.granted, { user_id: userId }),
        userId,
        endDate: dateOf(slot, 4),
      }),
    ),
})

/** Moves a membership as the service does: again, if it has changed since it was read. */
const moveOwn = (
  memberships: MembershipStore["Service"],
  setting: Setting,
  slot: Slot,
): ReturnType<Run> =>
  Effect.gen(function* () {
    const find = (userId: UserId) => memberships.find(p1, userId)
    const to = Effect.catchTag(find(nobody), "MembershipNotFound", () => Effect.undefined)
    const expected = { from: yield* find(own), to: yield* to }
    const joined = joinMemberships(expected.from, expected.to) ?? expected.from
    return yield* memberships.move({
      ...change(setting, slot, knownEventTypes.ended, { user_id: own, moved_to: nobody }),
      granted: change(setting, slot, knownEventTypes.granted, { user_id: nobody, moved_from: own })
        .event,
      userId: own,
      to: nobody,
      ...joined,
      expected,
    })
  }).pipe(Effect.retry({ while: ({ _tag }) => _tag === "MoveConflict" }))

const paying: ReadonlyArray<Run> = [
  (setting, slot) =>
    Effect.flatMap(Outbox, (outbox) => outbox.publish(eventOf(setting, `${slot} payment`))),
  (setting, slot) =>
    store(({ extend }) =>
      extend({
        ...change(setting, slot, knownEventTypes.extended, { user_id: own }),
        userId: own,
        endDate: dateOf(slot, 6),
      }),
    ),
  (setting, slot) =>
    store(({ grant }) =>
      grant({
        ...change(setting, slot, knownEventTypes.granted, { user_id: nobody }),
        userId: nobody,
        endDate: dateOf(slot, 6),
      }),
    ),
]

const transaction: Operation = {
  name: "transaction of the host",
  run: (setting, slot) =>
    Effect.flatMap(Database, ({ atomically }) =>
      atomically(Effect.forEach(paying, (part) => part(setting, slot))),
    ),
  parts: paying,
}

export const operations: ReadonlyArray<Operation> = [
  extending("extend", () => ({})),
  extending("extend if expected", ({ expected }) => ({ expectedEndDate: expected })),
  extending("extend, never shorten", () => ({ mode: "neverShorten" })),
  extending("extend once", () => ({ once })),
  {
    name: "extend twice",
    // In one statement, unless a lock is met.
    run: (setting, slot) =>
      Effect.forEach(
        [7, 8],
        (day) =>
          store(({ extend }) =>
            extend({
              ...change(setting, `${slot} ${day}`, knownEventTypes.extended, { user_id: own }),
              userId: own,
              endDate: dateOf(slot, day),
            }),
          ),
        { concurrency: "unbounded" },
      ),
  },
  {
    name: "extend once in another project",
    run: (setting, slot) =>
      store(({ extend }) =>
        extend({
          ...change(setting, slot, knownEventTypes.extended, { user_id: own }),
          projectId: p2,
          userId: own,
          endDate: dateOf(slot, 1),
          once: { ...once, fingerprint: "another request" },
        }),
      ),
  },
  bulkExtending("extend all", (slot) => ({ mode: "set", endDate: dateOf(slot, 2) })),
  bulkExtending("extend all, never shorten", (slot) => ({
    mode: "neverShorten",
    endDate: dateOf(slot, 3),
  })),
  // Less than the other operations do.
  bulkExtending("extend all a little, never shorten", (slot) => ({
    mode: "neverShorten",
    endDate: EndDate(Date.UTC(2030, 0, slot === "first" ? 1 : 2)),
  })),
  bulkExtending("extend all by a duration", (slot) => ({
    mode: "extendBy",
    by: Millis(86_400_000 * (slot === "first" ? 3 : 5)),
  })),
  ...([0, 1] as const).map((which): Operation => ({
    name: `undo ${which === 0 ? "an older bulk extension" : "the last bulk extension"}`,
    run: (setting, slot) =>
      store(({ undoBulkExtension }) =>
        undoBulkExtension({
          ...change(setting, slot, knownEventTypes.extensionUndone),
          bulkExtensionId: setting.bulkExtensions[which],
          madeAfter: longAgo,
        }),
      ),
  })),
  granting("grant", nobody),
  granting("grant to a member", own),
  {
    name: "end",
    run: (setting, slot) =>
      store(({ end }) =>
        end({ ...change(setting, slot, knownEventTypes.ended, { user_id: own }), userId: own }),
      ),
  },
  {
    name: "move",
    run: (setting, slot) =>
      Effect.flatMap(MembershipStore, (memberships) => moveOwn(memberships, setting, slot)),
  },
  {
    name: "import",
    run: (setting, slot) =>
      store((memberships) =>
        memberships.import({
          ...change(setting, slot, knownEventTypes.imported),
          memberships: [own, nobody].map((userId) => ({ userId, endDate: dateOf(slot, 5) })),
        }),
      ),
  },
  {
    name: "erase",
    run: (setting, slot) =>
      store(({ erase }) => erase({ ...change(setting, slot, knownEventTypes.ended), userId: own })),
  },
  {
    name: "announce ends",
    // Those that it leaves for the next sweep are the same at the end.
    isNotOne: true,
    run: (setting) =>
      store(({ expiry }) => expiry?.sweep(100, judgeOf(setting)) ?? Effect.die("no ends")),
  },
  {
    name: "list by ends",
    // Each page is of the moment at which it is read.
    isNotOne: true,
    run: () =>
      store(({ listEnding }) =>
        listEnding(p1, { before: dateOf("second", 300), after: undefined, limit: 10 }),
      ),
  },
  {
    name: "create project",
    run: ({ at }) => store(({ createProject }) => createProject(p3, { origin: hostOrigin, at })),
  },
  {
    name: "delete project",
    run: ({ at }) => store(({ deleteProject }) => deleteProject(p1, { origin: hostOrigin, at })),
  },
  {
    name: "publish",
    run: (setting, slot) =>
      Effect.flatMap(Outbox, (outbox) => outbox.publish(eventOf(setting, `${slot} event`))),
  },
  {
    name: "publish once",
    run: (setting, slot) =>
      Effect.flatMap(Outbox, (outbox) =>
        outbox.publish(eventOf(setting, `${slot} event with a key`), {
          ...once,
          fingerprint: "a third request",
          answer: "an answer",
        }),
      ),
  },
  {
    name: "claim",
    run: () =>
      Effect.flatMap(Outbox, (outbox) =>
        Effect.map(
          outbox.claim({
            limit: 100,
            failing: 100,
            perWebhook: { least: 50, most: 50 },
            perProject: 1000,
            ahead: new Map(),
            leaseMillis: 24 * hourMillis,
          }),
          ({ claims }) =>
            claims
              .map(({ attemptNumber, event, webhook }) => [
                webhook.webhookId,
                event.body.replace(/"timestamp":"[^"]*"|"sequence":\d+/g, ""),
                attemptNumber,
              ])
              .toSorted((one, other) => (String(one) < String(other) ? -1 : 1)),
        ),
      ),
  },
  settle("as delivered", (setting) => ({ _tag: "Delivered", attempt: attempt(setting, 204) })),
  settle("as to be repeated", (setting) => ({
    _tag: "Retry",
    attempt: attempt(setting, 500),
    delayMillis: hourMillis,
    holdMillis: hourMillis,
  })),
  settle("and disable", (setting, slot) => ({
    _tag: "Disabled",
    attempt: attempt(setting, 410),
    announcement: eventOf(setting, `${slot} disabled`),
  })),
  onWebhook("register webhook", (webhooks, setting, slot) =>
    // Only one more fits.
    webhooks.add(webhookOf(setting, slot), 4, { origin: hostOrigin, at: setting.at }),
  ),
  onWebhook("delete webhook", (webhooks, setting) =>
    webhooks.remove(p1, setting.webhooks.healthy.id, { origin: hostOrigin, at: setting.at }),
  ),
  onWebhook("disable webhook", (webhooks, { at, webhooks: { healthy: expected } }) => {
    const settings = { ...expected, disabled: { at, by: "request" } as const }
    const disabling = { expected, settings, changes: settingChanges(expected, settings) }
    return webhooks.update({ projectId: p1, webhookId: expected.id }, disabling, {
      origin: hostOrigin,
      at,
    })
  }),
  onWebhook("enable webhook", (webhooks, setting) =>
    webhooks.enable(p1, setting.webhooks.disabled.id, { origin: hostOrigin, at: setting.at }),
  ),
  onWebhook("rotate secret", (webhooks, setting, slot) =>
    webhooks.rotateSecret(
      p1,
      setting.webhooks.healthy.id,
      { secret: StoredSecret(`whsec_${slot}`), previousUntil: setting.at + dayMillis },
      { origin: hostOrigin, at: setting.at },
    ),
  ),
  {
    name: "replay many",
    run: ({ webhooks: { other } }) =>
      Effect.flatMap(Outbox, (outbox) =>
        outbox.replayMany(
          { projectId: p1, webhookId: other.id },
          {
            since: 0,
            types: undefined,
            kinds: ["missed", "failed", "delivered"],
            position: undefined,
            isDryRun: false,
          },
        ),
      ),
  },
  transaction,
]

/** What is left of an answer without what differs from run to run. */
export const comparable = (answer: unknown): unknown =>
  isReplayedResponse(answer)
    ? { replayed: answer.answer }
    : JSON.stringify(answer ?? "done").replaceAll(/\\"sequence\\":\d+/g, "")

/** What an operation answers. */
export const answerOf = ({ isNotOne, run }: Operation, setting: Setting, slot: Slot) =>
  run(setting, slot).pipe(
    Effect.map((answer) => (isNotOne === true ? "answered" : comparable(answer))),
    Effect.catch((error) => Effect.succeed(failureOf(error))),
    Effect.catchDefect((defect) => Effect.succeed(`defect: ${String(defect)}`)),
  )

/** What is left of an error. */
export const failureOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "_tag" in error
    ? `${String(error._tag)}${"currentEndDate" in error ? ` ${formatEndDate(EndDate(Number(error.currentEndDate)))}` : ""}`
    : String(error)
