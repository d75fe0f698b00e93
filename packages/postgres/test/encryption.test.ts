/** Webhook secrets that are stored encrypted, and rows that nobody can read. */

import { type KeyringInput, type Tenure, createTenure } from "@tenure/core"
import { Fixture } from "@tenure/testing/conformance"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { rewriteSecrets } from "../src/index.ts"
import { ownSchema, recordingTransport, sql } from "./harness.ts"

const schema = "encrypted"
const projectId = "p1"
const intactUrl = "https://receiver.example/intact"
const k1 = new Uint8Array(32).fill(1)
const k2 = new Uint8Array(32).fill(2)
const first: KeyringInput = { current: "k1", keys: { k1 } }
const rotated: KeyringInput = { current: "k2", keys: { k1, k2 } }
const onlySecond: KeyringInput = { current: "k2", keys: { k2 } }
const reading: KeyringInput = { keys: { k1 } }

const { empty, run, stores } = ownSchema(schema)
const execute = (statement: string) => run(sql(statement))

const { sent, transport } = recordingTransport()

const started: Array<Tenure> = []

const start = async (encryption?: KeyringInput): Promise<Tenure> => {
  const webhooks = { encryption, retrySchedule: [], missingKeys: "allow" } as const
  const tenure = await createTenure({ stores, transport, webhooks, metrics: true })
  started.push(tenure)
  await tenure.memberships.createProject(projectId)
  return tenure
}

beforeEach(async () => {
  sent.length = 0
  await run(empty)
})
afterEach(async () => {
  await Promise.all(started.splice(0).map((tenure) => tenure.close()))
})

/** The whole table, as a dump shows it. */
const dump = async () => JSON.stringify(await execute(`SELECT w::text FROM ${schema}.webhooks w`))

const rewrite = (encryption: KeyringInput) => run(rewriteSecrets({ schema, encryption }))

const update = (statement: string) => execute(`UPDATE ${schema}.webhooks SET ${statement}`)

const create = async ({ webhooks }: Tenure, url = "https://receiver.example/a") => {
  const { id, secret } = await webhooks.create({ projectId, url })
  return { projectId, webhookId: id, secret }
}

/** Adds a webhook with a previous secret, a signing key and its own header. */
const addWebhook = async ({ webhooks }: Tenure) => {
  const headers = { "X-Hidden": "whsec_hidden" }
  const { id } = await webhooks.create({ projectId, url: "https://receiver.example/a", headers })
  const ids = { projectId, webhookId: id }
  await webhooks.addSigningKey(ids)
  await webhooks.rotateSecret(ids)
  return ids
}

const secretsOf = async ({ webhooks }: Tenure) => {
  const all = await webhooks.list({ projectId })
  return all.map(({ previous, secret, signingKey }) => [secret, previous?.secret, signingKey])
}

/** Sends an event. Returns how its deliveries to webhooks have ended. */
const send = async ({ events, webhooks }: Tenure, ...webhookIds: ReadonlyArray<string>) => {
  const id = await events.publish({ projectId, type: "test.happened", data: {} })
  const states = () =>
    Promise.all(
      webhookIds.map(async (webhookId) => {
        const all = await webhooks.deliveries({ projectId, webhookId })
        return all.find(({ eventId }) => eventId === id)?.state
      }),
    )
  await expect.poll(states).not.toContain("waiting")
  return states()
}

/** Calls the API with a key. */
const get = async (tenure: Tenure, token: string, path: string) => {
  const response = await tenure.handle({
    method: "GET",
    path: `/v2/${path}`,
    headers: { authorization: `Bearer ${token}` },
    body: { _tag: "Bytes", bytes: new Uint8Array() },
    remoteAddress: "127.0.0.1",
  })
  return JSON.parse(String(response.body))
}

describe("a server with keys", () => {
  it("starts only with those that secrets are encrypted with, unless it is told to", async () => {
    const tenure = await start(rotated)
    const ids = await addWebhook(tenure)
    const open = (encryption?: KeyringInput): Promise<string> =>
      createTenure({ stores, transport, webhooks: { encryption } }).then(
        ({ close }) => close().then(() => "started"),
        (error) => error.message,
      )
    for (const encryption of [undefined, reading, { keys: async () => undefined }])
      expect(await open(encryption)).toContain(
        'webhooks.encryption must have the key "k2", which secrets',
      )
    const isDown = async () => {
      throw new Error("the service is down")
    }
    for (const encryption of [rotated, onlySecond, { keys: isDown }])
      expect(await open(encryption)).toBe("started")
    // Another key with the same id.
    for (const keys of [{ k1, k2: k1 }, async () => k1])
      expect(await open({ current: "k2", keys })).toContain(
        'webhooks.encryption has another key in place of the key "k2"',
      )
    // A damaged secret among others says nothing about the key.
    await addWebhook(tenure)
    await update(`secret = overlay(secret placing 'AAAA' from 20) WHERE id = '${ids.webhookId}'`)
    expect(await open(rotated)).toBe("started")
    await execute(`DELETE FROM ${schema}.webhooks`)
    expect(await open()).toBe("started")
  })

  it("tells those that it has not, or that are others", async () => {
    await addWebhook(await start(rotated))
    for (const [encryption, missing] of [
      [rotated, []],
      [undefined, ["k2"]],
      [{ current: "k2", keys: { k2: k1 } }, ["k2"]],
    ] as const) {
      const server = await start(encryption)
      const { token } = await server.apiKeys.issue({ projects: "all", role: "admin" })
      expect((await get(server, token, "status")).data.missing_encryption_keys).toEqual(missing)
      const shown = (await server.metrics()).matchAll(/^tenure_encryption_key_missing.* 1$/gm)
      expect([...shown].map(([line]) => line)).toEqual(
        missing.map((id) => `tenure_encryption_key_missing{tenure_encryption_key_id="${id}"} 1`),
      )
    }
  })
})

