/** The operations whose interleavings are run: all that change something, and what they answer. */

import {
  derivedEventId,
  draftEvent,
  formatEndDate,
  isReplayedResponse,
  makeDecideAnnouncement,
  makeEvent,
  reminderLeads,
  stateAt,
} from "@tenure/core/internal"
import {
  type AnnouncementOutcome,
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
  TimeZone,
  UserId,
  WebhookId,
  WebhookStore,
  defaultProjectSettings,
  endAfterPause,
  isAlreadyMember,
  joinMemberships,
  knownEventTypes,
  hostOrigin,
  projectChanges,
  settingChanges,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { Database } from "../../src/connection/database.ts"

const hourMillis = 3_600_000
export const dayMillis = 24 * hourMillis

export const [p1, p2, p3] = [ProjectId("p1"), ProjectId("p2"), ProjectId("p3")]
/** Before everything, in milliseconds since the epoch. */
export const longAgo = -1e13

/** The member whom operations change, the others in the project, and somebody without a membership. */
export const own = UserId("1001")
export const bulk = UserId("1002")
export const later = UserId("1003")
const nobody = UserId("1004")
export const users = [own, bulk, later, nobody]

/** Whether an operation is the first or the second. They set different values, so that results show which did what. */
export type Slot = "first" | "second"

/** The names for `p1`'s webhooks that are there before: one is disabled. */
export type WebhookName = "healthy" | "other" | "disabled"

/** What is there before the operations. */
export interface Setting {
  /** When it was made, in milliseconds since the epoch. */
  readonly at: number
  readonly webhooks: Readonly<Record<WebhookName, StoredWebhook>>
  /** A claim for the healthy webhook. */
  readonly claim: Claim
  /** An event that was delivered to it, together with others. */
  readonly delivered: EventId
  /** The date that the operations' membership has. */
  readonly expected: EndDate
  /** The scene's two bulk extensions. */
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
  /** Calls that it commits together. Others may call between them. */
  readonly parts?: ReadonlyArray<Run>
  /** Whether its answer may mix several moments, and is not compared. */
  readonly isNotOne?: boolean
}

/** The dates that each operation sets. The first sets earlier ones. */
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

/** Declares a service's operations. */
const on =
  <Service>(service: Effect.Effect<Service, never, StorePorts>) =>
  (
    name: string,
    use: (service: Service, setting: Setting, slot: Slot) => Effect.Effect<unknown, unknown>,
    more: Pick<Operation, "isNotOne"> = {},
  ): Operation => ({
    name,
    run: (setting, slot) => Effect.flatMap(service, (given) => use(given, setting, slot)),
    ...more,
  })

const onMemberships = on(MembershipStore)
const onOutbox = on(Outbox)
const onWebhooks = on(WebhookStore)

/** The host's key and request: the same in both slots. */
const idempotency: IdempotencyKey = { owner: "host", key: "a key", fingerprint: "a request" }

/** Returns a webhook without settings, whose receiver and secret have a name of their own. */
export const plainWebhook = (name: string, id: WebhookId, createdAt: number): StoredWebhook => ({
  id,
  projectId: p1,
  url: `https://receiver.example/${name}`,
  secret: StoredSecret(`whsec_${name}`),
  previous: undefined,
  signingKey: undefined,
  eventTypes: undefined,
  ordered: false,
  rate: undefined,
  createdAt,
  description: undefined,
  headers: undefined,
  disabled: undefined,
})

const webhookOf = ({ at }: Setting, slot: Slot): StoredWebhook =>
  plainWebhook(slot, WebhookId(derivedEventId(`${slot} webhook`, at)), at)

/** When ends are announced: a day before, and when they have come. */
export const leads = reminderLeads([Millis(dayMillis)])

/** Announces what has ended in the last day. */
export const judgeOf = ({ at }: Pick<Setting, "at">): DecideAnnouncement =>
  makeDecideAnnouncement({ leads, since: at - dayMillis })

const isResumption = ({ announcement }: AnnouncementOutcome): boolean =>
  announcement?.action === "resumed"

/** Announces what passes a test, and leaves the rest for the next sweep. */
const sweeping =
  (test: (outcome: AnnouncementOutcome) => boolean): Run =>
  (setting) =>
    Effect.flatMap(MembershipStore, ({ expiry }) => {
      const judge = judgeOf(setting)
      const judgeSome: DecideAnnouncement = (candidate, now) => {
        const outcome = judge(candidate, now)
        return test(outcome) ? outcome : { announcement: undefined, alarm: now }
      }
      return expiry?.sweep(100, judgeSome) ?? Effect.die("no ends")
    })

const eventOf = ({ at }: Setting, name: string): Event =>
  makeEvent({
    id: derivedEventId(name, at),
    projectId: p1,
    type: EventType("order.paid"),
    at,
    data: { project_id: p1, name },
  })

const attempt = ({ at }: Setting, status: number) => ({
  at,
  durationMillis: 1,
  result: { _tag: "Answered", status, body: "" } as const,
})

const settle = (name: string, of: (setting: Setting, slot: Slot) => AttemptResult): Operation =>
  onOutbox(`settle ${name}`, (outbox, setting, slot) =>
    outbox.settle(setting.claim, of(setting, slot)),
  )

/** A change that sets the date for the operations' membership. */
const ownTo = (setting: Setting, slot: string, endDate: EndDate) => ({
  ...change(setting, slot, knownEventTypes.extended, { user_id: own }),
  userId: own,
  endDate,
})

const grantTo = (setting: Setting, slot: Slot, userId: UserId, day: number) => ({
  ...change(setting, slot, knownEventTypes.granted, { user_id: userId }),
  userId,
  endDate: dateOf(slot, day),
})

const extending = (name: string, more: (setting: Setting) => object): Operation =>
  onMemberships(name, ({ extend }, setting, slot) =>
    extend({ ...ownTo(setting, slot, dateOf(slot, 1)), ...more(setting) }),
  )

const bulkExtending = (name: string, bulkOf: (slot: Slot) => BulkChange): Operation =>
  onMemberships(name, ({ extendAll }, setting, slot) =>
    extendAll({ ...change(setting, slot, knownEventTypes.bulkExtended), bulk: bulkOf(slot) }),
  )

const undoing = (name: string, which: 0 | 1): Operation =>
  onMemberships(name, ({ undoBulkExtension }, setting, slot) =>
    undoBulkExtension({
      ...change(setting, slot, knownEventTypes.extensionUndone),
      bulkExtensionId: setting.bulkExtensions[which],
      madeAfter: longAgo,
    }),
  )

const granting = (name: string, userId: UserId): Operation =>
  onMemberships(name, ({ grant }, setting, slot) => grant(grantTo(setting, slot, userId, 4)))

/** Grants to somebody absent, or extends as the service does with `create`. */
const grantingIfAbsent = (userId: UserId, otherwise: "orLeave" | "orExtend"): Operation =>
  onMemberships(
    `${otherwise === "orLeave" ? "grant if absent" : "extend or create"} ${userId === own ? "for a member" : "for nobody"}`,
    ({ extend, grantIfAbsent }, setting, slot) => {
      const asked = grantTo(setting, slot, userId, 9)
      if (otherwise === "orLeave") return grantIfAbsent({ ...asked, isFinal: true })
      const once = { ...idempotency, key: slot }
      const asExtension = {
        ...change(setting, slot, knownEventTypes.extended, { user_id: userId }),
        userId,
        endDate: asked.endDate,
        idempotency: once,
      }
      const tried = Effect.catchTag(extend(asExtension), "MembershipNotFound", () =>
        grantIfAbsent({ ...asked, isFinal: false, idempotency: once }),
      )
      return Effect.repeat(tried, { while: isAlreadyMember })
    },
  )

/** Claims everything that is due. */
export const claimAll = (outbox: Outbox["Service"]) =>
  outbox.claim({
    limit: 100,
    failing: 100,
    perWebhook: { least: 50, most: 50 },
    perProject: 1000,
    ahead: new Map(),
    leaseMillis: dayMillis,
  })

const contextOf = ({ at }: Setting) => ({ origin: hostOrigin, at })

/** Moves a membership as the service does: again, if it has changed since it was read. */
const moveOwn = (memberships: MembershipStore["Service"], setting: Setting, slot: Slot) =>
  Effect.gen(function* () {
    const find = (userId: UserId) => memberships.find(p1, userId)
    const to = Effect.catchTag(find(nobody), "MembershipNotFound", () => Effect.undefined)
    const expected = { from: yield* find(own), to: yield* to }
    if ((expected.from.pause ?? expected.to?.pause) !== undefined) return "paused"
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

/** Extends a membership by its date and its form, as the service does: again, if they have changed since they were read. */
const extendOwnBy = (memberships: MembershipStore["Service"], setting: Setting, slot: Slot) =>
  Effect.gen(function* () {
    const { endDate, inDays, keptDay } = yield* memberships.find(p1, own)
    const months = slot === "first" ? 1 : 12
    return yield* memberships.extend({
      ...ownTo(setting, slot, EndDate(endDate + months * 30 * dayMillis)),
      inDays,
      keptDay: Math.min((keptDay ?? 27) + 1, 31),
      expectedEndDate: endDate,
      expectedForm: { inDays, keptDay },
    })
  }).pipe(Effect.retry({ while: ({ _tag }) => _tag === "EndDateConflict" }))

/** Pauses a membership as the service does: again, if it has changed since it was read. */
const pauseOwn =
  (until: (slot: Slot) => number | undefined): Parameters<typeof onMemberships>[1] =>
  (memberships, setting, slot) =>
    Effect.gen(function* () {
      const before = yield* memberships.find(p1, own)
      const at = setting.at + (slot === "first" ? 1000 : 2000)
      if (before.pause !== undefined || before.endDate <= at) return stateAt(before, at)
      return yield* memberships.pause({
        ...change(setting, slot, knownEventTypes.paused, { user_id: own }),
        at,
        userId: own,
        until: until(slot),
        expected: before,
      })
    }).pipe(Effect.retry({ while: ({ _tag }) => _tag === "PauseConflict" }))

/** Resumes a membership in the same way. */
const resumeOwn = (memberships: MembershipStore["Service"], setting: Setting, slot: Slot) =>
  Effect.gen(function* () {
    const { endDate, pause } = yield* memberships.find(p1, own)
    if (pause === undefined) return "not paused"
    const at = setting.at + (slot === "first" ? 1 : 2) * dayMillis
    return yield* memberships.resume({
      ...change(setting, slot, knownEventTypes.resumed, { user_id: own }),
      at,
      userId: own,
      endDate: endAfterPause(endDate, pause, at),
      expected: { endDate, pause },
    })
  }).pipe(Effect.retry({ while: ({ _tag }) => _tag === "PauseConflict" }))

const paying: ReadonlyArray<Run> = [
  onOutbox("pay", (outbox, setting, slot) => outbox.publish(eventOf(setting, `${slot} payment`))),
  onMemberships("extend", ({ extend }, setting, slot) =>
    extend(ownTo(setting, slot, dateOf(slot, 6))),
  ),
  onMemberships("grant", ({ grant }, setting, slot) => grant(grantTo(setting, slot, nobody, 6))),
].map(({ run }) => run)

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
  extending("extend once", () => ({ idempotency })),
  extending("extend to a day", () => ({ inDays: true })),
  extending("extend to the date that it has, in another form", () => ({
    mode: "neverShorten",
    endDate: EndDate(Date.UTC(2031, 0, 1)),
    inDays: true,
    keptDay: 31,
  })),
  onMemberships("extend by the date and its form", extendOwnBy),
  // In one statement, unless a lock is met.
  onMemberships("extend twice", ({ extend }, setting, slot) =>
    Effect.forEach([7, 8], (day) => extend(ownTo(setting, `${slot} ${day}`, dateOf(slot, day))), {
      concurrency: "unbounded",
    }),
  ),
  onMemberships("extend once in another project", ({ extend }, setting, slot) =>
    extend({
      ...ownTo(setting, slot, dateOf(slot, 1)),
      projectId: p2,
      idempotency: { ...idempotency, fingerprint: "another request" },
    }),
  ),
  bulkExtending("extend all", (slot) => ({ mode: "set", endDate: dateOf(slot, 2) })),
  bulkExtending("extend all to a day, never shorten", (slot) => ({
    mode: "neverShorten",
    endDate: EndDate(Date.UTC(2030, 0, slot === "first" ? 1 : 2)),
    inDays: true,
  })),
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
  undoing("undo an older bulk extension", 0),
  undoing("undo the last bulk extension", 1),
  granting("grant", nobody),
  granting("grant to a member", own),
  ...(["orLeave", "orExtend"] as const).flatMap((otherwise) =>
    [nobody, own].map((userId) => grantingIfAbsent(userId, otherwise)),
  ),
  onMemberships("end", ({ end }, setting, slot) =>
    end({ ...change(setting, slot, knownEventTypes.ended, { user_id: own }), userId: own }),
  ),
  onMemberships("move", moveOwn),
  onMemberships(
    "pause",
    pauseOwn(() => undefined),
  ),
  onMemberships(
    "pause until a date",
    pauseOwn((slot) => dateOf(slot, 10)),
  ),
  onMemberships("resume", resumeOwn),
  onMemberships("import", (memberships, setting, slot) =>
    memberships.import({
      ...change(setting, slot, knownEventTypes.imported),
      memberships: [own, nobody].map((userId) => ({
        userId,
        endDate: dateOf(slot, 5),
        inDays: slot === "first",
        keptDay: slot === "first" ? undefined : 29,
      })),
    }),
  ),
  onMemberships("erase", ({ erase }, setting, slot) =>
    erase({ ...change(setting, slot, knownEventTypes.ended), userId: own }),
  ),
  {
    name: "announce ends",
    run: sweeping(() => true),
    // A step for those whose pauses are over, and one for the others.
    parts: [sweeping(isResumption), sweeping((outcome) => !isResumption(outcome))],
    // Those that it leaves for the next sweep are the same at the end.
    isNotOne: true,
  },
  onMemberships(
    "list by ends",
    ({ listEnding }) =>
      listEnding(p1, { before: dateOf("second", 300), after: undefined, limit: 10 }),
    // Each page shows the moment at which it is read.
    { isNotOne: true },
  ),
  onMemberships("create project", ({ createProject }, setting) =>
    createProject(p3, contextOf(setting)),
  ),
  onMemberships("change project", ({ updateProject }, setting, slot) => {
    const expected = defaultProjectSettings
    const timeZone = TimeZone(slot === "first" ? "Europe/Berlin" : "Asia/Kathmandu")
    const settings = { timeZone, grace: Millis(slot === "first" ? 1000 : 2000) }
    const changes = projectChanges(expected, settings)
    const asked = { ...contextOf(setting), projectId: p1, reason: undefined }
    return updateProject({ ...asked, expected, settings, changes })
  }),
  onMemberships("delete project", ({ deleteProject }, setting) =>
    deleteProject(p1, contextOf(setting)),
  ),
  onOutbox("publish", (outbox, setting, slot) => outbox.publish(eventOf(setting, `${slot} event`))),
  onOutbox("publish once", (outbox, setting, slot) =>
    outbox.publish(eventOf(setting, `${slot} event with a key`), {
      ...idempotency,
      fingerprint: "a third request",
      answer: "an answer",
    }),
  ),
  onOutbox("claim", (outbox) =>
    Effect.map(claimAll(outbox), ({ claims }) =>
      claims
        .map(({ attemptNumber, event, webhook }) => [
          webhook.webhookId,
          event.body.replace(/"timestamp":"[^"]*"|"sequence":\d+/g, ""),
          attemptNumber,
        ])
        .toSorted((one, other) => (String(one) < String(other) ? -1 : 1)),
    ),
  ),
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
  onWebhooks("register webhook", (webhooks, setting, slot) =>
    // Only one more fits.
    webhooks.add(webhookOf(setting, slot), 4, contextOf(setting)),
  ),
  onWebhooks("delete webhook", (webhooks, setting) =>
    webhooks.remove(p1, setting.webhooks.healthy.id, contextOf(setting)),
  ),
  onWebhooks("disable webhook", (webhooks, setting) => {
    const expected = setting.webhooks.healthy
    const settings = { ...expected, disabled: { at: setting.at, by: "request" } as const }
    const disabling = { expected, settings, changes: settingChanges(expected, settings) }
    const which = { projectId: p1, webhookId: expected.id }
    return webhooks.update(which, disabling, contextOf(setting))
  }),
  onWebhooks("enable webhook", (webhooks, setting) =>
    webhooks.enable(p1, setting.webhooks.disabled.id, contextOf(setting)),
  ),
  onWebhooks("rotate secret", (webhooks, setting, slot) =>
    webhooks.rotateSecret(
      p1,
      setting.webhooks.healthy.id,
      { secret: StoredSecret(`whsec_${slot}`), previousUntil: setting.at + dayMillis },
      contextOf(setting),
    ),
  ),
  onOutbox("replay one", (outbox, { delivered, webhooks: { healthy } }) =>
    outbox.replay({ projectId: p1, webhookId: healthy.id }, delivered),
  ),
  onOutbox("replay many that were delivered", (outbox, { webhooks: { healthy } }) =>
    outbox.replayMany(
      { projectId: p1, webhookId: healthy.id },
      { since: 0, types: undefined, kinds: ["delivered"], position: undefined, isDryRun: false },
    ),
  ),
  onOutbox("replay many", (outbox, { webhooks: { other } }) =>
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
  transaction,
]

/** An answer without what differs from run to run. */
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

/** An error without that. */
export const failureOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "_tag" in error
    ? `${String(error._tag)}${"currentEndDate" in error ? ` ${formatEndDate(EndDate(Number(error.currentEndDate)))}` : ""}`
    : String(error)
