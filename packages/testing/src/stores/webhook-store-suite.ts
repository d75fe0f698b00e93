/** Certifies a `WebhookStore`. */

import { expect } from "@effect/vitest"
import { isReplayedResponse } from "@tenure/core/internal"
import {
  type Attempt,
  type AttemptResult,
  type Claim,
  EventType,
  MembershipStore,
  Outbox,
  ProjectId,
  StoredSecret,
  type WebhookChange,
  WebhookId,
  type WebhookSettings,
  WebhookStore,
  settingChanges,
} from "@tenure/core/store"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fixture from "../support/fixtures.ts"
import { type StoreTests, undone } from "./declare.ts"

const { occasion, p1, p2 } = Fixture

/** A store with two projects. */
const prepared = Effect.gen(function* () {
  const memberships = yield* MembershipStore
  yield* memberships.createProject(p1, occasion)
  yield* memberships.createProject(p2, occasion)
  return yield* WebhookStore
})

/** The same, with one webhook in the first project. */
const preparedWebhook = Effect.gen(function* () {
  const store = yield* prepared
  const webhook = Fixture.makeWebhook(p1)
  yield* store.add(webhook, 50, occasion)
  return { store, webhook, ref: { projectId: p1, webhookId: webhook.id } }
})

const claimable = Effect.gen(function* () {
  const outbox = yield* Outbox
  return yield* outbox.claim({
    limit: 100,
    failing: 100,
    perWebhook: { least: 100, most: 100 },
    perProject: 100,
    ahead: new Map(),
    leaseMillis: 60_000,
  })
})

/** A webhook without attempts. */
const well = { failures: 0, failingSince: undefined }

const answered = (status: number): Attempt => ({
  at: 0,
  durationMillis: 1,
  result: { _tag: "Answered", status, body: "" },
})

const delivered: AttemptResult = { _tag: "Delivered", attempt: answered(200) }
const failed: AttemptResult = { _tag: "Failed", attempt: answered(500), holdMillis: 0 }

/** Publishes an event to one webhook, and settles its delivery. */
const attempted = Effect.fnUntraced(function* (webhookId: WebhookId, settlement: AttemptResult) {
  const outbox = yield* Outbox
  yield* outbox.publishTo(Fixture.event(p1), webhookId)
  yield* Effect.forEach((yield* claimable).claims, (claim) => outbox.settle(claim, settlement))
})

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

