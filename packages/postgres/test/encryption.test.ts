/** Webhook secrets that are stored encrypted. */

import { type KeyringInput, type Tenure, createTenure } from "@tenure/core"
import { WebhookSecret, verifySignature } from "@tenure/core/signature"
import type { TransportRequest } from "@tenure/core/transport"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest"
import { postgres, rewriteSecrets } from "../src/index.ts"
import { clientLayer, emptied, execute, recordingTransport, sql } from "./harness.ts"

const schema = "encrypted"
const projectId = "p1"
const k1 = new Uint8Array(32).fill(1)
const k2 = new Uint8Array(32).fill(2)
const first: KeyringInput = { current: "k1", keys: { k1 } }
const rotated: KeyringInput = { current: "k2", keys: { k1, k2 } }
const onlySecond: KeyringInput = { current: "k2", keys: { k2 } }
const reading: KeyringInput = { keys: { k1 } }

const { sent, transport } = recordingTransport()

const started: Array<Tenure> = []

const start = async (encryption?: KeyringInput): Promise<Tenure> => {
  const stores = postgres({ url: inject("databaseUrl"), schema, maxConnections: 3 })
  const webhooks = { encryption, retrySchedule: [], missingKeys: "allow" } as const
  const tenure = await createTenure({ stores, transport, webhooks, metrics: true })
  started.push(tenure)
  await tenure.memberships.createProject(projectId)
  return tenure
}

/** The whole table, as a dump shows it. */
const dump = (): Promise<string> =>
  sql(`SELECT w::text FROM ${schema}.webhooks w`).pipe(
    Effect.map((rows) => JSON.stringify(rows)),
    Effect.provide(clientLayer({ maxConnections: 1 })),
    Effect.runPromise,
  )

const rewrite = (encryption: KeyringInput) =>
  rewriteSecrets({ schema, encryption }).pipe(Effect.provide(clientLayer()), Effect.runPromise)

const update = (statement: string) =>
  Effect.runPromise(execute(`UPDATE ${schema}.webhooks SET ${statement}`))

/** A webhook with a previous secret, a signing key and a header of its own. */
const addWebhook = async ({ webhooks }: Tenure, url = "https://receiver.example/a") => {
  const { id } = await webhooks.create({ projectId, url, headers: { "X-Hidden": "whsec_hidden" } })
  const ids = { projectId, webhookId: id }
  await webhooks.addSigningKey(ids)
  await webhooks.rotateSecret(ids)
  return ids
}

const secretsOf = async ({ webhooks }: Tenure) => {
  const all = await webhooks.list({ projectId })
  return all.map(({ previous, secret, signingKey }) => [secret, previous?.secret, signingKey])
}

/** Sends an event, and returns the states of its deliveries by webhook once they have ended. */
const send = async ({ events, webhooks }: Tenure, ids: ReadonlyArray<string>) => {
  await events.publish({ projectId, type: "test.happened", data: {} })
  const states = async () => {
    const lists = await Promise.all(
      ids.map((webhookId) => webhooks.deliveries({ projectId, webhookId })),
    )
    return lists.map((list) => list[0]?.state)
  }
  await expect.poll(states).not.toContain("waiting")
  return states()
}

const isSigned = (request: TransportRequest | undefined, secret: string) =>
  request !== undefined &&
  Result.isSuccess(
    verifySignature({ headers: request.headers, body: request.body, now: Date.now() }, [
      WebhookSecret(secret),
    ]),
  )

/** Returns a function that calls the API about the webhooks of the project. */
const caller =
  (tenure: Tenure, token: string) =>
  async (method: string, body?: object, path = "webhooks") => {
    const bytes = new TextEncoder().encode(body === undefined ? "" : JSON.stringify(body))
    const response = await tenure.handle({
      method,
      path: `/v2/projects/${projectId}/integrations/${path}`,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: { _tag: "Bytes", bytes },
      remoteAddress: "127.0.0.1",
    })
    return JSON.parse(String(response.body))
  }

const emptyTables = emptied(schema)
beforeEach(async () => {
  sent.length = 0
  await Effect.runPromise(emptyTables)
})

afterEach(async () => {
  await Promise.all(started.splice(0).map((tenure) => tenure.close()))
})

