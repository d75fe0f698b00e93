/** The MCP server, by the SDK's client, against the bundled server. */

import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js"
import { createClient } from "@tenure/client"
import { openApi } from "@tenure/core/openapi"
import { describe, expect, it, onTestFinished } from "vitest"
import { type McpSettings, makeMcpServer } from "../src/commands/mcp-server.ts"
import { credentialFields } from "../src/commands/mcp-tools.ts"
import { callFailure } from "../src/support/failure.ts"
import { token, useServer } from "./server.ts"

const server = useServer()

const api = () => createClient({ baseUrl: server.url(), token, maxRetries: 0 })

const connect = async (settings: Partial<McpSettings> = {}) => {
  const [near, far] = InMemoryTransport.createLinkedPair()
  const made = makeMcpServer({
    client: api(),
    failureOf: callFailure,
    write: true,
    project: undefined,
    version: "0",
    ...settings,
  })
  const agent = new Client({ name: "test", version: "0" })
  await Promise.all([made.connect(far), agent.connect(near)])
  onTestFinished(() => agent.close())
  return agent
}

/** Calls a tool, and returns whether it failed, its texts, and the first one's JSON. */
const callerOf =
  (agent: Client) =>
  async (name: string, input: Readonly<Record<string, unknown>> = {}) => {
    const { content, isError = false } = await agent.callTool({ name, arguments: { ...input } })
    const texts = Array.isArray(content) ? content.map(({ text }) => String(text)) : []
    return { isError, texts, json: () => JSON.parse(texts[0] ?? "") }
  }

const newProject = async (): Promise<string> => {
  const project_id = `p-${crypto.randomUUID()}`
  await api().projects.create({ project_id })
  return project_id
}

describe("the tools", () => {
  it("read only, unless changes are asked for", async () => {
    const agent = await connect({ write: false })
    const { tools } = await agent.listTools()
    expect(tools.map(({ name }) => name)).toMatchInlineSnapshot(`
      [
        "memberships_bulk_extensions",
        "memberships_ends",
        "memberships_list",
        "memberships_get",
        "memberships_history",
        "projects_list",
        "projects_get",
        "projects_audit",
        "projects_activity",
        "webhooks_health",
        "webhooks_deliveries",
        "webhooks_activity",
        "webhooks_delivery",
        "events_list",
        "events_get",
        "api_keys_list",
        "audit_list",
        "identity_get",
        "status_get",
        "status_activity",
      ]
    `)
    expect(tools.every(({ annotations }) => annotations?.readOnlyHint)).toBe(true)
    expect(agent.getInstructions()).toContain("This server only reads.")
    const { isError, texts } = await callerOf(agent)("memberships_grant")
    expect(isError).toBe(true)
    expect(texts[0]).toContain("tenure mcp --write")
  })

  it("make changes, each with a dry run or a confirmation", async () => {
    const { tools } = await (await connect()).listTools()
    const changes = tools.filter(({ annotations }) => annotations?.readOnlyHint === false)
    const guardOf = (fields: object) => ["dry_run", "confirm"].filter((field) => field in fields)
    expect(
      changes.map(
        ({ inputSchema: { properties = {} }, name }) => `${name}: ${guardOf(properties).join()}`,
      ),
    ).toMatchInlineSnapshot(`
      [
        "memberships_extend: dry_run",
        "memberships_extend_all: dry_run",
        "memberships_undo_bulk_extension: dry_run",
        "memberships_import: dry_run",
        "memberships_grant: confirm",
        "memberships_update: confirm",
        "memberships_end: confirm",
        "projects_create: confirm",
        "webhooks_create: confirm",
        "webhooks_update: confirm",
        "webhooks_delete: confirm",
        "webhooks_ping: confirm",
        "webhooks_enable: confirm",
        "webhooks_replay: dry_run",
        "events_publish: confirm",
      ]
    `)
  })

  it("have schemas without references, small enough for an agent", async () => {
    const { tools } = await (await connect()).listTools()
    const text = JSON.stringify(tools)
    expect(text).not.toContain("$ref")
    expect(text.length).toBeLessThan(60_000)
    const extend = tools.find(({ name }) => name === "memberships_extend")
    expect(extend?.inputSchema.required).toEqual(["project_id", "user_id"])
    expect(Object.keys(extend?.inputSchema.properties ?? {})).toContain("idempotency_key")
  })
})

it("finds members, page after page", async () => {
  const project = await newProject()
  const call = callerOf(await connect({ write: false, project }))
  for (const user_id of ["1001", "1002", "2001"])
    await api().memberships.grant({
      project_id: project,
      user_id,
      end_date: "2099-01-01T00:00:00.000Z",
    })
  const first = (await call("memberships_list", { prefix: "10", limit: 1 })).json()
  expect(first).toMatchObject({ data: [{ user_id: "1001" }] })
  const second = (await call("memberships_list", { prefix: "10", after: first.next })).json()
  expect(second).toMatchObject({ data: [{ user_id: "1002" }], next: null })
  expect((await call("projects_get")).json()).toMatchObject({ data: { memberships: 3 } })
  expect((await call("memberships_history", { user_id: "1001" })).json()).toMatchObject({
    data: [{ action: "granted" }],
  })
})

