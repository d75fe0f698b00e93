/** Certifies a `WebhookStore`. */

import { expect } from "@effect/vitest"
import { isReplayedResponse } from "@tenure/core/internal"
import {
  type ChangeContext,
  EventType,
  ProjectId,
  StoredSecret,
  type StoredWebhook,
  type WebhookChange,
  WebhookId,
  type WebhookSettings,
  WebhookStore,
  settingChanges,
} from "@tenure/core/store"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Struct from "effect/Struct"
import { event, makeWebhook, context, idempotency, p1, p2 } from "../support/fixtures.ts"
import { type StoreTests, undone } from "./declare.ts"
import {
  attemptAll,
  claimedIds,
  claims,
  delivered,
  failed,
  gone,
  preparedWebhook,
  preparedWith,
  publishMany,
  released,
  retry,
  settleAll,
  statesOf,
  webhookIdsOf,
} from "./outbox/steps.ts"
import {
  addWebhook,
  answersToRepeated,
  createProjects,
  expectFailure,
  firstOf,
  outcomeOf,
  refOf,
  successesOf,
  times,
} from "./steps.ts"

/** A store with two projects. */
const prepared = Effect.andThen(createProjects, WebhookStore)

/** A webhook without attempts. */
const well = { failures: 0, failingSince: undefined }

const byRequest = { at: 5, by: "request" } as const

/** A change to the settings of a webhook. */
const settingsOf = (
  { description, disabled, eventTypes, headers, ordered, rate, url }: WebhookSettings,
  changed: Partial<WebhookSettings>,
): WebhookChange => {
  const expected = { description, disabled, eventTypes, headers, ordered, rate, url }
  const settings = { ...expected, ...changed }
  return { expected, settings, changes: settingChanges(expected, settings) }
}

const unknownId = Effect.sync(() => WebhookId(crypto.randomUUID()))

const updateTests = ({ advance, testsAfter }: StoreTests): void => {
  const { test } = testsAfter(preparedWebhook)
  test("replaces the settings of a webhook, if they are as expected", function* (world) {
    const { ref, store, webhook } = world
    const changed: WebhookSettings = {
      url: "https://receiver.example/moved",
      eventTypes: [EventType("test.happened")],
      ordered: true,
      rate: 40,
      description: "The shop's mails",
      headers: { names: ["x-a", "x-b"], sealed: StoredSecret("enc_k1_AA") },
      disabled: byRequest,
    }
    yield* store.update(ref, settingsOf(webhook, changed), context)
    expect(yield* store.find(p1, webhook.id)).toEqual({ ...webhook, ...well, ...changed })
    for (const name of Struct.keys(changed)) {
      const other = { ...changed, ...Struct.pick(webhook, [name]) }
      const outdated = store.update(ref, settingsOf(other, {}), context)
      expect([name, yield* Effect.flip(outdated)]).toMatchObject([
        name,
        { _tag: "WebhookConflict" },
      ])
    }
    const back = settingsOf(changed, webhook)
    const sealed = { names: ["x-a"], sealed: StoredSecret("[]") }
    yield* expectFailure(
      "WebhookConflict",
      store.update(ref, settingsOf(webhook, { url: "https://receiver.example" }), context),
      store.update(ref, settingsOf({ ...changed, headers: sealed }, {}), context),
      store.update({ ...ref, projectId: p2 }, back, context),
      store.update({ ...ref, webhookId: yield* unknownId }, back, context),
    )
    yield* store.update(ref, back, context)
    expect(yield* store.find(p1, webhook.id)).toEqual({ ...webhook, ...well })
  })

  test("has one of several changes at the same time replace the settings", function* (world) {
    const { ref, store, webhook } = world
    const update = (index: number) =>
      store.update(ref, settingsOf(webhook, { description: String(index) }), context)
    expect(yield* successesOf(4, update)).toBe(1)
  })

  test("keeps what waits for a webhook that is disabled by request, until it is enabled", function* (world) {
    const { outbox, ref, store, webhook } = world
    yield* publishMany(4)
    const claimed = yield* claims()
    yield* publishMany(1)
    yield* store.update(ref, settingsOf(webhook, { disabled: byRequest }), context)
    yield* publishMany(1)
    yield* expectFailure("WebhookDisabled", outbox.publishTo(event(p1), webhook.id))
    const settled = yield* settleAll(claimed.slice(0, 3), [released, delivered, retry(0)])
    expect(settled).toEqual(["Settled", "Settled", "Settled"])
    // The lease of the fourth passes.
    yield* advance(70_000)
    expect(yield* claims()).toEqual([])
    expect(yield* outbox.backlog(10)).toEqual({
      waiting: 4,
      dueForMillis: undefined,
      failedDeliveries: 0,
      disabledWebhooks: 0,
    })
    const progress = yield* outbox.progress(p1, [webhook.id])
    expect(progress.get(webhook.id)).toMatchObject({ waiting: 4, nextAttemptAt: undefined })
    expect(yield* outbox.troubled(10)).toEqual([])
    yield* store.enable(p1, webhook.id, context)
    expect(yield* store.find(p1, webhook.id)).toEqual({ ...webhook, ...well })
    const ids = yield* claimedIds
    expect(ids).toHaveLength(4)
    expect(ids).toContain(firstOf(claimed).event.id)
  })

  test("enables a webhook with other settings, as if no attempt for it had been made", function* (world) {
    const { outbox, ref, store, webhook } = world
    yield* outbox.publishTo(event(p1), webhook.id)
    yield* attemptAll(gone())
    const disabled = yield* store.find(p1, webhook.id)
    const description = "one"
    yield* store.update(ref, settingsOf(disabled, { description }), context)
    expect(yield* store.find(p1, webhook.id)).toEqual({ ...disabled, description })
    const enabled = { description: "another", disabled: undefined }
    yield* store.update(ref, settingsOf({ ...disabled, description }, enabled), context)
    expect(yield* store.find(p1, webhook.id)).toEqual({ ...webhook, ...well, ...enabled })
  })
}