describe("encrypted secrets that cannot be read", () => {
  it("hide no other webhook, and are told from it", async () => {
    const tenure = await start(first)
    const added = [await create(tenure), await create(tenure), await create(tenure)]
    expect(await dump()).not.toMatch(/whsec_|whsk_/)
    const [one, broken, other] = added
    await update(`secret = replace(secret, 'enc_k1_', 'enc_k9_') WHERE id = '${broken?.webhookId}'`)
    // Without what the first one has decrypted before.
    const server = await start(first)
    const { token } = await server.apiKeys.issue({ projects: [projectId] })
    const ids = added.map(({ webhookId }) => webhookId)
    const path = `projects/${projectId}/integrations`
    const listed = await get(server, token, `${path}/webhooks`)
    const unreadable = expect.stringMatching(/^unreadable_[0-9a-f-]{36}$/)
    expect(listed).toMatchObject({
      code: 200,
      total: 3,
      message: expect.stringContaining(String(broken?.webhookId)),
      data: [one?.secret, unreadable, other?.secret].map((secret, n) => ({ id: ids[n], secret })),
    })
    // Nobody can sign with it.
    const again = await get(server, token, `${path}/webhooks/${broken?.webhookId}`)
    expect(again).toMatchObject({
      data: { secret: unreadable },
      message: expect.stringContaining('no valid encryption key "k9"'),
    })
    expect(again.data.secret).not.toBe(listed.data[1].secret)
    const trail = await server.memberships.history({ projectId })
    expect(trail.map(({ action }) => action)).not.toContain("secret_shown")
    // Without any key, too.
    const keyless = await start()
    expect(await get(keyless, token, `${path}/health`)).toMatchObject({
      code: 200,
      data: ids.map((id) => ({ id })),
    })
    expect(await get(keyless, token, `${path}/webhooks`)).toMatchObject({
      code: 200,
      message: expect.stringContaining("it is encrypted, but there is no encryption key"),
      data: ids.map((id) => ({ id, secret: unreadable })),
    })
  })

  it("are replaced by a rotation, after which the webhook is sent to", async () => {
    const { secret: _, ...ids } = await create(await start(first))
    for (const encryption of [onlySecond, undefined]) {
      await started.pop()?.close()
      const server = await start(encryption)
      expect(await send(server, ids.webhookId)).toEqual(["failed"])
      expect(sent).toEqual([])
      const { previousUntil, secret } = await server.webhooks.rotateSecret(ids)
      expect(previousUntil).toBeLessThanOrEqual(Date.now())
      expect(await send(server, ids.webhookId)).toEqual(["delivered"])
      const [request = expect.fail()] = sent.splice(0)
      expect(Fixture.isSignedWith({ ...request, at: Date.now() }, secret)).toBe(true)
      const again = await start(encryption)
      expect((await again.webhooks.list({ projectId }))[0]?.secret).toBe(secret)
      await server.close()
    }
  })
})

