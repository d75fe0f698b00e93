import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import fc from "fast-check"
import { hostOrigin } from "../../src/base/change-context.ts"
import { errorReporterLayer } from "../../src/base/faults.ts"
import * as Setting from "../../src/base/setting.ts"
import { ProjectId } from "../../src/base/values.ts"
import { MembershipStore } from "../../src/memberships/store.ts"
import {
  Encryption,
  type EncryptionOptions,
  encryptionLayer,
  encryptionOptions,
} from "../../src/webhooks/encryption.ts"
import { StoredSecret, parseKeyring } from "../../src/webhooks/secrets.ts"
import {
  generateSigningKey,
  secretFromBytes,
  verifySignature,
  verifySignatureAsymmetric,
} from "../../src/webhooks/signature.ts"
import { WebhookStore } from "../../src/webhooks/store.ts"
import { WebhookId } from "../../src/webhooks/webhook.ts"
import { Webhooks } from "../../src/webhooks/webhooks.ts"
import {
  addWebhook,
  addWebhookTo,
  deliveriesOf,
  dispatching,
  hour,
  otherUrl,
  pass,
  projectId,
  publish,
  test,
  url,
} from "./dispatching.ts"

const k1 = new Uint8Array(32).fill(1)
const k2 = new Uint8Array(32).fill(2)
const base64 = (key: Uint8Array) => Buffer.from(key).toString("base64")

type Given = NonNullable<EncryptionOptions["encryption"]>

const first: Given = { current: "k1", keys: { k1 } }
const rotated: Given = { current: "k2", keys: { k1, k2: base64(k2) } }
const onlySecond: Given = { current: "k2", keys: { k2 } }
const reading: Given = { keys: { k1 } }

const encrypted = (encryption: Given | undefined) =>
  encryptionLayer(Setting.parse(encryptionOptions, { encryption }))

/** Runs with keys, or without any. */
const by =
  (encryption: Given | undefined) =>
  <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.provide(work, encrypted(encryption), { local: true })

const owner = {
  projectId: ProjectId("p1"),
  webhookId: WebhookId("0e9bfa3c-0000-4000-8000-000000000001"),
}
const secret = secretFromBytes(new Uint8Array(32).fill(7))

const seal = Effect.flatMap(Encryption, ({ seal: run }) => run(owner, secret))
const open = (stored: StoredSecret, of = owner) =>
  Effect.flatMap(Encryption, (encryption) => encryption.secret(of, stored))
const refusal = (stored: StoredSecret, of = owner) =>
  Effect.map(Effect.flip(open(stored, of)), ({ message }) => message)