it.each([
  "api_keys_list",
  "audit_list",
  "events_list",
  "identity_get",
  "memberships_bulk_extensions",
  "memberships_ends",
  "projects_activity",
  "projects_audit",
  "projects_list",
  "status_activity",
  "status_get",
  "webhooks_health",
])("%s answers", async (name) => {
  const agent = await connect({ project: await newProject() })
  const { tools } = await agent.listTools()
  expect(tools.map((tool) => tool.name)).toContain(name)
  const { isError, json } = await callerOf(agent)(name)
  expect(isError).toBe(false)
  expect(json()).toHaveProperty("data")
})

describe("a change with a dry run", () => {
  it("is made only by dry_run: false, also with the same key", async () => {
    const project = await newProject()
    const call = callerOf(await connect({ project }))
    await call("memberships_grant", {
      user_id: "1",
      end_date: "2098-01-01T00:00:00.000Z",
      confirm: true,
    })
    const input = { user_id: "1", extend_by: "P1Y", reason: "a gift", idempotency_key: "gift-1" }
    const dry = await call("memberships_extend", input)
    expect(dry.json()).toMatchObject({ data: { new_end_date: "2099-01-01T00:00:00.000Z" } })
    expect(dry.texts[1]).toContain("call again with dry_run: false")
    expect((await call("memberships_get", { user_id: "1" })).json()).toMatchObject({
      data: { end_date: "2098-01-01T00:00:00.000Z" },
    })
    for (const _ of ["first", "again"]) {
      const made = await call("memberships_extend", { ...input, dry_run: false })
      expect(made.texts).toHaveLength(1)
      expect(made.json()).toMatchObject({ data: { new_end_date: "2099-01-01T00:00:00.000Z" } })
    }
  })

  it("imports, extends all, and undoes that", async () => {
    const project = await newProject()
    const call = callerOf(await connect({ project }))
    const lines = ["1", "2"].map((user_id) => ({ user_id, end_date: "2098-01-01T00:00:00.000Z" }))
    await call("memberships_import", { lines })
    expect((await call("memberships_list")).json()).toMatchObject({ data: [] })
    expect((await call("memberships_import", { lines, dry_run: false })).isError).toBe(false)
    const goal = { extend: "2099-01-01T00:00:00.000Z", reason: "an outage" }
    expect((await call("memberships_extend_all", goal)).json()).toMatchObject({
      data: { total: 2 },
    })
    expect((await call("memberships_bulk_extensions")).json()).toMatchObject({ data: [] })
    await call("memberships_extend_all", { ...goal, dry_run: false })
    const { data } = (await call("memberships_bulk_extensions")).json()
    const undo = { bulk_extension_id: data[0].id }
    await call("memberships_undo_bulk_extension", undo)
    expect((await call("memberships_get", { user_id: "2" })).json()).toMatchObject({
      data: { end_date: "2099-01-01T00:00:00.000Z" },
    })
    await call("memberships_undo_bulk_extension", { ...undo, dry_run: false })
    expect((await call("memberships_get", { user_id: "2" })).json()).toMatchObject({
      data: { end_date: "2098-01-01T00:00:00.000Z" },
    })
  })
})

it("makes a change without a dry run only if it is confirmed", async () => {
  const project = await newProject()
  const call = callerOf(await connect({ project }))
  const input = { type: "payment.completed", data: { amount: 1 } }
  const asked = await call("events_publish", input)
  expect(asked).toMatchObject({ isError: true })
  expect(asked.texts[0]).toContain("call it again with confirm: true")
  expect((await call("events_list", { after: "start" })).json()).toMatchObject({ data: [] })
  expect((await call("events_publish", { ...input, confirm: true })).isError).toBe(false)
  expect((await call("events_list", { after: "start" })).json()).toMatchObject({ data: [input] })
})

