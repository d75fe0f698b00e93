/** The AsyncAPI document is valid and describes the messages from the feed and webhooks. */

import { once } from "node:events"
import specs from "@asyncapi/specs"
import { createConfig, lintFromString } from "@redocly/openapi-core"
import { createClient } from "@tenure/client"
import { type Tenure, createTenure } from "@tenure/core"
import { knownEventTypes } from "@tenure/core/store"
import { type TransportRequest, WebhookTransport } from "@tenure/core/transport"
import { memory } from "@tenure/memory"
import { serve } from "@tenure/node-http"
import { Ajv } from "ajv"
import formats from "ajv-formats"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"

const projectId = "demo"
const inProject = { projectId, reason: "prepaid for two years" }
const member = { ...inProject, userId: "1001" }
const endDate = "2099-01-01T00:00:00.000Z"

const [minute, hour] = [60_000, 3_600_000]
const realNow = Date.now

const own = "payment.completed"
const types: ReadonlyArray<string> = [...Object.values(knownEventTypes), own]

/** Returns the document's name for an event type. */
const nameOf = (type: string): string => (type === own ? "custom" : type)

interface Message {
  readonly payload: object
  readonly headers?: object
  readonly examples: ReadonlyArray<{ readonly payload: object; readonly headers?: object }>
}

interface Payload {
  readonly type: string
}

interface Received {
  readonly payload: Payload
  readonly headers?: object
}

let source: string
let messages: Readonly<Record<string, Message>>
let validate: (schema: object, value: unknown) => string
const notified: Array<Received> = []
const fed: Array<Received> = []
const frames: Array<Payload> = []

const transport = Layer.succeed(WebhookTransport, {
  sendsHttpToNames: true,
  send: ({ body, headers, url }: TransportRequest) =>
    Effect.sync(() => {
      const timestamp = Number(headers["webhook-timestamp"])
      notified.push({
        payload: JSON.parse(body),
        headers: { ...headers, "webhook-timestamp": timestamp },
      })
      const status = url.includes("gone") ? 410 : url.includes("failing") ? 500 : 204
      return { status, retryAfter: undefined, body: "" }
    }),
})

/** Causes one event for every type. */
const causeAll = async ({ events, memberships, webhooks }: Tenure): Promise<void> => {
  const { id } = await webhooks.create({ projectId, url: "https://receiver.example/" })
  await webhooks.create({ projectId, url: "https://gone.example/" })
  await webhooks.create({ projectId, url: "https://failing.example/" })
  await memberships.grant({
    ...member,
    endDate: "2098-01-01T00:00:00.000Z",
    metadata: { plan: "silver" },
  })
  await memberships.import({ ...inProject, memberships: [{ userId: "1002", endDate }] })
  await memberships.extend({ ...member, endDate })
  await memberships.update({ ...member, metadata: { plan: "gold" } })
  await memberships.move({ ...member, to: "1004" })
  await memberships.move({ ...member, userId: "1004", to: member.userId })
  await memberships.pause({
    ...member,
    until: endDate.replace("2099", String(new Date().getFullYear() + 1)),
  })
  await memberships.resume(member)
  await memberships.extendAll({ ...inProject, endDate, mode: "neverShorten" })
  const byDays = { ...inProject, by: "P3D", idempotencyKey: "days" }
  await memberships.extendAll(byDays)
  const [bulk] = await memberships.bulkExtensions({ projectId })
  if (bulk !== undefined) await memberships.undoBulkExtension({ ...inProject, id: bulk.id })
  await memberships.end(member)
  await memberships.updateProject({ projectId, grace: "PT3M" })
  // A minute before its reminder, and over at once.
  await memberships.grant({ ...member, endDate: Date.now() + hour + minute })
  await memberships.grant({ ...inProject, userId: "1003", endDate: Date.now() + 1 })
  await events.publish({ projectId, type: own, data: null })
  await webhooks.ping({ projectId, webhookId: id })
}

/** Reads a feed's stream from its start until events of these types have come. */
const follow = async (url: string, token: string, until: ReadonlyArray<string>): Promise<void> => {
  const headers = { accept: "text/event-stream", authorization: `Bearer ${token}` }
  const response = await fetch(`${url}/v2/projects/${projectId}/events?after=start`, { headers })
  const seen = new Set<string>()
  let rest = ""
  for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const blocks = (rest + text).split("\n\n")
    rest = blocks.pop() ?? ""
    for (const block of blocks) {
      const [, type, data] = /^event: (.*)\ndata: (.*)$/m.exec(block) ?? []
      if (type === undefined || data === undefined) continue
      fed.push({ payload: JSON.parse(data) })
      seen.add(type)
    }
    if (until.every((type) => seen.has(type))) return
  }
}

/** Sends frames by WebSocket, and records frames until one with a given type arrives. */
const talk = async (
  url: string,
  token: string,
  sent: ReadonlyArray<object>,
  until: ReadonlyArray<string>,
): Promise<void> => {
  const client = createClient({ baseUrl: url, token })
  const { data } = await client.realtime.issueTicket({ projects: "all" })
  const address = `${url.replace("http", "ws")}/v2/realtime?ticket=${data.ticket}`
  const socket = new WebSocket(address, "tenure.v1")
  await once(socket, "open")
  const received = new Promise<void>((resolve) => {
    socket.addEventListener("message", ({ data: text }) => {
      const frame: Payload = JSON.parse(text)
      frames.push(frame)
      if (until.includes(frame.type)) resolve()
    })
  })
  for (const frame of sent) socket.send(JSON.stringify(frame))
  await received
  socket.close()
}