it("a server without a key that secrets are encrypted with, or with another, does not start unless it is told to", async () => {
  const tenure = await start(rotated)
  const ids = await addWebhook(tenure)
  const stores = () => postgres({ url: inject("databaseUrl"), schema, maxConnections: 3 })
  const open = async (encryption?: KeyringInput): Promise<string> => {
    const opened = createTenure({ stores: stores(), transport, webhooks: { encryption } })
    return opened.then(
      ({ close }) => close().then(() => "started"),
      (error) => error.message,
    )
  }
  const without = 'webhooks.encryption must have the key "k2", which secrets'
  expect(await open()).toContain(without)
  expect(await open(reading)).toContain(without)
  expect(await open({ keys: async () => undefined })).toContain(without)
  const isDown = async () => {
    throw new Error("the service is down")
  }
  for (const encryption of [rotated, onlySecond, { keys: isDown }]) {
    expect(await open(encryption)).toBe("started")
  }
  // Another key of the same id.
  for (const keys of [{ k1, k2: k1 }, async () => k1]) {
    expect(await open({ current: "k2", keys })).toContain(
      'webhooks.encryption has another key in place of the key "k2"',
    )
  }
  // One that is damaged among others says nothing of the key.
  await addWebhook(tenure)
  await update(`secret = overlay(secret placing 'AAAA' from 20) WHERE id = '${ids.webhookId}'`)
  expect(await open(rotated)).toBe("started")
  await Effect.runPromise(execute(`DELETE FROM ${schema}.webhooks`))
  expect(await open()).toBe("started")
})

it("a server tells the keys that it has not, or that are others", async () => {
  const tenure = await start(rotated)
  await addWebhook(tenure)
  const missing = async (encryption?: KeyringInput) => {
    const server = await start(encryption)
    const { token } = await server.apiKeys.issue({ projects: "all", role: "admin" })
    const response = await server.handle({
      method: "GET",
      path: "/v2/status",
      headers: { authorization: `Bearer ${token}` },
      body: { _tag: "Bytes", bytes: new Uint8Array() },
      remoteAddress: "127.0.0.1",
    })
    const ids = JSON.parse(String(response.body)).data.missing_encryption_keys
    const shown = (await server.metrics()).matchAll(/^tenure_encryption_key_missing.* 1$/gm)
    expect([...shown].map(([line]) => line)).toEqual(
      ids.map((id: string) => `tenure_encryption_key_missing{tenure_encryption_key_id="${id}"} 1`),
    )
    return ids
  }
  expect(await missing(rotated)).toEqual([])
  expect(await missing()).toEqual(["k2"])
  expect(await missing({ current: "k2", keys: { k2: k1 } })).toEqual(["k2"])
})