const updateTests = ({ advance, test }: StoreTests): void => {
  test("replaces the settings of a webhook, if they are as expected", function* () {
    const { ref, store, webhook } = yield* preparedWebhook
    const changed = {
      url: "https://receiver.example/moved",
      eventTypes: [EventType("test.happened")],
      ordered: true,
      rate: 40,
      description: "The shop's mails",
      headers: { names: ["x-a", "x-b"], sealed: StoredSecret("enc_k1_AA") },
      disabled: byRequest,
    }
    yield* store.update(ref, settingsOf(webhook, changed), occasion)
    expect(yield* store.find(p1, webhook.id)).toEqual({ ...webhook, ...well, ...changed })
    const conflicts = [
      store.update(ref, settingsOf(webhook, { url: "https://receiver.example" }), occasion),
      store.update(
        ref,
        settingsOf({ ...changed, headers: { names: ["x-a"], sealed: StoredSecret("[]") } }, {}),
        occasion,
      ),
      store.update({ ...ref, projectId: p2 }, settingsOf(changed, webhook), occasion),
      store.update(
        { ...ref, webhookId: WebhookId(crypto.randomUUID()) },
        settingsOf(changed, webhook),
        occasion,
      ),
    ]
    for (const conflict of conflicts) {
      expect((yield* Effect.flip(conflict))._tag).toBe("WebhookConflict")
    }
    yield* store.update(ref, settingsOf(changed, webhook), occasion)
    expect(yield* store.find(p1, webhook.id)).toEqual({ ...webhook, ...well })
  })

  test("hands out a webhook's headers with its deliveries", function* () {
    const store = yield* prepared
    const headers = { names: ["x-a"], sealed: StoredSecret('[["x-a","1"]]') }
    const webhook = { ...Fixture.makeWebhook(p1), headers }
    yield* store.add(webhook, 50, occasion)
    expect(yield* store.list(p1)).toEqual([{ ...webhook, ...well }])
    const handed = Effect.gen(function* () {
      yield* (yield* Outbox).publish(Fixture.event(p1))
      return (yield* claimable).claims.map((claim) => claim.webhook.headers)
    })
    expect(yield* handed).toEqual([headers.sealed])
    const ref = { projectId: p1, webhookId: webhook.id }
    yield* store.update(ref, settingsOf(webhook, { headers: undefined }), occasion)
    expect(yield* handed).toEqual([undefined])
  })

  test("has one of several changes at the same time replace the settings", function* () {
    const { store, webhook } = yield* preparedWebhook
    const results = yield* Effect.forEach(
      ["a", "b", "c", "d"],
      (description) =>
        Effect.result(
          store.update(
            { projectId: p1, webhookId: webhook.id },
            settingsOf(webhook, { description }),
            occasion,
          ),
        ),
      { concurrency: "unbounded" },
    )
    expect(results.filter(({ _tag }) => _tag === "Success")).toHaveLength(1)
  })

  test("keeps what waits for a webhook that is disabled by request, until it is enabled", function* () {
    const store = yield* prepared
    const outbox = yield* Outbox
    const webhook = Fixture.makeWebhook(p1)
    const ref = { projectId: p1, webhookId: webhook.id }
    yield* store.add(webhook, 50, occasion)
    for (let count = 0; count < 4; count++) yield* outbox.publish(Fixture.event(p1))
    const [first, second, third] = (yield* claimable).claims
    yield* outbox.publish(Fixture.event(p1))
    yield* store.update(ref, settingsOf(webhook, { disabled: byRequest }), occasion)
    yield* outbox.publish(Fixture.event(p1))
    const error = yield* Effect.flip(outbox.publishTo(Fixture.event(p1), webhook.id))
    expect(error._tag).toBe("WebhookDisabled")
    const retry = {
      _tag: "Retry",
      attempt: answered(500),
      delayMillis: 0,
      holdMillis: 0,
    } as const
    for (const [claim, settlement] of [
      [first, { _tag: "Released" }],
      [second, delivered],
      [third, retry],
    ] as const) {
      if (claim !== undefined) expect(yield* outbox.settle(claim, settlement)).toBe("Settled")
    }
    // The lease of the fourth passes.
    yield* advance(70_000)
    expect((yield* claimable).claims).toEqual([])
    expect(yield* outbox.backlog(10)).toEqual({
      waiting: 4,
      dueForMillis: undefined,
      failedDeliveries: 0,
      disabledWebhooks: 0,
    })
    const progress = yield* outbox.progress(p1, [webhook.id])
    expect(progress.get(webhook.id)).toMatchObject({ waiting: 4, nextAttemptAt: undefined })
    expect(yield* outbox.troubled(10)).toEqual([])
    yield* store.enable(p1, webhook.id, occasion)
    expect(yield* store.find(p1, webhook.id)).toEqual({ ...webhook, ...well })
    const { claims } = yield* claimable
    expect(claims).toHaveLength(4)
    expect(claims.map(({ event }) => event.id)).toContain(first?.event.id)
  })

  test("enables a webhook with other settings, as if no attempt for it had been made", function* () {
    const { ref, store, webhook } = yield* preparedWebhook
    yield* attempted(webhook.id, {
      _tag: "Disabled",
      attempt: answered(410),
      announcement: Fixture.event(p1, "webhook.disabled"),
    })
    const disabled = yield* store.find(p1, webhook.id)
    const description = "one"
    yield* store.update(ref, settingsOf(disabled, { description }), occasion)
    expect(yield* store.find(p1, webhook.id)).toEqual({ ...disabled, description })
    const enabled = { description: "another", disabled: undefined }
    yield* store.update(ref, settingsOf({ ...disabled, description }, enabled), occasion)
    expect(yield* store.find(p1, webhook.id)).toEqual({ ...webhook, ...well, ...enabled })
  })
}