const previousUntil = 1_700_000_000_123

type Make = (
  store: WebhookStore["Service"],
  webhook: StoredWebhook,
  by: ChangeContext,
) => Effect.Effect<unknown, { readonly _tag: string }>

/** Webhook changes, with the answer that is repeated. They fail before it is added. */
const changes: ReadonlyArray<
  readonly [
    name: string,
    make: Make,
    answer?: string | undefined,
    disabled?: StoredWebhook["disabled"],
  ]
> = [
  [
    "rotates a secret",
    (store, { id }, by) =>
      store.rotateSecret(p1, id, { secret: makeWebhook(p1).secret, previousUntil }, by),
    String(previousUntil),
  ],
  ["enables a webhook", (store, { id }, by) => store.enable(p1, id, by)],
  [
    "enables a disabled webhook",
    (store, { id }, by) => store.enable(p1, id, by),
    undefined,
    { at: 5, by: "failures" },
  ],
  [
    "changes a webhook",
    (store, webhook, by) =>
      store.update(refOf(webhook), settingsOf(webhook, { description: "new" }), by),
  ],
  ["removes a webhook", (store, { id }, by) => store.remove(p1, id, by)],
]

const onceTests = ({ test }: StoreTests): void => {
  test("adds a webhook with an idempotency key once, and keeps no key of one that it cannot add", function* () {
    const store = yield* prepared
    const keyed = { ...context, idempotency: idempotency() }
    yield* expectFailure("WebhookLimitReached", store.add(makeWebhook(p1), 0, keyed))
    const answers = yield* answersToRepeated(8, () => store.add(makeWebhook(p1), 1, keyed))
    const ids = (yield* store.list(p1)).map(({ id }) => id)
    expect(ids).toEqual([...new Set(answers)])
    const other = { ...context, idempotency: { ...keyed.idempotency, fingerprint: "another" } }
    yield* expectFailure("IdempotencyMismatch", store.add(makeWebhook(p1), 50, other))
  })

  test.each(changes)("%s with an idempotency key once", function* ([, make, answer, disabled]) {
    const store = yield* prepared
    const webhook = { ...makeWebhook(p1), disabled }
    const keyed = { ...context, idempotency: idempotency() }
    yield* Effect.flip(make(store, webhook, keyed))
    yield* store.add(webhook, 50, context)
    const answers = yield* answersToRepeated(4, () => make(store, webhook, keyed))
    const after = yield* store.list(p1)
    if (answer !== undefined) {
      expect(answers).toEqual([answer, answer, answer])
      expect(after).toMatchObject([{ previous: { secret: webhook.secret } }])
    }
    expect(isReplayedResponse(yield* make(store, webhook, keyed))).toBe(true)
    const other = { ...context, idempotency: { ...keyed.idempotency, fingerprint: "another" } }
    yield* expectFailure("IdempotencyMismatch", make(store, webhook, other))
    expect(yield* store.list(p1)).toEqual(after)
  })
}