describe("encrypted secrets", () => {
  it("are nowhere in the tables, but in the responses, and sign", async () => {
    const tenure = await start(first)
    const { token } = await tenure.apiKeys.issue({ projects: [projectId] })
    const call = caller(tenure, token)
    const created = await call("POST", { url: "https://receiver.example/a" })
    const { id, secret } = created.data
    expect(secret).toMatch(/^whsec_/)
    expect((await call("GET")).data).toEqual([{ id, secret, url: "https://receiver.example/a" }])
    await tenure.webhooks.addSigningKey({ projectId, webhookId: id })
    expect(await dump()).not.toMatch(/whsec_|whsk_/)
    expect((await dump()).match(/enc_k1_/g)).toHaveLength(2)
    expect(await send(tenure, [id])).toEqual(["delivered"])
    expect(isSigned(sent[0], secret)).toBe(true)
  })

  it("that cannot be read end as failed, and no others do", async () => {
    const tenure = await start(first)
    const ids = []
    for (const name of ["unknown", "tampered", "swapped", "empty", "intact"]) {
      ids.push((await addWebhook(tenure, `https://receiver.example/${name}`)).webhookId)
    }
    const [unknown, tampered, swapped, empty, intact] = ids
    await update(`secret = replace(secret, 'enc_k1_', 'enc_k9_') WHERE id = '${unknown}'`)
    await update(`secret = overlay(secret placing 'AAAA' from 20) WHERE id = '${tampered}'`)
    await update(
      `secret = (SELECT secret FROM ${schema}.webhooks WHERE id = '${intact}') WHERE id = '${swapped}'`,
    )
    await update(`secret = '' WHERE id = '${empty}'`)
    // Without what this process has decrypted before.
    const other = await start(first)
    await tenure.close()
    expect(await send(other, ids)).toEqual(["failed", "failed", "failed", "failed", "delivered"])
    expect(sent.map(({ url }) => url)).toEqual(["https://receiver.example/intact"])
    const [delivery] = await other.webhooks.deliveries({ projectId, webhookId: String(unknown) })
    expect(delivery?.attempts[0]?.result).toEqual({ _tag: "Failed", reason: "SecretUnreadable" })
  })

  it("are not sent by a server without the key", async () => {
    const { webhookId } = await addWebhook(await start(first))
    await started[0]?.close()
    for (const encryption of [undefined, onlySecond]) {
      const tenure = await start(encryption)
      expect(await send(tenure, [webhookId])).toEqual(["failed"])
      const listed = await tenure.webhooks.list({ projectId })
      expect(listed).toMatchObject([{ id: webhookId, secret: undefined }])
      await tenure.close()
    }
    expect(sent).toEqual([])
  })

  it("that cannot be read hide no other webhook, and are told from it", async () => {
    const tenure = await start(first)
    const ids = []
    const secrets = []
    for (const name of ["a", "b", "c"]) {
      const { id, secret } = await tenure.webhooks.create({
        projectId,
        url: `https://receiver.example/${name}`,
      })
      ids.push(id)
      secrets.push(secret)
    }
    const broken = String(ids[1])
    await update(`secret = replace(secret, 'enc_k1_', 'enc_k9_') WHERE id = '${broken}'`)
    const other = await start(first)
    const { token } = await other.apiKeys.issue({ projects: [projectId] })
    const call = caller(other, token)
    const listed = await call("GET")
    expect(listed).toMatchObject({ code: 200, total: 3 })
    expect(listed.message).toContain(broken)
    expect(listed.data.map(({ id }: { id: string }) => id)).toEqual(ids)
    const [a, b, c] = listed.data
    expect([a.secret, c.secret]).toEqual([secrets[0], secrets[2]])
    expect(b.secret).toMatch(/^unreadable_[0-9a-f-]{36}$/)
    // Nobody can sign with it.
    expect((await call("GET")).data[1].secret).not.toBe(b.secret)
    const one = await call("GET", undefined, `webhooks/${broken}`)
    expect(one.data.secret).toMatch(/^unreadable_/)
    expect(one.message).toContain('no valid encryption key "k9"')
    const trail = await other.memberships.history({ projectId })
    expect(trail.map(({ action }) => action)).not.toContain("secret_shown")
    // Without any key, too.
    const keyless = await start()
    const health = await caller(keyless, token)("GET", undefined, "health")
    expect(health).toMatchObject({ code: 200, data: ids.map((id) => ({ id })) })
    const unreadable = await caller(keyless, token)("GET")
    expect(unreadable).toMatchObject({ code: 200, total: 3 })
    expect(unreadable.message).toContain("it is encrypted, but there is no encryption key")
    for (const { secret } of unreadable.data) expect(secret).toMatch(/^unreadable_/)
  })

  it("that cannot be read are replaced by a rotation, after which the webhook is sent to", async () => {
    const tenure = await start(first)
    const { id: webhookId } = await tenure.webhooks.create({
      projectId,
      url: "https://receiver.example/a",
    })
    const ids = { projectId, webhookId }
    await tenure.close()
    for (const encryption of [onlySecond, undefined]) {
      const other = await start(encryption)
      expect(await send(other, [webhookId])).toEqual(["failed"])
      expect(sent.splice(0)).toEqual([])
      const { previousUntil, secret } = await other.webhooks.rotateSecret(ids)
      expect(previousUntil).toBeLessThanOrEqual(Date.now())
      expect(await send(other, [webhookId])).toEqual(["delivered"])
      expect(isSigned(sent[0], secret)).toBe(true)
      sent.length = 0
      await other.close()
      const again = await start(encryption)
      expect((await again.webhooks.list({ projectId }))[0]?.secret).toBe(secret)
      await again.close()
    }
  })

  it("are answered 503 while a key cannot be loaded, and the error says which", async () => {
    const { webhookId } = await addWebhook(await start(first))
    const failing = async () => {
      throw new Error("the service is down")
    }
    const other = await start({ current: "k1", keys: failing })
    const listed = await Promise.allSettled([other.webhooks.list({ projectId })])
    const reason = {
      _tag: "StoreUnavailable",
      message: expect.stringContaining('the encryption key "k1" cannot be loaded'),
    }
    expect(listed).toMatchObject([{ reason }])
    expect(await other.webhooks.health({ projectId })).toMatchObject([{ id: webhookId }])
  })
})