it("manages webhooks without showing secrets", async () => {
  const project = await newProject()
  const call = callerOf(await connect({ project }))
  const url = "http://127.0.0.1:9/hook"
  const created = await call("webhooks_create", { url, confirm: true })
  expect(created.json()).toMatchObject({ data: { url } })
  const [hook] = (await api().webhooks.list({ project_id: project })).data
  const webhook_id = hook?.id
  await call("webhooks_update", { webhook_id, description: "mails", confirm: true })
  const health = await call("webhooks_health")
  expect(health.json()).toMatchObject({ data: [{ id: webhook_id, description: "mails" }] })
  const replayed = await call("webhooks_replay", { webhook_id, since: "2020-01-01T00:00:00.000Z" })
  expect(replayed.json()).toMatchObject({ data: { replayed: 0 } })
  const one = await call("webhooks_replay", { webhook_id, event_id: crypto.randomUUID() })
  expect(one.isError).toBe(true)
  expect(one.texts[0]).toContain("With event_id, webhooks_replay has no dry run.")
  const deliveries = await call("webhooks_deliveries", { webhook_id })
  const audit = await call("projects_audit")
  await call("webhooks_delete", { webhook_id, confirm: true })
  const all = [created, health, replayed, deliveries, audit].flatMap(({ texts }) => texts)
  expect(all.join("\n")).not.toContain(hook?.secret ?? "whsec_")
  expect(audit.texts.join()).not.toContain("secret_shown")
  expect((await call("webhooks_health")).json()).toMatchObject({ data: [] })
})

type Json = Readonly<Record<string, unknown>>

const isJson = (value: unknown): value is Json => typeof value === "object" && value !== null

const { components, paths } = openApi()

/** The paths of credentials in a schema of the document. */
const credentialsIn = (schema: unknown, path = ""): ReadonlyArray<string> => {
  if (!isJson(schema)) return []
  const { $ref, properties, ...rest } = schema
  const target =
    typeof $ref === "string" ? components.schemas[$ref.replace(/^.*\//, "")] : undefined
  const own = isJson(properties) ? Object.entries(properties) : []
  return [
    ...credentialsIn(target, path),
    ...own.flatMap(([name, one]) => [
      ...(credentialFields.has(name) ? [`${path}.${name}`] : []),
      ...credentialsIn(one, `${path}.${name}`),
    ]),
    ...Object.values(rest).flatMap((one) => credentialsIn(one, path)),
  ]
}

it("knows every place of a credential in answers", async () => {
  const names = (await (await connect()).listTools()).tools.map(({ name }) => name)
  const found = Object.values(paths).flatMap((methods) =>
    Object.values(methods).flatMap(({ operationId, responses }) =>
      credentialsIn(responses["200"]).map((path) => `${operationId} ${path}`),
    ),
  )
  expect([...new Set(found)].toSorted()).toMatchInlineSnapshot(`
    [
      "apiKeys.issue .data.token",
      "realtime.issueTicket .data.ticket",
      "webhooks.create .data.secret",
      "webhooks.get .data.secret",
      "webhooks.list .data.secret",
      "webhooks.rotate .data.secret",
    ]
  `)
  expect(names).not.toContain("webhooks_get")
})

describe("an error of a tool", () => {
  it("has the API's message, its code and the request's id", async () => {
    const call = callerOf(await connect({ project: await newProject() }))
    const { isError, texts } = await call("memberships_get", { user_id: "404" })
    expect(isError).toBe(true)
    expect(texts[0]).toMatch(/not found.*MEMBERSHIP_NOT_FOUND, request [\w-]+\)$/i)
    const wrong = await call("memberships_extend", { user_id: "1", extend: "soon" })
    expect(wrong).toMatchObject({ isError: true })
  })

  it.each([
    ["a field that does not exist", { user_id: "1", dryRun: false }, "does not take dryRun"],
    ["a text for dry_run", { user_id: "1", dry_run: "false" }, "dry_run must be true or false"],
    ["a number as key", { user_id: "1", idempotency_key: 1 }, "must be a text"],
    ["no user", {}, "user_id must be a text"],
    ["a dot segment as user", { user_id: ".." }, "user_id must be a text"],
    ["a number as user", { user_id: 2 ** 53 }, "user_id must be a text"],
  ])("explains %s", async (_, input, message) => {
    const call = callerOf(await connect({ project: "none" }))
    const { isError, texts } = await call("memberships_extend", input)
    expect(isError).toBe(true)
    expect(texts[0]).toContain(message)
  })

  it("asks for a shorter import", async () => {
    const call = callerOf(await connect({ project: "none" }))
    for (const lines of [undefined, "1", Array.from({ length: 101 }, () => ({}))]) {
      const { isError, texts } = await call("memberships_import", { lines, dry_run: false })
      expect(isError).toBe(true)
      expect(texts[0]).toContain("at most 100 memberships")
    }
  })

  it("asks for less than an endless answer", async () => {
    const project = await newProject()
    const data = { text: "x".repeat(60_000) }
    for (const _ of ["a", "b", "c", "d"])
      await api().events.publish({ project_id: project, type: "long.text", data })
    const call = callerOf(await connect({ project }))
    const { isError, texts } = await call("events_list", { after: "start" })
    expect(isError).toBe(true)
    expect(texts[0]).toContain("Ask for less")
    expect((await call("events_list", { after: "start", limit: 1 })).isError).toBe(false)
  })
})
