/** The MCP server, by the SDK's client. */

import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js"
import { createClient } from "@tenure/client"
import { openApi } from "@tenure/core/openapi"
import { describe, expect, it, onTestFinished } from "vitest"
import { type McpSettings, makeMcpServer } from "../src/commands/mcp-server.ts"
import { credentialFields } from "../src/commands/mcp-tools.ts"
import { callFailure } from "../src/support/failure.ts"
import { wordsOf } from "./in-process.ts"
import { token, useServer } from "./server.ts"

const server = useServer()

const date = (year: number) => `${year}-01-01T00:00:00.000Z`

const api = () => createClient({ baseUrl: server.url(), token, maxRetries: 0 })

/** Connects an agent, and returns what calls a tool: whether it failed, its texts, and the first one's JSON. */
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
  const call = async (name: string, input: Readonly<Record<string, unknown>> = {}) => {
    const { content, isError = false } = await agent.callTool({ name, arguments: { ...input } })
    const texts = Array.isArray(content) ? content.map(({ text }) => String(text)) : []
    return { isError, texts, text: texts.join("\n") }
  }
  /** Calls a tool with success, and returns its JSON. */
  const json = async (...args: Parameters<typeof call>) => {
    const { isError, texts } = await call(...args)
    expect(isError, texts.join()).toBe(false)
    return JSON.parse(texts[0] ?? "")
  }
  return { agent, call, json }
}

/** Connects an agent to a new project. */
const connectToProject = async (settings: Partial<McpSettings> = {}) => {
  const project_id = `p-${crypto.randomUUID()}`
  await api().projects.create({ project_id })
  return { project_id, ...(await connect({ project: project_id, ...settings })) }
}

const reading = `
  memberships_bulk_extensions memberships_ends memberships_list memberships_get memberships_history
  projects_list projects_get projects_audit projects_activity
  webhooks_health webhooks_deliveries webhooks_activity webhooks_delivery
  events_list events_get api_keys_list audit_list identity_get status_get status_activity`

const dryRunning = `
  memberships_extend memberships_extend_all memberships_extend_some memberships_undo_bulk_extension memberships_import
  projects_update webhooks_replay webhooks_cancel`

const confirmed = `
  memberships_grant memberships_update memberships_end memberships_move
  memberships_pause memberships_resume projects_create
  webhooks_create webhooks_update webhooks_delete webhooks_ping webhooks_enable events_publish`

describe("the tools", () => {
  it("read only, unless changes are asked for", async () => {
    const { agent, call } = await connect({ write: false })
    const { tools } = await agent.listTools()
    expect(tools.map(({ name }) => name)).toEqual(wordsOf(reading))
    expect(tools.every(({ annotations }) => annotations?.readOnlyHint)).toBe(true)
    expect(agent.getInstructions()).toContain("This server only reads.")
    const text = expect.stringContaining("tenure mcp --write")
    expect(await call("memberships_grant")).toMatchObject({ isError: true, text })
  })

  it("make changes, each with a dry run or a confirmation", async () => {
    const { tools } = await (await connect()).agent.listTools()
    const changes = tools.filter(({ annotations }) => annotations?.readOnlyHint === false)
    const guardedBy = (field: string) =>
      changes.flatMap(({ inputSchema: { properties = {} }, name }) =>
        field in properties ? [name] : [],
      )
    expect(guardedBy("dry_run")).toEqual(wordsOf(dryRunning))
    expect(guardedBy("confirm")).toEqual(wordsOf(confirmed))
    expect(changes).toHaveLength(wordsOf(dryRunning + confirmed).length)
    expect(tools).toHaveLength(wordsOf(reading + dryRunning + confirmed).length)
  })

  it("have schemas without references, small enough for an agent", async () => {
    const { tools } = await (await connect()).agent.listTools()
    const text = JSON.stringify(tools)
    expect(text).not.toContain("$ref")
    expect(text.length).toBeLessThan(60_000)
    const extend = tools.find(({ name }) => name === "memberships_extend")
    expect(extend?.inputSchema.required).toEqual(["project_id", "user_id"])
    expect(Object.keys(extend?.inputSchema.properties ?? {})).toContain("idempotency_key")
  })

  it("answer, those that read and need no more than a project", async () => {
    const { agent, json } = await connectToProject({ write: false })
    const { tools } = await agent.listTools()
    const simple = tools.filter(({ inputSchema: { required = [] } }) => required.length === 0)
    expect(simple.length).toBeGreaterThanOrEqual(12)
    for (const { name } of simple) expect(await json(name), name).toHaveProperty("data")
  })
})