const onceTests = ({ test }: StoreTests): void => {
  test("adds a webhook with an idempotency key once, and keeps no key of one that it cannot add", function* () {
    const store = yield* prepared
    const key = Fixture.once()
    yield* Effect.flip(store.add(Fixture.makeWebhook(p1), 0, { ...occasion, once: key }))
    const results = yield* Effect.forEach(
      Array.from({ length: 8 }, () => Fixture.makeWebhook(p1)),
      (webhook) => store.add(webhook, 1, { ...occasion, once: key }),
      { concurrency: "unbounded" },
    )
    const ids = (yield* store.list(p1)).map(({ id }) => id)
    expect(ids).toHaveLength(1)
    const replays = results.filter(isReplayedResponse)
    expect(replays).toHaveLength(7)
    for (const { answer } of replays) expect([answer]).toEqual(ids)
    const other = { ...key, fingerprint: "another" }
    const error = yield* Effect.flip(
      store.add(Fixture.makeWebhook(p1), 50, { ...occasion, once: other }),
    )
    expect(error._tag).toBe("IdempotencyMismatch")
  })

  test("rotates a secret with an idempotency key once", function* () {
    const store = yield* prepared
    const webhook = Fixture.makeWebhook(p1)
    const keyed = { ...occasion, once: Fixture.once() }
    const previousUntil = 1_700_000_000_123
    const rotate = (secret: string) =>
      store.rotateSecret(p1, webhook.id, { secret: StoredSecret(secret), previousUntil }, keyed)
    yield* Effect.flip(rotate("early"))
    yield* store.add(webhook, 50, occasion)
    const results = yield* Effect.forEach(["a", "b", "c", "d"], rotate, {
      concurrency: "unbounded",
    })
    const replays = results.filter(isReplayedResponse)
    expect(replays.map(({ answer }) => answer)).toEqual(Array(3).fill(String(previousUntil)))
    const { previous, secret } = yield* store.find(p1, webhook.id)
    expect(previous?.secret).toBe(webhook.secret)
    yield* rotate("late")
    expect((yield* store.find(p1, webhook.id)).secret).toBe(secret)
  })

  test("enables a webhook with an idempotency key once, disabled or not", function* () {
    const store = yield* prepared
    const webhook = Fixture.makeWebhook(p1)
    const keyed = { ...occasion, once: Fixture.once() }
    yield* Effect.flip(store.enable(p1, webhook.id, keyed))
    yield* store.add(webhook, 50, occasion)
    expect(isReplayedResponse(yield* store.enable(p1, webhook.id, keyed))).toBe(false)
    expect(isReplayedResponse(yield* store.enable(p1, webhook.id, keyed))).toBe(true)
    const disabled = { ...Fixture.makeWebhook(p1), disabled: { at: 5, by: "failures" as const } }
    yield* store.add(disabled, 50, occasion)
    const error = yield* Effect.flip(
      store.enable(p1, disabled.id, {
        ...occasion,
        once: { ...keyed.once, fingerprint: "another" },
      }),
    )
    expect(error._tag).toBe("IdempotencyMismatch")
  })

  test("changes a webhook with an idempotency key once", function* () {
    const store = yield* prepared
    const webhook = Fixture.makeWebhook(p1)
    const ref = { projectId: p1, webhookId: webhook.id }
    const keyed = { ...occasion, once: Fixture.once() }
    const change = settingsOf(webhook, { description: "The shop's mails" })
    yield* Effect.flip(store.update(ref, change, keyed))
    yield* store.add(webhook, 50, occasion)
    const changes = Array.from({ length: 4 }, () => store.update(ref, change, keyed))
    const results = yield* Effect.all(changes, { concurrency: "unbounded" })
    expect(results.filter(isReplayedResponse)).toHaveLength(3)
  })

  test("removes a webhook with an idempotency key once", function* () {
    const { store, webhook } = yield* preparedWebhook
    const keyed = { ...occasion, once: Fixture.once() }
    yield* Effect.flip(store.remove(p2, webhook.id, keyed))
    const removals = Array.from({ length: 4 }, () => store.remove(p1, webhook.id, keyed))
    const results = yield* Effect.all(removals, { concurrency: "unbounded" })
    expect(results.filter(isReplayedResponse)).toHaveLength(3)
    const other = yield* Effect.flip(store.remove(p1, webhook.id, occasion))
    expect(other._tag).toBe("WebhookNotFound")
  })
}