describe("an encrypted secret", () => {
  it.effect("shows the id of its key and nothing of the secret, and differs every time", () =>
    Effect.gen(function* () {
      const stored = yield* seal
      expect(stored).toMatch(/^enc_k1_[A-Za-z0-9_-]+$/)
      expect(stored).not.toContain(secret.slice(6))
      expect(yield* seal).not.toBe(stored)
      expect(yield* open(stored)).toBe(secret)
      // From the cache.
      expect(yield* open(stored)).toBe(secret)
      // Nor is it read as another webhook's or project's secret.
      const webhookId = WebhookId("0e9bfa3c-0000-4000-8000-000000000002")
      expect(yield* refusal(stored, { ...owner, webhookId })).toContain("not encrypted")
      expect(yield* refusal(stored, { ...owner, projectId: ProjectId("p2") })).toContain("not enc")
    }).pipe(by(first)),
  )

  it.effect("is read after a rotation, for as long as its key is given", () =>
    Effect.gen(function* () {
      const old = yield* by(first)(seal)
      expect(yield* by(rotated)(open(old))).toBe(secret)
      expect(yield* by(rotated)(seal)).toMatch(/^enc_k2_/)
      const otherKey: Given = { current: "k1", keys: { k1: k2 } }
      expect(yield* by(onlySecond)(refusal(old))).toContain('no valid encryption key "k1"')
      expect(yield* by(undefined)(refusal(old))).toContain("there is no encryption key")
      expect(yield* by(otherKey)(refusal(old))).toContain("not encrypted")
    }),
  )

  it.effect("is read by a server whose keys only decrypt, and whose own secrets stay plain", () =>
    Effect.gen(function* () {
      const stored = yield* by(first)(seal)
      expect(yield* by(reading)(open(stored))).toBe(secret)
      const own = yield* by(reading)(seal)
      expect(own).toBe(secret)
      const forms = Effect.map(Encryption, ({ isCurrent }) => [isCurrent(own), isCurrent(stored)])
      expect(yield* by(reading)(forms)).toEqual([true, false])
      expect(yield* by(first)(forms)).toEqual([false, true])
    }),
  )

  it.effect("with any other character is refused, and no message shows a secret or a key", () =>
    Effect.gen(function* () {
      const stored = yield* seal
      const run = Effect.runPromiseWith(yield* Effect.context())
      const changes = fc.tuple(fc.nat(stored.length - 1), fc.string({ minLength: 1, maxLength: 1 }))
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(changes, async ([at, character]) => {
            fc.pre(stored[at] !== character)
            const changed = StoredSecret(stored.slice(0, at) + character + stored.slice(at + 1))
            const error = await run(by(first)(Effect.flip(open(changed))))
            for (const hidden of [secret.slice(6), base64(k1), changed]) {
              expect(error.stack).not.toContain(hidden)
            }
          }),
        ),
      )
    }).pipe(by(first)),
  )

  it.effect("that is no secret after decryption is refused", () =>
    Effect.gen(function* () {
      const key = yield* generateSigningKey
      const encryption = yield* Encryption
      const stored = yield* encryption.seal(owner, key)
      expect(yield* encryption.signingKey(owner, stored)).toBe(key)
      expect(yield* refusal(stored)).toContain("it is invalid")
    }).pipe(by(first)),
  )
})

it.effect("a secret in plain text is read with and without keys, until it is encrypted", () =>
  Effect.gen(function* () {
    const plain = StoredSecret(secret)
    expect(yield* by(undefined)(seal)).toBe(secret)
    expect(yield* by(undefined)(open(plain))).toBe(secret)
    expect(yield* by(first)(open(plain))).toBe(secret)
    expect(yield* by(first)(refusal(StoredSecret("")))).toContain("it is invalid")
  }),
)

describe("a function for keys", () => {
  it.effect("is asked once for each key, and again after it has failed", () => {
    const asked: Array<string> = []
    const keys = async (id: string) => {
      asked.push(id)
      if (asked.length === 1) throw new Error("the key service is away")
      return id === "k1" ? k1 : undefined
    }
    return Effect.gen(function* () {
      expect(yield* Effect.flip(seal)).toMatchObject({
        message: expect.stringContaining('the encryption key "k1" cannot be loaded'),
        cause: new Error("the key service is away"),
      })
      const stored = yield* seal
      expect(yield* open(stored)).toBe(secret)
      expect(asked).toEqual(["k1", "k1"])
    }).pipe(by({ current: "k1", keys }))
  })

  it.effect.each([undefined, "", "short", new Uint8Array(16)])(
    "that returns %j has no such key",
    (key) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(seal)
        expect(error.message).toContain('no valid encryption key "k1"')
      }).pipe(by({ current: "k1", keys: () => key })),
  )
})