it("finds members, page after page", async () => {
  const { json, project_id } = await connectToProject({ write: false })
  for (const user_id of ["1001", "1002", "2001"])
    await api().memberships.grant({ project_id, user_id, end_date: date(2099) })
  const first = await json("memberships_list", { prefix: "10", limit: 1 })
  expect(first).toMatchObject({ data: [{ user_id: "1001" }] })
  const second = await json("memberships_list", { prefix: "10", after: first.next })
  expect(second).toMatchObject({ data: [{ user_id: "1002" }], next: null })
  expect(await json("projects_get")).toMatchObject({ data: { memberships: 3 } })
  const history = await json("memberships_history", { user_id: "1001" })
  expect(history).toMatchObject({ data: [{ action: "granted" }] })
})

it("grants and imports memberships for life", async () => {
  const { agent, json } = await connectToProject()
  const { tools } = await agent.listTools()
  const schemas = JSON.stringify(tools.filter(({ name }) => /grant|import/.test(name)))
  expect(schemas.split('{"type":"null"}').length - 1).toBe(2)
  await json("memberships_grant", { user_id: "1", end_date: null, confirm: true })
  await json("memberships_import", { lines: [{ user_id: "2", end_date: null }], dry_run: false })
  const life = { end_date: null }
  expect(await json("memberships_list")).toMatchObject({ data: [life, life] })
})

it("grants and imports whole days", async () => {
  const { json } = await connectToProject()
  const through = "2098-02-28"
  await json("memberships_grant", { user_id: "1", through, time_zone: "UTC", confirm: true })
  const line = { user_id: "2", through, time_zone: "UTC", kept_day: 30 }
  await json("memberships_import", { lines: [line], dry_run: false })
  expect(await json("memberships_list")).toMatchObject({
    data: [
      { through, kept_day: null },
      { through, kept_day: 30 },
    ],
  })
})

it("pauses, resumes and moves memberships, and imports a pause", async () => {
  const { call, json } = await connectToProject()
  const [paused_at, resumes_at] = ["2026-01-01T00:00:00.000Z", "2097-01-01T00:00:00.000Z"]
  const end_date = "2098-01-01T00:00:00.000Z"
  const line = { user_id: "1", end_date, paused_at, resumes_at }
  await json("memberships_import", { lines: [line], dry_run: false })
  const user = { user_id: "1", confirm: true }
  expect(await json("memberships_get", { user_id: "1" })).toMatchObject({
    data: { state: "paused", paused_at, resumes_at },
  })
  expect(await json("memberships_resume", user)).toMatchObject({ data: { state: "active" } })
  const asked = await call("memberships_pause", { user_id: "1", through: "2097-01-31" })
  expect(JSON.stringify(asked)).toContain("has no dry run")
  const through = { ...user, through: "2027-01-31", reason: "summer" }
  expect(await json("memberships_pause", through)).toMatchObject({ data: { state: "paused" } })
  await json("memberships_resume", user)
  expect(await json("memberships_move", { ...user, to: "2" })).toMatchObject({
    data: { user_id: "2" },
  })
})

describe("a change with a dry run", () => {
  it("is made only by dry_run: false, also with the same key", async () => {
    const { call, json } = await connectToProject()
    await json("memberships_grant", { user_id: "1", end_date: date(2098), confirm: true })
    const input = { user_id: "1", extend_by: "P1Y", reason: "a gift", idempotency_key: "gift-1" }
    const later = { data: { new_end_date: date(2099) } }
    const dry = await call("memberships_extend", input)
    expect(JSON.parse(dry.texts[0] ?? "")).toMatchObject(later)
    expect(dry.texts[1]).toContain("call again with dry_run: false")
    const found = await json("memberships_get", { user_id: "1" })
    expect(found).toMatchObject({ data: { end_date: date(2098) } })
    for (const _ of ["first", "again"]) {
      const { texts } = await call("memberships_extend", { ...input, dry_run: false })
      expect(texts.map((text) => JSON.parse(text))).toMatchObject([later])
    }
  })

  it("imports, extends all, and undoes that", async () => {
    const { json } = await connectToProject()
    const lines = ["1", "2"].map((user_id) => ({ user_id, end_date: date(2098) }))
    await json("memberships_import", { lines })
    expect(await json("memberships_list")).toMatchObject({ data: [] })
    await json("memberships_import", { lines, dry_run: false })
    const goal = { extend: date(2099), reason: "an outage" }
    expect(await json("memberships_extend_all", goal)).toMatchObject({ data: { total: 2 } })
    expect(await json("memberships_bulk_extensions")).toMatchObject({ data: [] })
    await json("memberships_extend_all", { ...goal, dry_run: false })
    const { data } = await json("memberships_bulk_extensions")
    for (const [given, year] of [
      [{}, 2099],
      [{ dry_run: false }, 2098],
    ] as const) {
      const undo = { bulk_extension_id: data[0].id, ...given }
      await json("memberships_undo_bulk_extension", undo)
      const found = await json("memberships_get", { user_id: "2" })
      expect(found).toMatchObject({ data: { end_date: date(year) } })
    }
  })
})