const removalTests = ({ testsAfter }: StoreTests): void => {
  const { test } = testsAfter(preparedWebhook)
  test("removes a webhook, but not through another project", function* ({ store, webhook }) {
    yield* expectFailure("WebhookNotFound", store.remove(p2, webhook.id, context))
    yield* store.remove(p1, webhook.id, context)
    yield* expectFailure(
      "WebhookNotFound",
      store.remove(p1, webhook.id, context),
      store.find(p1, webhook.id),
      store.remove(p1, yield* unknownId, context),
    )
    expect(yield* store.list(p1)).toEqual([])
  })

  test("cancels the deliveries of a removed webhook, waiting and claimed", function* (world) {
    const { store, webhook } = world
    yield* publishMany(1)
    yield* attemptAll(delivered)
    yield* publishMany(1)
    const claimed = yield* claims()
    const other = yield* addWebhook()
    yield* publishMany(1)
    yield* store.remove(p1, webhook.id, context)
    expect(webhookIdsOf(yield* claims())).toEqual([other.id])
    expect(yield* settleAll(claimed, delivered)).toEqual(["Lapsed"])
    expect(yield* statesOf(webhook)).toEqual(["cancelled", "cancelled", "delivered"])
  })
}

/** Attempts that failed, and secrets. */
const stateTests = ({ advance, testsAfter }: StoreTests): void => {
  const { test } = testsAfter(preparedWebhook)
  test("counts the attempts that failed since one succeeded, and says since when", function* (world) {
    const { outbox, store, webhook } = world
    const other = yield* addWebhook()
    const attempt = Effect.fnUntraced(function* (result: typeof failed) {
      const { failingSince, failures } = yield* store.find(p1, webhook.id)
      yield* outbox.publishTo(event(p1), webhook.id)
      const claimed = yield* claims()
      expect(claimed).toMatchObject([{ webhook: { failingSince, failures } }])
      yield* settleAll(claimed, result)
      return yield* store.find(p1, webhook.id)
    })
    const first = yield* attempt(failed)
    expect(first).toEqual({ ...webhook, failures: 1, failingSince: expect.any(Number) })
    yield* advance(1000)
    const second = yield* attempt(failed)
    expect(second).toEqual({ ...first, failures: 2 })
    expect(yield* store.list(p1)).toEqual([second, { ...other, ...well }])
    expect(yield* store.find(p1, other.id)).toEqual({ ...other, ...well })
    expect(yield* attempt(delivered)).toEqual({ ...webhook, ...well })
  })

  test("keeps the failures of a webhook that is disabled, until it is enabled", function* (world) {
    const { outbox, store, webhook } = world
    yield* outbox.publishTo(event(p1), webhook.id)
    yield* attemptAll(failed)
    yield* store.enable(p1, webhook.id, context)
    expect((yield* store.find(p1, webhook.id)).failures).toBe(1)
    yield* outbox.publishTo(event(p1), webhook.id)
    yield* attemptAll(gone())
    expect(yield* store.find(p1, webhook.id)).toEqual({
      ...webhook,
      disabled: { at: expect.any(Number), by: "failures" },
      failures: 2,
      failingSince: expect.any(Number),
    })
    yield* store.enable(p1, webhook.id, context)
    expect(yield* store.find(p1, webhook.id)).toEqual({ ...webhook, ...well })
  })

  test("adds one signing key, and keeps it when others are added, also at the same time", function* (world) {
    const { store, webhook } = world
    const add = (index: number, projectId = p1) =>
      store.addSigningKey(projectId, webhook.id, StoredSecret(`whsk_${index}`), context)
    const [key, ...others] = [...(yield* times(10, (index) => add(index))), yield* add(11)]
    expect(new Set(others)).toEqual(new Set([key]))
    expect((yield* store.list(p1)).map(({ signingKey }) => signingKey)).toEqual([key])
    yield* publishMany(1)
    expect((yield* claims()).map((claim) => claim.webhook.signingKey)).toEqual([key])
    yield* expectFailure("WebhookNotFound", add(12, p2))
  })
}