beforeAll(async () => {
  const tenure = await createTenure({
    stores: memory(),
    transport,
    expiry: { reminders: ["1 hour"], holdAfterBulk: 0 },
    webhooks: { retrySchedule: [2, 2, 2], disableAfter: 1 },
  })
  const server = await serve(tenure)
  await tenure.memberships.createProject(projectId)
  const { token } = await tenure.apiKeys.issue({ projects: [projectId] })
  await causeAll(tenure)
  // The reminder is due.
  const clock = vi.spyOn(Date, "now").mockImplementation(() => realNow() + 2 * minute)
  const last = "membership.expired"
  await follow(
    server.url,
    token,
    types.filter((type) => type !== last),
  )
  // The grace is over.
  clock.mockImplementation(() => realNow() + 6 * minute)
  await follow(server.url, token, [last])
  const subscribe = { type: "subscribe", project: projectId }
  await talk(server.url, token, [{ ...subscribe, after: "start" }], ["cursor"])
  await talk(server.url, token, [{ ...subscribe, after: "another-history" }], ["reset"])
  await talk(server.url, token, [{ type: "subscribe", project: "nobody" }], ["error"])
  source = await (await fetch(`${server.url}/v2/asyncapi.json`)).text()
  await server.close()
  await tenure.close()

  const { components } = JSON.parse(source)
  messages = components.messages
  const ajv = new Ajv({ strict: false, allErrors: true })
  formats.default(ajv)
  ajv.addSchema({ $id: "asyncapi", components })
  validate = (schema, value) => {
    const text = JSON.stringify(schema).replaceAll('"#/', '"asyncapi#/')
    return ajv.validate(JSON.parse(text), value) ? "" : ajv.errorsText()
  }
})

afterAll(() => void vi.restoreAllMocks())

describe("the AsyncAPI document", () => {
  it("is one by the schema of AsyncAPI", () => {
    // It contains the meta-schema, too.
    const ajv = new Ajv({ strict: false, meta: false, validateSchema: false })
    formats.default(ajv)
    const schema = JSON.parse(JSON.stringify(specs.schemas["3.0.0"]))
    const isValid = ajv.validate(schema, JSON.parse(source))
    expect([isValid, ajv.errors]).toEqual([true, null])
  })

  it("has no problem by the recommended rules of Redocly", async () => {
    // Requests to webhooks are signed, and AsyncAPI has no scheme for signatures.
    const rules = { "security-defined": "off" } as const
    const config = await createConfig({ extends: ["recommended"], rules })
    const problems = await lintFromString({ source, absoluteRef: "/asyncapi.json", config })
    expect(problems.map(({ location, message }) => [message, location[0]?.pointer])).toEqual([])
  })

  it("refers to nothing that is missing", () => {
    const document = JSON.parse(source)
    for (const [, path = ""] of source.matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      expect(
        path.split("/").reduce((value, name) => value?.[name], document),
        path,
      ).toBeDefined()
    }
  })
})

// Only events from traced requests have it.
const sometimes = "traceparent"

/** Returns the names of a value's required fields, at any depth. */
const fieldsOf = (value: unknown): ReadonlyArray<string> =>
  typeof value === "object" && value !== null
    ? Object.entries(value)
        .filter(([name]) => name !== sometimes)
        .flatMap(([name, part]) => [name, ...fieldsOf(part).map((one) => `${name}.${one}`)])
    : []

describe.each([
  ["feed", fed],
  ["webhook", notified],
])("a message of the channel %s", (channel, received) => {
  it.each(types)("of the type %s is as documented, and so is the example", (type) => {
    const message = messages[`${channel}.${nameOf(type)}`]
    const sent = received.find(({ payload }) => payload.type === type)
    const [example] = message?.examples ?? []
    for (const one of [sent, example]) {
      expect(validate(message?.payload ?? {}, one?.payload)).toBe("")
      expect(validate(message?.headers ?? {}, one?.headers ?? {})).toBe("")
    }
    // The example has all fields; an event may omit some.
    expect(fieldsOf(example?.payload)).toEqual(expect.arrayContaining([...fieldsOf(sent?.payload)]))
  })

  it("has no other type", () => {
    const names = Object.keys(messages).filter((name) => name.startsWith(`${channel}.`))
    const expected = types.map((type) => `${channel}.${nameOf(type)}`)
    expect(names.filter((name) => name !== "feed.reset").toSorted()).toEqual(expected.toSorted())
  })
})

describe("a frame of the channel realtime", () => {
  const messageOf = (type: string) => messages[`realtime.${type}`]

  it.each(["event", "cursor", "reset", "error"])(
    "of the type %s is as documented, and so is the example",
    (type) => {
      const message = messageOf(type)
      const sent = frames.filter((frame) => frame.type === type)
      expect(sent).not.toEqual([])
      for (const one of [...sent, message?.examples[0]?.payload]) {
        expect(validate(message?.payload ?? {}, one)).toBe("")
      }
      const fields = sent.map((frame) => fieldsOf(frame).toSorted())
      expect(fields).toContainEqual(fieldsOf(message?.examples[0]?.payload).toSorted())
    },
  )

  it.each(["subscribe", "pong", "ping"])("of the type %s has an example", (type) => {
    const message = messageOf(type)
    expect(validate(message?.payload ?? {}, message?.examples[0]?.payload)).toBe("")
  })
})