describe("rewriteSecrets", () => {
  it("encrypts what is there, once, while servers with the keys run", async () => {
    const plain = await start()
    await addWebhook(plain)
    await addWebhook(plain)
    const secrets = await secretsOf(plain)
    expect((await dump()).match(/whsec_|whsk_/g)).toHaveLength(8)
    await plain.close()

    const server = await start(first)
    expect(await secretsOf(server)).toEqual(secrets)
    expect(await rewrite(first)).toEqual({ changed: 2, problems: [] })
    const encrypted = await dump()
    expect(encrypted).not.toMatch(/whsec_|whsk_/)
    expect(await secretsOf(server)).toEqual(secrets)
    expect(await rewrite(first)).toEqual({ changed: 0, problems: [] })
    expect(await dump()).toBe(encrypted)
  })

  it("encrypts again with the next key, after which the first is not needed", async () => {
    const server = await start(first)
    await addWebhook(server)
    const secrets = await secretsOf(server)
    expect(await rewrite(rotated)).toEqual({ changed: 1, problems: [] })
    expect((await dump()).match(/enc_k2_/g)).toHaveLength(4)
    expect(await dump()).not.toContain("enc_k1_")
    expect(await secretsOf(await start(onlySecond))).toEqual(secrets)
  })

  it("lets servers start and stop encrypting one after the other", async () => {
    const one = await start()
    const before = await addWebhook(one)
    const other = await start(reading)
    await addWebhook(other)
    expect(await dump()).not.toContain("enc_")
    await one.close()
    // Every server can read what the first one with a current key writes.
    const encrypting = await start(first)
    await addWebhook(encrypting)
    const secrets = await secretsOf(encrypting)
    expect((await dump()).match(/enc_k1_/g)).toHaveLength(4)
    expect(await secretsOf(other)).toEqual(secrets)
    expect(await send(other, [before.webhookId])).toEqual(["delivered"])
    expect(await rewrite(first)).toEqual({ changed: 2, problems: [] })
    expect(await dump()).not.toMatch(/whsec_|whsk_/)
    expect(await secretsOf(other)).toEqual(secrets)
    // And back.
    expect(await rewrite(reading)).toEqual({ changed: 3, problems: [] })
    expect(await dump()).not.toContain("enc_")
    expect(await secretsOf(await start())).toEqual(secrets)
  })

  it("loses no secret that is rotated at the same time", async () => {
    const server = await start(rotated)
    const ids = await addWebhook(server)
    const [[, , signingKey] = []] = await secretsOf(server)
    for (const current of ["k1", "k2", "k1"]) {
      const fresh: Array<string> = []
      // A key is loaded between reading what is there and writing it encrypted with another key.
      const keys = async (id: string) => {
        fresh.unshift((await server.webhooks.rotateSecret(ids)).secret)
        return id === "k1" ? k1 : k2
      }
      expect((await rewrite({ current, keys })).problems).toEqual([])
      expect(await secretsOf(await start(rotated))).toEqual([[...fresh.slice(0, 2), signingKey]])
    }
  })

  it("leaves what it cannot read as it is, and says so without showing it", async () => {
    const server = await start(first)
    const { webhookId } = await addWebhook(server)
    await addWebhook(server)
    await update(`secret = 'whsec_broken' WHERE id = '${webhookId}'`)
    const { changed, problems } = await rewrite(rotated)
    expect(changed).toBe(1)
    expect(problems).toEqual([expect.stringContaining(webhookId)])
    expect(problems.join()).not.toContain("broken")
    expect(await dump()).toContain("whsec_broken")
  })
})