describe("the option", () => {
  it.each([
    [{ current: "k1", keys: { k1: "c2VjcmV0LXRoYXQtaXMtc2hvcnQ=" } }, "encryption.keys"],
    [{ current: "k1", keys: { k1: new Uint8Array(16) } }, "encryption.keys"],
    [{ current: "k1", keys: base64(k1) }, "encryption.keys"],
    [{ current: "k_1", keys: { k_1: k1 } }, "encryption.current"],
    [{ current: "k2", keys: { k1 } }, "encryption.current"],
    [{ current: "toString", keys: { k1 } }, "encryption.current"],
    [{ current: "", keys: {} }, "encryption.current"],
    [{ current: base64(k1), keys: { k1 } }, "encryption.current"],
    [base64(k1), "encryption"],
  ])("is refused without showing a key: %#", (encryption, field) => {
    const given: unknown = { encryption }
    const error = Result.getOrThrow(Result.flip(encryptionOptions.read(given, "")))
    expect(error.field).toBe(field)
    expect(error.message).not.toContain("c2Vj")
    expect(error.message).not.toContain(base64(k1))
  })

  it("is read from text: keys separated by commas, of which the first encrypts, unless it is plain", () => {
    const one = parseKeyring(base64(k1))
    const two = parseKeyring(`${base64(k2)}, ${base64(k1)}`)
    const plain = parseKeyring(`plain, ${base64(k1)}`)
    expect(one?.keys).toEqual({ [String(one?.current)]: base64(k1) })
    expect(two?.keys).toEqual({ ...one?.keys, [String(two?.current)]: base64(k2) })
    expect(plain).toEqual({ current: undefined, keys: one?.keys })
    for (const encryption of [two, plain]) {
      expect(Result.isSuccess(encryptionOptions.read({ encryption }, ""))).toBe(true)
    }
    const key = base64(k1)
    for (const text of ["", "undefined", `${key},`, `,${key}`, "plain", "plain,", `${key},plain`]) {
      expect(parseKeyring(text)).toBeUndefined()
    }
  })
})