describe("rewriteSecrets", () => {
  it("lets servers start and stop encrypting one after the other, while they run", async () => {
    const one = await start()
    const before = await addWebhook(one)
    const other = await start(reading)
    await addWebhook(other)
    expect((await dump()).match(/whsec_|whsk_/g)).toHaveLength(8)
    expect(await dump()).not.toContain("enc_")
    await one.close()
    // Every server can read what the first one with a current key writes.
    const encrypting = await start(first)
    await addWebhook(encrypting)
    const secrets = await secretsOf(encrypting)
    expect((await dump()).match(/enc_k1_/g)).toHaveLength(4)
    expect(await secretsOf(other)).toEqual(secrets)
    expect(await send(other, before.webhookId)).toEqual(["delivered"])
    expect(await rewrite(first)).toEqual({ changed: 2, problems: [] })
    const encrypted = await dump()
    expect(encrypted).not.toMatch(/whsec_|whsk_/)
    expect(await secretsOf(other)).toEqual(secrets)
    expect(await rewrite(first)).toEqual({ changed: 0, problems: [] })
    expect(await dump()).toBe(encrypted)
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

  it("encrypts again with the next key, and leaves what it cannot read without showing it", async () => {
    const server = await start(first)
    await addWebhook(server)
    const secrets = await secretsOf(server)
    const { webhookId } = await addWebhook(server)
    await update(`secret = 'whsec_broken' WHERE id = '${webhookId}'`)
    const { changed, problems } = await rewrite(rotated)
    expect(changed).toBe(1)
    expect(problems).toEqual([expect.stringContaining(webhookId)])
    expect(problems.join()).not.toContain("broken")
    expect(await dump()).toContain("whsec_broken")
    expect((await dump()).match(/enc_k2_/g)).toHaveLength(4)
    // The first key is not needed any more.
    const [readable] = await secretsOf(await start(onlySecond))
    expect([readable]).toEqual(secrets)
  })
})

describe("rows that something else than Tenure has written", () => {
  const eventId = "00000000-0000-4000-8000-000000000001"

  /** Adds an event's deliveries to a project's webhooks. */
  const insertDeliveries = (project: string, id: string) =>
    execute(
      `INSERT INTO ${schema}.deliveries (event_id, webhook_id, next_attempt_at)
       SELECT '${id}', w.id, now() - interval '1 minute' FROM ${schema}.webhooks w
       JOIN ${schema}.projects p ON p.number = w.project_number WHERE p.id = '${project}'`,
    )

  /** Adds an event with its deliveries, as a large publication would. */
  const insertEvent = async (project: string, id: string, body: string) => {
    await execute(
      `INSERT INTO ${schema}.events (id, project_number, type, at, body)
       SELECT '${id}', number, 'test', now(), ${body} FROM ${schema}.projects WHERE id = '${project}'`,
    )
    await insertDeliveries(project, id)
  }

  it("an event that is too long, or gone, or of an invalid project stops no other delivery", async () => {
    const tenure = await start()
    await execute(`INSERT INTO ${schema}.projects (id) VALUES ('not an id')`)
    await execute(
      `INSERT INTO ${schema}.webhooks (id, project_number, url, secret, created_at)
       SELECT gen_random_uuid(), number, 'https://receiver.example/other', 'whsec_', now()
       FROM ${schema}.projects WHERE id = 'not an id'`,
    )
    await insertEvent("not an id", eventId.replace(/1$/, "2"), "'{}'")
    const { secret: _, ...webhook } = await create(tenure, intactUrl)
    await insertDeliveries(projectId, eventId.replace(/1$/, "3"))
    // Too long for a protocol message.
    await insertEvent(projectId, eventId, "repeat('x', 20 * 1024 * 1024)")
    expect(await send(tenure, webhook.webhookId)).toEqual(["delivered"])
    const failed = () => tenure.webhooks.deliveries({ ...webhook, state: "failed" })
    const reasons = async () =>
      (await failed()).flatMap(({ attempts }) => attempts.map(({ result }) => result))
    const unreadable = { _tag: "Failed", reason: "Unreadable" }
    await expect.poll(reasons).toEqual([unreadable])
    await tenure.webhooks.replay({ ...webhook, eventId })
    await expect.poll(reasons).toEqual([unreadable, unreadable])
    expect(await send(tenure, webhook.webhookId)).toEqual(["delivered"])
    expect(sent.map(({ url }) => url)).toEqual([intactUrl, intactUrl])
  })

  it("a secret or a key that is invalid sends nothing to its webhook, and stops no other", async () => {
    const tenure = await start()
    const broken = []
    for (const [column, value, reason] of [
      ["secret", "''", "SecretUnreadable"],
      ["secret", "'whsec_'", "SecretUnreadable"],
      ["secret", "'enc_k1_AAAA'", "SecretUnreadable"],
      ["secret", "repeat('x', 20 * 1024 * 1024)", "Unreadable"],
      ["signing_key", "''", "SecretUnreadable"],
      ["signing_key", "'whsk_short'", "SecretUnreadable"],
    ] as const) {
      const { webhookId } = await create(tenure)
      await update(`${column} = ${value} WHERE id = '${webhookId}'`)
      broken.push({ webhookId, reason })
    }
    const { webhookId } = await create(tenure, intactUrl)
    await send(tenure, webhookId, ...broken.map((one) => one.webhookId))
    expect(sent.map(({ url }) => url)).toEqual([intactUrl])
    for (const { reason, webhookId: id } of broken)
      expect(await tenure.webhooks.deliveries({ projectId, webhookId: id })).toMatchObject([
        { state: "failed", attempts: [{ result: { _tag: "Failed", reason } }] },
      ])
  })
})