export const webhookStoreSuite = (on: StoreTests): void => {
  const { test, transactional } = on

  test("responds to a ping", function* () {
    yield* (yield* WebhookStore).ping
  })

  test("lists the webhooks of a project, oldest first", function* () {
    const store = yield* prepared
    const added = yield* Effect.forEach([p1, p1, p2, p1], (projectId) => addWebhook(projectId))
    for (const id of [p1, p2]) {
      const own = added.filter(({ projectId }) => projectId === id)
      expect(yield* store.list(id)).toEqual(own.map((webhook) => ({ ...webhook, ...well })))
    }
  })

  test("stores URLs and event types unchanged", function* () {
    const store = yield* prepared
    const settings = [
      { url: "https://EXAMPLE.com:443/a?b=c&d#e", eventTypes: undefined },
      {
        url: `https://例え.jp/${"x".repeat(2000)}`,
        eventTypes: [EventType("payment.completed"), EventType("a-b.c_d")],
      },
      { url: "https://example.com", eventTypes: [] },
    ]
    for (const one of settings) yield* addWebhook(p1, one)
    expect(yield* store.list(p1)).toMatchObject(settings)
  })

  test("finds and enables a webhook, but none that is unknown or of another project", function* () {
    const { store, webhook } = yield* preparedWith({ eventTypes: [EventType("a.b")] })
    yield* addWebhook()
    expect(yield* store.find(p1, webhook.id)).toEqual({ ...webhook, ...well })
    yield* store.enable(p1, webhook.id, context)
    expect(yield* store.find(p1, webhook.id)).toEqual({ ...webhook, ...well })
    const unknown = yield* unknownId
    yield* expectFailure(
      "WebhookNotFound",
      store.find(p2, webhook.id),
      store.find(p1, unknown),
      store.enable(p2, webhook.id, context),
      store.enable(p1, unknown, context),
    )
  })

  stateTests(on)
  updateTests(on)

  test("hands out a webhook's headers with its deliveries", function* () {
    const headers = { names: ["x-a"], sealed: StoredSecret('[["x-a","1"]]') }
    const { ref, store, webhook } = yield* preparedWith({ headers })
    expect(yield* store.list(p1)).toEqual([{ ...webhook, ...well }])
    const handed = Effect.gen(function* () {
      yield* publishMany(1)
      return (yield* claims()).map((claim) => claim.webhook.headers)
    })
    expect(yield* handed).toEqual([headers.sealed])
    yield* store.update(ref, settingsOf(webhook, { headers: undefined }), context)
    expect(yield* handed).toEqual([undefined])
  })

  test("rotates the secret: the previous one keeps signing for the given time", function* () {
    const { store, webhook } = yield* preparedWith({ eventTypes: [EventType("test.happened")] })
    const { secret } = makeWebhook(p1)
    const until = (yield* Clock.currentTimeMillis) + 60_000
    // Whenever the events were published.
    const signing = Effect.map(claims(), (all) => all.map((claim) => claim.webhook.secrets))
    yield* publishMany(1)
    expect(yield* signing).toEqual([[webhook.secret]])
    const rotation = { secret, previousUntil: until }
    yield* publishMany(1)
    yield* store.rotateSecret(p1, webhook.id, rotation, context)
    yield* publishMany(1)
    const both = [secret, webhook.secret]
    expect(yield* signing).toEqual([both, both])
    const previous = { secret: webhook.secret, until }
    expect(yield* store.list(p1)).toEqual([{ ...webhook, ...well, secret, previous }])
    const back = { secret: webhook.secret, previousUntil: until - 60_000 }
    yield* store.rotateSecret(p1, webhook.id, back, context)
    yield* publishMany(1)
    expect(yield* signing).toEqual([[webhook.secret]])
    const foreign = store.rotateSecret(p2, webhook.id, rotation, context)
    yield* expectFailure("WebhookNotFound", foreign)
  })

  test("tells the keys that any of the secrets is encrypted with", function* () {
    const store = yield* prepared
    const now = Date.now()
    expect(yield* store.encryptionKeys(now)).toEqual([])
    const plain = yield* addWebhook()
    yield* addWebhook(p2, { secret: StoredSecret("enc_k1_AA") })
    const until = now + 60_000
    for (const secret of ["enc_k-2_AA_BB", "enc_k3_AA"].map(StoredSecret)) {
      yield* store.rotateSecret(p1, plain.id, { secret, previousUntil: until }, context)
    }
    yield* store.addSigningKey(p1, plain.id, StoredSecret("enc_k4_AA"), context)
    const headers = { names: ["x-a"], sealed: StoredSecret("enc_k6_AA") }
    yield* addWebhook(p2, { headers })
    // Damaged.
    yield* addWebhook(p1, { secret: StoredSecret("enc_k 5_AA") })
    const keysAt = (at: number) =>
      Effect.map(store.encryptionKeys(at), (uses) => uses.map(({ keyId }) => keyId).toSorted())
    expect(yield* keysAt(now)).toEqual(["k-2", "k1", "k3", "k4", "k6"])
    expect(yield* keysAt(until)).toEqual(["k1", "k3", "k4", "k6"])
  })

  test("shows three secrets for a key at most, and whose they are", function* () {
    const store = yield* prepared
    const secret = StoredSecret("enc_k1_AA")
    const webhooks = yield* Effect.replicateEffect(addWebhook(p2, { secret }), 4)
    yield* addWebhook(p1, { secret: StoredSecret(`enc_k2_${"A".repeat(40_000)}`) })
    const uses = yield* store.encryptionKeys(Date.now())
    expect(uses.map(({ keyId }) => keyId)).toEqual(["k1"])
    const { samples } = firstOf(uses)
    expect(samples).toHaveLength(3)
    const all = webhooks.map((webhook) => ({ ...refOf(webhook), secret }))
    expect(all).toEqual(expect.arrayContaining([...samples]))
  })

  test("fails if the project does not exist", function* () {
    const store = yield* WebhookStore
    const nowhere = ProjectId("nowhere")
    const added = store.add(makeWebhook(nowhere), 50, context)
    yield* expectFailure("ProjectNotFound", added, store.list(nowhere))
  })

  test("enforces the limit of a project across concurrent additions", function* () {
    const store = yield* prepared
    const outcomes = yield* times(20, () => outcomeOf(store.add(makeWebhook(p1), 7, context)))
    const refused = outcomes.filter((outcome) => outcome !== "done")
    expect(refused).toEqual(Array.from({ length: 13 }, () => "WebhookLimitReached"))
    const stored = yield* store.list(p1)
    expect(stored).toHaveLength(7)
    yield* store.add(makeWebhook(p2), 7, context)
    yield* store.remove(p1, firstOf(stored).id, context)
    yield* store.add(makeWebhook(p1), 7, context)
  })

  removalTests(on)
  onceTests(on)

  transactional("undoes changes with a transaction of the host that fails", function* () {
    const { ref, store, webhook } = yield* preparedWebhook
    yield* undone(store.add(makeWebhook(p1), 50, context))
    yield* undone(store.remove(p1, webhook.id, context))
    yield* undone(store.update(ref, settingsOf(webhook, { disabled: byRequest }), context))
    expect(yield* store.list(p1)).toEqual([{ ...webhook, ...well }])
  })
}