describe("webhooks with encryption", () => {
  const storesWith = (encryption: Given) => Layer.provideMerge(encrypted(encryption), memory())
  const stores = storesWith(first)
  const context = { origin: hostOrigin, at: 0 }

  /** Stores a webhook's secret so that no key in the tests decrypts it. */
  const breakSecret = (webhookId: WebhookId, secretOf: string) =>
    WebhookStore.use((store) => {
      const rotation = { secret: StoredSecret(secretOf), previousUntil: 0 }
      return store.rotateSecret(projectId, webhookId, rotation, context)
    })

  let isAway = false
  const keys = (id: string) => {
    if (isAway) throw new Error("the key service is away")
    return { k1, k2 }[id]
  }
  test(
    "are not listed while a key cannot be loaded, and their health is",
    function* () {
      isAway = true
      const { id } = yield* addWebhook()
      yield* breakSecret(id, "enc_k2_AAAA")
      const { health, list } = yield* Webhooks
      expect((yield* Effect.flip(list({ projectId })))._tag).toBe("StoreUnavailable")
      const all = yield* health({ projectId })
      expect(all).toMatchObject([{ id, failures: 0 }])
      expect(JSON.stringify(all)).not.toContain("enc_")
      isAway = false
      expect(yield* list({ projectId })).toMatchObject([{ id, secret: undefined }])
    },
    { stores: storesWith({ keys }) },
  )

  test(
    "show their secrets to the host, and none to the store",
    function* ({ sent }) {
      const webhooks = yield* Webhooks
      const webhook = yield* addWebhook()
      const ids = { projectId, webhookId: webhook.id }
      const key = yield* webhooks.addSigningKey(ids)
      expect(yield* webhooks.addSigningKey(ids)).toBe(key)
      const { secret: fresh } = yield* webhooks.rotateSecret(ids)
      const rows = yield* (yield* WebhookStore).list(projectId)
      expect(JSON.stringify(rows).match(/"enc_k1_/g)).toHaveLength(3)
      expect(JSON.stringify(rows)).not.toMatch(/whsec_|whsk_/)
      expect(yield* webhooks.list({ projectId })).toMatchObject([
        { secret: fresh, previous: { secret: webhook.secret } },
      ])

      const eventId = yield* publish
      yield* pass(100)
      const { at: now = 0, body = "", headers = {} } = sent[0] ?? {}
      const notification = { headers, body, now }
      for (const one of [fresh, webhook.secret]) {
        expect(Result.isSuccess(verifySignature(notification, [one]))).toBe(true)
      }
      const verified = yield* verifySignatureAsymmetric(notification, [key])
      expect(verified.id).toBe(eventId)
    },
    { stores },
  )

  test(
    "send their own headers, which nothing shows, and nothing without them",
    function* ({ sent }) {
      const webhooks = yield* Webhooks
      const headers = { Authorization: "Bearer hidden-1", "X-Tenant": "hidden 2" }
      const { id } = yield* webhooks.create({ projectId, url, headers })
      const ids = { projectId, webhookId: id }
      const sending = Effect.andThen(publish, pass(100))
      const patch = { "x-tenant": null, "X-Shop": "hidden 3" }
      yield* webhooks.update({ ...ids, headers: patch })
      yield* sending
      const own = { authorization: "Bearer hidden-1", "x-shop": "hidden 3" }
      expect(sent[0]?.headers).toMatchObject({ ...own, "user-agent": "Tenure" })
      expect(sent[0]?.headers).not.toHaveProperty("x-tenant")
      const store = yield* WebhookStore
      const shown = [
        yield* store.list(projectId),
        yield* webhooks.list({ projectId }),
        yield* (yield* MembershipStore).history(projectId, { userId: undefined, limit: 9 }),
      ]
      expect(JSON.stringify(shown)).not.toContain("hidden")
      const before = yield* store.find(projectId, id)
      const sealed = StoredSecret("enc_k9_AAAA")
      const settings = { ...before, headers: { names: ["x-shop"], sealed } }
      yield* store.update(ids, { expected: before, settings, changes: [] }, context)
      yield* sending
      expect(sent).toHaveLength(1)
      const problem = expect.stringContaining('no valid encryption key "k9"')
      expect(yield* webhooks.find(ids)).toMatchObject({ problem, headerNames: ["x-shop"] })
      const merged = yield* Effect.flip(webhooks.update({ ...ids, headers: { "x-a": "1" } }))
      expect(merged.message).toContain("headers must be null first")
      yield* webhooks.update({ ...ids, headers: null })
      yield* sending
      expect(sent[1]).toBeDefined()
      expect(sent[1]?.headers).not.toHaveProperty("authorization")
    },
    { retrySchedule: [], stores },
  )

  it.effect("a secret that cannot be read fails its own deliveries only, and sends nothing", () => {
    const faults: Array<unknown> = []
    const faulty = errorReporterLayer({ onError: ({ cause }) => void faults.push(cause) })
    return dispatching(
      function* ({ sent }) {
        const broken = yield* addWebhook()
        const intact = yield* addWebhookTo(otherUrl)
        yield* breakSecret(broken.id, "enc_k9_AAAA")
        yield* publish
        yield* pass(100)
        expect(sent.map((request) => request.url)).toEqual([otherUrl])
        expect(yield* deliveriesOf(intact)).toMatchObject([{ state: "delivered" }])
        const result = { _tag: "Failed", reason: "SecretUnreadable" }
        expect(yield* deliveriesOf(broken)).toMatchObject([
          { state: "failed", attempts: [{ result }] },
        ])
        expect(String(faults[0])).toContain('no valid encryption key "k9"')
        const webhooks = yield* Webhooks
        const problem = expect.stringContaining('no valid encryption key "k9"')
        const shown = { id: broken.id, secret: undefined, previous: undefined, problem }
        expect(yield* webhooks.list({ projectId })).toMatchObject([
          shown,
          { id: intact.id, secret: intact.secret, problem: undefined },
        ])
        expect(yield* webhooks.find({ projectId, webhookId: broken.id })).toMatchObject(shown)
        yield* pass(hour)
        expect(sent).toHaveLength(1)
      },
      { retrySchedule: [], stores: Layer.provideMerge(faulty, stores) },
    )
  })
})