it("makes a change without a dry run only if it is confirmed", async () => {
  const { call, json } = await connectToProject()
  const input = { type: "payment.completed", data: { amount: 1 } }
  const told = expect.stringContaining("call it again with confirm: true")
  expect(await call("events_publish", input)).toMatchObject({ isError: true, text: told })
  expect(await json("events_list", { after: "start" })).toMatchObject({ data: [] })
  await json("events_publish", { ...input, confirm: true })
  expect(await json("events_list", { after: "start" })).toMatchObject({ data: [input] })
})

it("manages webhooks without showing secrets", async () => {
  const { call, json, project_id } = await connectToProject()
  const url = "http://127.0.0.1:9/hook"
  const seen: Array<string> = []
  const see = async (...args: Parameters<typeof call>) => {
    const { text, texts } = await call(...args)
    seen.push(text)
    return JSON.parse(texts[0] ?? "")
  }
  expect(await see("webhooks_create", { url, confirm: true })).toMatchObject({ data: { url } })
  const [hook] = (await api().webhooks.list({ project_id })).data
  const webhook_id = hook?.id
  await json("webhooks_update", { webhook_id, description: "mails", confirm: true })
  const described = { data: [{ id: webhook_id, description: "mails" }] }
  expect(await see("webhooks_health")).toMatchObject(described)
  const replayed = await see("webhooks_replay", { webhook_id, since: "2020-01-01T00:00:00.000Z" })
  expect(replayed).toMatchObject({ data: { replayed: 0 } })
  const one = await call("webhooks_replay", { webhook_id, event_id: crypto.randomUUID() })
  const told = expect.stringContaining("With event_id, webhooks_replay has no dry run.")
  expect(one).toMatchObject({ isError: true, text: told })
  await see("webhooks_deliveries", { webhook_id })
  await see("projects_audit")
  expect(seen.at(-1)).not.toContain("secret_shown")
  await json("webhooks_delete", { webhook_id, confirm: true })
  expect(seen.join("\n")).not.toContain(hook?.secret ?? "whsec_")
  expect(await json("webhooks_health")).toMatchObject({ data: [] })
})

type Json = Readonly<Record<string, unknown>>

const isJson = (value: unknown): value is Json => typeof value === "object" && value !== null

const { components, paths } = openApi()

/** The paths to credentials in a schema from the document. */
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
  const names = (await (await connect()).agent.listTools()).tools.map(({ name }) => name)
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
    const { call } = await connectToProject()
    expect(await call("memberships_get", { user_id: "404" })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/not found.*MEMBERSHIP_NOT_FOUND, request [\w-]+\)$/i),
    })
    const wrong = await call("memberships_extend", { user_id: "1", extend: "soon" })
    expect(wrong).toMatchObject({ isError: true })
  })

  const tooMany = Array.from({ length: 101 }, () => ({}))

  it.each([
    ["a field that does not exist", { user_id: "1", dryRun: false }, "does not take dryRun"],
    ["a text for dry_run", { user_id: "1", dry_run: "false" }, "dry_run must be true or false"],
    ["a number as key", { user_id: "1", idempotency_key: 1 }, "must be a text"],
    ["no user", {}, "user_id must be a text"],
    ["a dot segment as user", { user_id: ".." }, "user_id must be a text"],
    ["a number as user", { user_id: 2 ** 53 }, "user_id must be a text"],
    ["no lines", { lines: undefined, dry_run: false }, "at most 100 memberships"],
    ["a text for lines", { lines: "1", dry_run: false }, "at most 100 memberships"],
    ["too many lines", { lines: tooMany, dry_run: false }, "at most 100 memberships"],
  ])("explains %s", async (_, input, told) => {
    const { call } = await connect({ project: "none" })
    const name = "lines" in input ? "memberships_import" : "memberships_extend"
    const text = expect.stringContaining(told)
    expect(await call(name, input)).toMatchObject({ isError: true, text })
  })

  it("asks for less than an endless answer", async () => {
    const { call, json, project_id } = await connectToProject()
    const data = { text: "x".repeat(60_000) }
    for (const _ of ["a", "b", "c", "d"])
      await api().events.publish({ project_id, type: "long.text", data })
    const text = expect.stringContaining("Ask for less")
    expect(await call("events_list", { after: "start" })).toMatchObject({ isError: true, text })
    await json("events_list", { after: "start", limit: 1 })
  })
})