const removalTests = ({ test }: StoreTests): void => {
  test("removes a webhook, but not through another project", function* () {
    const { store, webhook } = yield* preparedWebhook
    const foreign = yield* Effect.flip(store.remove(p2, webhook.id, occasion))
    expect(foreign._tag).toBe("WebhookNotFound")
    yield* store.remove(p1, webhook.id, occasion)
    const again = yield* Effect.flip(store.remove(p1, webhook.id, occasion))
    expect(again._tag).toBe("WebhookNotFound")
    expect(yield* store.list(p1)).toEqual([])
  })

  test("fails to remove an unknown webhook", function* () {
    const store = yield* prepared
    const error = yield* Effect.flip(store.remove(p1, WebhookId(crypto.randomUUID()), occasion))
    expect(error._tag).toBe("WebhookNotFound")
  })

  test("cancels the deliveries of a removed webhook, waiting and claimed", function* () {
    const store = yield* prepared
    const outbox = yield* Outbox
    const webhook = Fixture.makeWebhook(p1)
    const other = Fixture.makeWebhook(p1)
    yield* store.add(webhook, 50, occasion)
    const deliver = (claim: Claim) => outbox.settle(claim, delivered)
    yield* outbox.publish(Fixture.event(p1))
    yield* Effect.forEach((yield* claimable).claims, deliver)
    yield* outbox.publish(Fixture.event(p1))
    const { claims } = yield* claimable
    yield* store.add(other, 50, occasion)
    yield* outbox.publish(Fixture.event(p1))
    yield* store.remove(p1, webhook.id, occasion)
    const left = (yield* claimable).claims.map((claim) => claim.webhook.webhookId)
    expect(left).toEqual([other.id])
    expect(yield* Effect.forEach(claims, deliver)).toEqual(["Lapsed"])
    const deliveries = yield* outbox.deliveries(
      { projectId: p1, webhookId: webhook.id },
      { limit: 10 },
    )
    const states = deliveries.map(({ state }) => state)
    expect(states).toEqual(["cancelled", "cancelled", "delivered"])
  })
}

