/** What clients do: they change memberships, register webhooks, and read the feed. */

import type { ApiRequest } from "@tenure/core/adapter"
import * as Effect from "effect/Effect"
import { type Random, random } from "../faults/random.ts"
import type { Call } from "./record.ts"
import type { Weather } from "./weather.ts"
import type { HttpAnswer, World } from "./world.ts"

/** The projects. */
export const projects = ["p1", "p2"] as const

/** The members of each project. */
const users = ["u1", "u2", "u3"] as const

const utf8 = new TextEncoder()

/** Makes a request of a client. */
export const requestOf = (
  token: string,
  method: string,
  path: string,
  body: object | undefined,
  idempotencyKey: string | undefined,
): ApiRequest => {
  const [target = path, query] = path.split("?")
  return {
    method,
    path: target,
    query,
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
    },
    body: { _tag: "Bytes", bytes: utf8.encode(body === undefined ? "" : JSON.stringify(body)) },
    remoteAddress: "192.0.2.1",
  }
}

/** A request, which a client repeats until it is answered. */
interface Sent {
  readonly method: string
  readonly path: string
  readonly body?: object | undefined
}

const mostTries = 5

/** Whether a client asks again. */
export const isTransient = (answer: HttpAnswer | undefined): boolean =>
  answer === undefined || answer.status === 503 || answer.status === 429 || answer.status === 409

const dataOf = ({ body }: HttpAnswer): Readonly<Record<string, unknown>> => {
  const { data } = body
  return typeof data === "object" && data !== null ? Object.fromEntries(Object.entries(data)) : {}
}

/** A client. */
interface Client {
  readonly name: string
  readonly choose: Random
  readonly token: string
}

/** Asks until there is an answer, and records that. */
const ask = Effect.fnUntraced(function* (
  { notes, loop, request }: World,
  { choose, name, token }: Client,
  { body, method, path }: Sent,
  asked: Pick<Call, "action" | "projectId" | "userId" | "endDate" | "subject">,
) {
  // Of two webhooks with one URL, the receiver would know the secret of one.
  const needsKey = asked.action === "createWebhook"
  const idempotencyKey =
    needsKey || choose.chance(0.7) ? `${name} ${notes.calls.length}` : undefined
  const call: Call = {
    ...asked,
    hasKey: idempotencyKey !== undefined,
    tries: 0,
    start: loop.now(),
    end: Infinity,
    status: 0,
    data: {},
  }
  notes.calls.push(call)
  const sent = requestOf(token, method, path, body, idempotencyKey?.replaceAll(" ", "-"))
  // A client without a key cannot know whether it was heard.
  const most = idempotencyKey === undefined && choose.chance(0.5) ? 1 : mostTries
  while (call.tries < most) {
    call.tries++
    const answer = yield* request(sent)
    call.status = answer?.status ?? 0
    if (answer !== undefined) call.data = dataOf(answer)
    if (!isTransient(answer)) break
    yield* Effect.sleep(choose.between(100, 3000))
  }
  if (call.status !== 0) call.end = loop.now()
  return call
})

const dayMillis = 86_400_000

/** A date that no other call asks for: soon, so that it is announced, or much later. */
const newDate = ({ choose, loop, notes }: World): number => {
  const millis = choose.chance(0.4)
    ? 2000 + choose.below(60_000)
    : dayMillis * (1 + choose.below(30))
  // A date of its own for each call.
  return 1000 * Math.floor((loop.now() + millis) / 1000) + (notes.calls.length % 1000)
}

/** What a client may do next. */
const act = Effect.fnUntraced(function* (world: World, client: Client) {
  const { choose } = client
  const { notes } = world
  const projectId = choose.pick(projects)
  const userId = choose.pick(users)
  const at = `/v2/projects/${projectId}`
  const member = `${at}/memberships/${userId}`
  const choice = choose.next()
  if (choice < 0.1) {
    const endDate = newDate(world)
    const body = { end_date: endDate }
    yield* ask(
      world,
      client,
      { method: "PUT", path: member, body },
      { action: "grant", projectId, userId, endDate },
    )
  } else if (choice < 0.45) {
    const endDate = newDate(world)
    const sent = { method: "PATCH", path: `${member}/extend`, body: { extend: endDate } }
    yield* ask(world, client, sent, { action: "extend", projectId, userId, endDate })
  } else if (choice < 0.55) {
    const endDate = newDate(world)
    const body = { extend: endDate, ...(choose.chance(0.5) && { mode: "never_shorten" }) }
    const sent = { method: "PATCH", path: `${at}/memberships/extend`, body }
    yield* ask(world, client, sent, { action: "extendAll", projectId, endDate })
  } else if (choice < 0.65) {
    yield* undo(world, client, projectId)
  } else if (choice < 0.7) {
    yield* ask(
      world,
      client,
      { method: "DELETE", path: member },
      { action: "end", projectId, userId },
    )
  } else if (choice < 0.83) {
    const call = yield* ask(
      world,
      client,
      { method: "GET", path: member },
      { action: "find", projectId, userId },
    )
    const found = call.data["end_date"]
    if (typeof found === "string") call.endDate = Date.parse(found)
  } else if (choice < 0.9) {
    const subject = `mark ${notes.calls.length}`
    const body = { type: "payment.completed", data: { mark: subject } }
    yield* ask(
      world,
      client,
      { method: "POST", path: `${at}/events`, body },
      { action: "publish", projectId, subject },
    )
  } else if (choice < 0.95 || notes.webhooks.length === 0) {
    yield* createWebhook(world, client, projectId)
  } else {
    const webhook = notes.webhooks[choose.below(notes.webhooks.length)]
    if (webhook === undefined) return
    const path = `/v2/projects/${webhook.projectId}/integrations/webhooks/${webhook.id}`
    yield* ask(
      world,
      client,
      { method: "DELETE", path },
      { action: "deleteWebhook", projectId: webhook.projectId, subject: webhook.id },
    )
  }
})