/** Declares the tests. */
export const webhookStoreSuite = (on: StoreTests): void => {
  const { advance, test, transactional } = on

  on.test("responds to a ping", function* () {
    yield* (yield* WebhookStore).ping
  })

  test("lists the webhooks of a project, oldest first", function* () {
    const store = yield* prepared
    const added = [p1, p1, p2, p1].map(Fixture.makeWebhook)
    yield* Effect.forEach(added, (webhook) => store.add(webhook, 50, occasion))
    const ofProject = (id: ProjectId) =>
      added.filter(({ projectId }) => projectId === id).map((webhook) => ({ ...webhook, ...well }))
    expect(yield* store.list(p1)).toEqual(ofProject(p1))
    expect(yield* store.list(p2)).toEqual(ofProject(p2))
  })

  test("stores URLs unchanged", function* () {
    const store = yield* prepared
    const urls = ["https://EXAMPLE.com:443/a?b=c&d#e", `https://例え.jp/${"x".repeat(2000)}`]
    for (const url of urls) yield* store.add({ ...Fixture.makeWebhook(p1), url }, 50, occasion)
    expect((yield* store.list(p1)).map(({ url }) => url)).toEqual(urls)
  })

  test("stores the event types of a webhook", function* () {
    const store = yield* prepared
    const eventTypes = [EventType("payment.completed"), EventType("a-b.c_d")]
    yield* store.add({ ...Fixture.makeWebhook(p1), eventTypes }, 50, occasion)
    yield* store.add({ ...Fixture.makeWebhook(p1), eventTypes: [] }, 50, occasion)
    const listed = yield* store.list(p1)
    expect(listed.map((webhook) => webhook.eventTypes)).toEqual([eventTypes, []])
  })

  test("finds a webhook, but not through another project", function* () {
    const store = yield* prepared
    const webhook = { ...Fixture.makeWebhook(p1), eventTypes: [EventType("payment.completed")] }
    yield* Effect.forEach([webhook, Fixture.makeWebhook(p1)], (one) => store.add(one, 50, occasion))
    expect(yield* store.find(p1, webhook.id)).toEqual({ ...webhook, ...well })
    const foreign = yield* Effect.flip(store.find(p2, webhook.id))
    const unknown = yield* Effect.flip(store.find(p1, WebhookId(crypto.randomUUID())))
    expect([foreign._tag, unknown._tag]).toEqual(["WebhookNotFound", "WebhookNotFound"])
    yield* store.remove(p1, webhook.id, occasion)
    const removed = yield* Effect.flip(store.find(p1, webhook.id))
    expect(removed._tag).toBe("WebhookNotFound")
  })

  test("counts the attempts that failed since one succeeded, and says since when", function* () {
    const store = yield* prepared
    const [webhook, other] = [Fixture.makeWebhook(p1), Fixture.makeWebhook(p1)]
    yield* Effect.forEach([webhook, other], (one) => store.add(one, 50, occasion))
    yield* attempted(webhook.id, failed)
    const first = yield* store.find(p1, webhook.id)
    expect(first).toEqual({ ...webhook, failures: 1, failingSince: expect.any(Number) })
    yield* advance(1000)
    yield* attempted(webhook.id, failed)
    const second = yield* store.find(p1, webhook.id)
    expect(second).toEqual({ ...first, failures: 2 })
    expect(yield* store.list(p1)).toEqual([second, { ...other, ...well }])
    expect(yield* store.find(p1, other.id)).toEqual({ ...other, ...well })
    yield* attempted(webhook.id, delivered)
    expect(yield* store.find(p1, webhook.id)).toEqual({ ...webhook, ...well })
  })

  test("keeps the failures of a webhook that is disabled, until it is enabled", function* () {
    const { store, webhook } = yield* preparedWebhook
    yield* attempted(webhook.id, failed)
    yield* store.enable(p1, webhook.id, occasion)
    expect((yield* store.find(p1, webhook.id)).failures).toBe(1)
    yield* attempted(webhook.id, {
      _tag: "Disabled",
      attempt: answered(410),
      announcement: Fixture.event(p1, "webhook.disabled"),
    })
    expect(yield* store.find(p1, webhook.id)).toEqual({
      ...webhook,
      disabled: { at: expect.any(Number), by: "failures" },
      failures: 2,
      failingSince: expect.any(Number),
    })
    yield* store.enable(p1, webhook.id, occasion)
    expect(yield* store.find(p1, webhook.id)).toEqual({ ...webhook, ...well })
  })

  test("rotates the secret: the previous one keeps signing for the given time", function* () {
    const store = yield* prepared
    const outbox = yield* Outbox
    const webhook = { ...Fixture.makeWebhook(p1), eventTypes: [EventType("test.happened")] }
    const { secret } = Fixture.makeWebhook(p1)
    yield* store.add(webhook, 50, occasion)
    const now = yield* Clock.currentTimeMillis
    const signing = Effect.gen(function* () {
      yield* outbox.publish(Fixture.event(p1))
      return (yield* claimable).claims.map((claim) => claim.webhook.secrets)
    })
    expect(yield* signing).toEqual([[webhook.secret]])
    const rotation = { secret, previousUntil: now + 60_000 }
    yield* store.rotateSecret(p1, webhook.id, rotation, occasion)
    expect(yield* signing).toEqual([[secret, webhook.secret]])
    expect(yield* store.list(p1)).toEqual([
      { ...webhook, ...well, secret, previous: { secret: webhook.secret, until: now + 60_000 } },
    ])
    yield* store.rotateSecret(
      p1,
      webhook.id,
      { secret: webhook.secret, previousUntil: now },
      occasion,
    )
    expect(yield* signing).toEqual([[webhook.secret]])
    const foreign = yield* Effect.flip(store.rotateSecret(p2, webhook.id, rotation, occasion))
    expect(foreign._tag).toBe("WebhookNotFound")
  })

  test("adds one signing key, and keeps it when another is added", function* () {
    const { store, webhook } = yield* preparedWebhook
    const key = StoredSecret("whsk_1")
    const other = StoredSecret("enc_k1_2")
    expect(yield* store.addSigningKey(p1, webhook.id, key, occasion)).toBe(key)
    expect(yield* store.addSigningKey(p1, webhook.id, other, occasion)).toBe(key)
    expect((yield* store.list(p1))[0]?.signingKey).toBe(key)
    yield* (yield* Outbox).publish(Fixture.event(p1))
    const { claims } = yield* claimable
    expect(claims.map((claim) => claim.webhook.signingKey)).toEqual([key])
    const foreign = yield* Effect.flip(store.addSigningKey(p2, webhook.id, key, occasion))
    expect(foreign._tag).toBe("WebhookNotFound")
  })

  test("tells the keys that any of the secrets is encrypted with", function* () {
    const store = yield* prepared
    const now = Date.now()
    expect(yield* store.encryptionKeys(now)).toEqual([])
    const plain = Fixture.makeWebhook(p1)
    yield* store.add(plain, 50, occasion)
    yield* store.add(
      { ...Fixture.makeWebhook(p2), secret: StoredSecret("enc_k1_AA") },
      50,
      occasion,
    )
    const secret = StoredSecret("enc_k-2_AA_BB")
    const previousUntil = now + 60_000
    yield* store.rotateSecret(p1, plain.id, { secret, previousUntil }, occasion)
    const again = { secret: StoredSecret("enc_k3_AA"), previousUntil }
    yield* store.rotateSecret(p1, plain.id, again, occasion)
    yield* store.addSigningKey(p1, plain.id, StoredSecret("enc_k4_AA"), occasion)
    const headers = { names: ["x-a"], sealed: StoredSecret("enc_k6_AA") }
    yield* store.add({ ...Fixture.makeWebhook(p2), headers }, 50, occasion)
    const damaged = StoredSecret("enc_k 5_AA")
    yield* store.add({ ...Fixture.makeWebhook(p1), secret: damaged }, 50, occasion)
    const keysAt = (at: number) =>
      Effect.map(store.encryptionKeys(at), (uses) => uses.map(({ keyId }) => keyId).toSorted())
    expect(yield* keysAt(now)).toEqual(["k-2", "k1", "k3", "k4", "k6"])
    expect(yield* keysAt(previousUntil)).toEqual(["k1", "k3", "k4", "k6"])
  })

  test("shows three secrets for a key at most, and whose they are", function* () {
    const store = yield* prepared
    const secret = StoredSecret("enc_k1_AA")
    const webhooks = [p2, p2, p2, p2].map((project) => ({
      ...Fixture.makeWebhook(project),
      secret,
    }))
    for (const webhook of webhooks) yield* store.add(webhook, 50, occasion)
    const long = StoredSecret(`enc_k2_${"A".repeat(40_000)}`)
    yield* store.add({ ...Fixture.makeWebhook(p1), secret: long }, 50, occasion)
    const uses = yield* store.encryptionKeys(Date.now())
    expect(uses.map(({ keyId }) => keyId)).toEqual(["k1"])
    const samples = uses[0]?.samples ?? []
    expect(samples).toHaveLength(3)
    const all = webhooks.map(({ id, projectId }) => ({ projectId, webhookId: id, secret }))
    expect(all).toEqual(expect.arrayContaining([...samples]))
  })

  test("adds one signing key if several are added at the same time", function* () {
    const { store, webhook } = yield* preparedWebhook
    const keys = yield* Effect.forEach(
      Array.from({ length: 10 }, (_, index) => StoredSecret(`whsk_${index}`)),
      (key) => store.addSigningKey(p1, webhook.id, key, occasion),
      { concurrency: "unbounded" },
    )
    const stored = (yield* store.list(p1)).map(({ signingKey }) => signingKey)
    expect(stored).toEqual([...new Set(keys)])
  })

  test("enables a webhook that is enabled, but none that is unknown or of another project", function* () {
    const { store, webhook } = yield* preparedWebhook
    yield* store.enable(p1, webhook.id, occasion)
    expect(yield* store.list(p1)).toEqual([{ ...webhook, ...well }])
    const foreign = yield* Effect.flip(store.enable(p2, webhook.id, occasion))
    const unknown = yield* Effect.flip(store.enable(p1, WebhookId(crypto.randomUUID()), occasion))
    expect([foreign._tag, unknown._tag]).toEqual(["WebhookNotFound", "WebhookNotFound"])
  })

  updateTests(on)

  test("fails if the project does not exist", function* () {
    const store = yield* WebhookStore
    const nowhere = ProjectId("nowhere")
    const added = yield* Effect.flip(store.add(Fixture.makeWebhook(nowhere), 50, occasion))
    const listed = yield* Effect.flip(store.list(nowhere))
    expect([added._tag, listed._tag]).toEqual(["ProjectNotFound", "ProjectNotFound"])
  })

  test("enforces the limit of a project across concurrent additions", function* () {
    const store = yield* prepared
    const added = yield* Effect.forEach(
      Array.from({ length: 20 }, () => Fixture.makeWebhook(p1)),
      (webhook) => Effect.result(store.add(webhook, 7, occasion)),
      { concurrency: "unbounded" },
    )
    expect(added.filter(({ _tag }) => _tag === "Success")).toHaveLength(7)
    for (const one of added) {
      if (one._tag === "Failure") expect(one.failure._tag).toBe("WebhookLimitReached")
    }
    const [first, ...rest] = yield* store.list(p1)
    expect(rest).toHaveLength(6)
    yield* store.add(Fixture.makeWebhook(p2), 7, occasion)
    if (first !== undefined) yield* store.remove(p1, first.id, occasion)
    yield* store.add(Fixture.makeWebhook(p1), 7, occasion)
  })

  removalTests(on)
  onceTests(on)

  transactional("undoes changes with a transaction of the host that fails", function* () {
    const { store, webhook } = yield* preparedWebhook
    yield* undone(store.add(Fixture.makeWebhook(p1), 50, occasion))
    yield* undone(store.remove(p1, webhook.id, occasion))
    const change = settingsOf(webhook, { disabled: byRequest })
    yield* undone(store.update({ projectId: p1, webhookId: webhook.id }, change, occasion))
    expect(yield* store.list(p1)).toEqual([{ ...webhook, ...well }])
  })
}