/** Undoes one of the bulk extensions of a project, if there is one. */
const undo = Effect.fnUntraced(function* (world: World, client: Client, projectId: string) {
  const path = `/v2/projects/${projectId}/bulk-extensions`
  const listed = yield* world.request(requestOf(client.token, "GET", path, undefined, undefined))
  const data = listed?.body["data"]
  if (!Array.isArray(data) || data.length === 0) return
  const { id } = data[client.choose.below(data.length)]
  const subject = String(id)
  const sent = { method: "POST", path: `${path}/${subject}/undo` }
  yield* ask(world, client, sent, { action: "undo", projectId, subject })
})

const createWebhook = Effect.fnUntraced(function* (
  world: World,
  client: Client,
  projectId: string,
) {
  const { notes } = world
  const url = `https://receiver.example/${notes.calls.length}`
  const path = `/v2/projects/${projectId}/integrations/webhooks`
  const { data } = yield* ask(
    world,
    client,
    { method: "POST", path, body: { url } },
    { action: "createWebhook", projectId, subject: url },
  )
  const { id, secret } = data
  if (typeof id === "string" && typeof secret === "string")
    notes.webhooks.push({ id, projectId, url, secret })
})

/** Reads the feed of a project, and goes on after the last cursor, until the end of the run. */
const read = Effect.fnUntraced(function* (
  world: World,
  weather: Weather,
  token: string,
  projectId: string,
  seed: number,
) {
  const choose = random(seed, "reader", projectId)
  const got: Array<string> = []
  world.notes.readers.push({ projectId, got })
  let after: unknown = "start"
  for (;;) {
    const limit = world.isHealed() ? 100 : choose.pick([1, 3, 100])
    const path = `/v2/projects/${projectId}/events?after=${String(after)}&limit=${limit}`
    const answer = yield* world.request(requestOf(token, "GET", path, undefined, undefined))
    const { data, next } = answer?.body ?? {}
    if (answer?.status === 200 && Array.isArray(data)) {
      for (const { id } of data) got.push(String(id))
      after = next
      if (data.length === limit) continue
    }
    yield* Effect.sleep(world.isHealed() ? 300_000 : choose.between(500, weather.millis / 3))
  }
})

/** Grants memberships, so that there is something to change. */
const open = Effect.fnUntraced(function* (world: World, client: Client) {
  for (const projectId of projects) {
    const [userId] = users
    const endDate = newDate(world)
    const sent = {
      method: "PUT",
      path: `/v2/projects/${projectId}/memberships/${userId}`,
      body: { end_date: endDate },
    }
    yield* ask(world, client, sent, { action: "grant", projectId, userId, endDate })
  }
})

/** Has clients at work. */
export const startClients = (world: World, weather: Weather, seed: number, token: string): void => {
  const { clients, loop } = world
  const choose = random(seed, "clients")
  const work = (name: string): Effect.Effect<void> => {
    const client: Client = { name, token, choose: random(seed, name) }
    const acts = 2 + client.choose.below(8)
    return Effect.gen(function* () {
      if (client.choose.chance(0.5)) yield* open(world, client)
      for (let index = 0; index < acts; index++) {
        yield* act(world, client)
        yield* Effect.sleep(client.choose.between(0, weather.millis / acts))
      }
    })
  }
  const run = (effect: Effect.Effect<void>): void =>
    loop.after(startMillis, () => void Effect.runForkWith(clients.services)(effect))
  const count = 1 + choose.below(3)
  for (let index = 0; index < count; index++) run(work(`client${index}`))
  for (const projectId of projects) {
    if (choose.chance(0.7)) run(read(world, weather, token, projectId, seed))
  }
}

// By then, processes have usually started.
const startMillis = 50
