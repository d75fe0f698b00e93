/** What clients do: they change memberships, register webhooks, and read the feed. */

import type { Client as Api, CallOptions, TenureError } from "@tenure/client"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import { random } from "../faults/random.ts"
import { type Client, follow, makeClient } from "./clients.ts"
import type { Call } from "./record.ts"
import type { Weather } from "./weather.ts"
import type { World } from "./world.ts"

/** The projects. */
export const projects = ["p1", "p2"] as const

/** Each project's members. */
const users = ["u1", "u2", "u3"] as const

// A call that its caller repeats is made so often at most.
const maxTries = 3

/** Whether a caller cannot know a call's outcome. */
const isUncertain = ({ code, status = 503 }: TenureError): boolean =>
  status === 429 || status >= 500 || code === "IDEMPOTENCY_IN_PROGRESS"

type Send = (api: Api, options: CallOptions) => Promise<{ readonly data: unknown }>

/** Makes a call, and records what its client reports. */
const ask = Effect.fnUntraced(function* (
  { choose, hasKeys, name, run, world: { loop, notes, server } }: Client,
  asked: Omit<
    Call,
    | "client"
    | "hasKey"
    | "tries"
    | "start"
    | "end"
    | "storeStart"
    | "storeEnd"
    | "status"
    | "code"
    | "data"
  >,
  send: Send,
) {
  // If two webhooks had one URL, the receiver would know only one secret.
  const needsKey = asked.action === "createWebhook" && !hasKeys
  const idempotencyKey =
    needsKey || choose.chance(0.3) ? `${name}-${notes.calls.length}` : undefined
  const call: Call = {
    ...asked,
    client: name,
    hasKey: hasKeys || idempotencyKey !== undefined,
    tries: 0,
    start: loop.now(),
    end: Infinity,
    storeStart: server.machine.wallMillis(),
    storeEnd: Infinity,
    status: 0,
    code: "",
    data: {},
  }
  notes.calls.push(call)
  // Without its own key, a caller cannot repeat a call as the same.
  const most = idempotencyKey === undefined ? 1 : maxTries
  for (let tries = 1; tries <= most; tries++) {
    const outcome = yield* Effect.result(run((api) => send(api, { idempotencyKey }), call))
    if (Result.isSuccess(outcome)) {
      call.status = 200
      call.code = ""
      call.data = recordOf(outcome.success.data)
      break
    }
    const { code, status = 0 } = outcome.failure
    call.status = status
    call.code = code
    if (!isUncertain(outcome.failure)) break
    yield* Effect.sleep(choose.between(100, 3000))
  }
  if (call.status !== 0) {
    call.end = loop.now()
    call.storeEnd = server.machine.wallMillis()
  }
  return call
})

const recordOf = (data: unknown): Readonly<Record<string, unknown>> =>
  typeof data === "object" && data !== null ? Object.fromEntries(Object.entries(data)) : {}

const dayMillis = 86_400_000

/** A date that no other call asks for: soon, so that it is announced, or much later. */
const newDate = ({ choose, world: { loop, notes } }: Client): number => {
  const millis = choose.chance(0.4)
    ? 2000 + choose.below(60_000)
    : dayMillis * (1 + choose.below(30))
  // Another date for each call.
  return 1000 * Math.floor((loop.now() + millis) / 1000) + (notes.calls.length % 1000)
}

/** What a client may do next. */
const act = Effect.fnUntraced(function* (client: Client, weather: Weather) {
  const { choose, world } = client
  const { notes } = world
  const projectId = choose.pick(projects)
  const userId = choose.pick(users)
  const project = { project_id: projectId }
  const member = { ...project, user_id: userId }
  const choice = choose.next()
  if (choice < 0.1) {
    yield* grant(client, projectId, userId)
  } else if (choice < 0.37) {
    const endDate = newDate(client)
    yield* ask(client, { action: "extend", projectId, userId, endDate }, (api, options) =>
      api.memberships.extend({ ...member, extend: endDate }, options),
    )
  } else if (choice < 0.45) {
    yield* pause(client, weather, projectId, lastOf(client, "grant", projectId))
  } else if (choice < 0.55) {
    const endDate = newDate(client)
    const isNeverShortening = choose.chance(0.5)
    const mode = isNeverShortening ? "never_shorten" : undefined
    const asked = { action: "extendAll", projectId, endDate, isNeverShortening } as const
    yield* ask(client, asked, (api, options) =>
      api.memberships.extendAll({ ...project, extend: endDate, mode }, options),
    )
  } else if (choice < 0.65) {
    yield* undo(client, projectId)
  } else if (choice < 0.7) {
    yield* ask(client, { action: "end", projectId, userId }, (api, options) =>
      api.memberships.end(member, options),
    )
  } else if (choice < 0.73) {
    yield* resume(client, projectId, lastOf(client, "pause", projectId))
  } else if (choice < 0.83) {
    const call = yield* ask(client, { action: "find", projectId, userId }, (api, options) =>
      api.memberships.get(member, options),
    )
    const found = call.data["end_date"]
    if (typeof found === "string") call.endDate = Date.parse(found)
  } else if (choice < 0.86) {
    yield* setGrace(client, projectId)
  } else if (choice < 0.9) {
    const subject = `mark ${notes.calls.length}`
    const event = { type: "payment.completed", data: { mark: subject } }
    yield* ask(client, { action: "publish", projectId, subject }, (api, options) =>
      api.events.publish({ ...project, ...event }, options),
    )
  } else if (choice < 0.95 || notes.webhooks.length === 0) {
    yield* createWebhook(client, projectId)
  } else {
    const webhook = notes.webhooks[choose.below(notes.webhooks.length)]
    if (webhook === undefined) return
    const { id } = webhook
    const asked = { action: "deleteWebhook", projectId: webhook.projectId, subject: id } as const
    yield* ask(client, asked, (api, options) =>
      api.webhooks.delete({ project_id: webhook.projectId, webhook_id: id }, options),
    )
  }
})

/** As long as the time until an end that comes soon, or less. */
const graces = [null, "PT3S", "PT15S", "PT1M"] as const

const graceMillisOf = { PT3S: 3000, PT15S: 15_000, PT1M: 60_000 }

const setGrace = (client: Client, projectId: string) => {
  const grace = client.choose.pick(graces)
  const graceMillis = grace === null ? 0 : graceMillisOf[grace]
  return ask(client, { action: "setGrace", projectId, graceMillis }, (api, options) =>
    api.projects.update({ project_id: projectId, grace }, options),
  )
}

/**
 * Pauses a membership for up to a minute, or until it is resumed. If the store's clock is set back, nobody can tell
 * whether it has been seen that a pause was over.
 */
const pause = (client: Client, { jumps }: Weather, projectId: string, userId: string) => {
  const { choose, world } = client
  const reason = `pause ${world.notes.calls.length}`
  const mayEnd = jumps.every(({ byMillis, isOfStore }) => !isOfStore || byMillis > 0)
  const end = 1000 + choose.below(60_000)
  const until = mayEnd && choose.chance(0.7) ? Math.floor(world.loop.now()) + end : undefined
  const member = { project_id: projectId, user_id: userId }
  const asked = { action: "pause", projectId, userId, subject: reason } as const
  return ask(client, asked, (api, options) =>
    api.memberships.pause({ ...member, reason, ...(until !== undefined && { until }) }, options),
  )
}

/** Resumes a membership. */
const resume = (client: Client, projectId: string, userId: string) => {
  const reason = `resumption ${client.world.notes.calls.length}`
  const member = { project_id: projectId, user_id: userId }
  const asked = { action: "resume", projectId, userId, subject: reason } as const
  return ask(client, asked, (api, options) =>
    api.memberships.resume({ ...member, reason }, options),
  )
}

/** Returns the user whom a call in a project was last made for; another one if there was none. */
const lastOf = ({ world: { notes } }: Client, action: Call["action"], projectId: string): string =>
  notes.calls.findLast(
    (call) => call.action === action && call.status === 200 && call.projectId === projectId,
  )?.userId ?? users[0]

const grant = (client: Client, projectId: string, userId: string) => {
  const endDate = newDate(client)
  return ask(client, { action: "grant", projectId, userId, endDate }, (api, options) =>
    api.memberships.grant({ project_id: projectId, user_id: userId, end_date: endDate }, options),
  )
}

/** Undoes one bulk extension in a project, if there is one. */
const undo = Effect.fnUntraced(function* (client: Client, projectId: string) {
  const { choose, run } = client
  const project = { project_id: projectId }
  const listed = yield* Effect.result(run((api) => api.memberships.bulkExtensions(project)))
  if (Result.isFailure(listed)) return
  const { data } = listed.success
  const subject = data[choose.below(data.length)]?.id
  if (subject === undefined) return
  yield* ask(client, { action: "undo", projectId, subject }, (api, options) =>
    api.memberships.undoBulkExtension({ ...project, bulk_extension_id: subject }, options),
  )
})

const createWebhook = Effect.fnUntraced(function* (client: Client, projectId: string) {
  const { notes } = client.world
  const url = `https://receiver.example/${notes.calls.length}`
  const asked = { action: "createWebhook", projectId, subject: url } as const
  const { data } = yield* ask(client, asked, (api, options) =>
    api.webhooks.create({ project_id: projectId, url }, options),
  )
  const { id, secret } = data
  if (typeof id === "string" && typeof secret === "string")
    notes.webhooks.push({ id, projectId, url, secret })
})

/** Reads a project's feed page by page, and goes on after the last cursor, until the run ends. */
const read = Effect.fnUntraced(function* (client: Client, millis: number, projectId: string) {
  const { choose, run, world } = client
  const got: Array<string> = []
  world.notes.readers.push({ projectId, way: "pages", got })
  let after = "start"
  for (;;) {
    const limit = world.isHealed() ? 100 : choose.pick([1, 3, 100])
    const query = { project_id: projectId, after, limit }
    const page = yield* Effect.result(run((api) => api.events.list(query)))
    if (Result.isSuccess(page)) {
      const { data, next } = page.success
      got.push(...data.map(({ id }) => id))
      after = next
      if (data.length === limit) continue
    }
    yield* Effect.sleep(world.isHealed() ? 300_000 : choose.between(500, millis / 3))
  }
})

/**
 * Subscribes to a project's feed, and now and then begins anew after the last cursor, as a program does that is
 * restarted: what it got after this cursor is gone.
 */
const subscribe = Effect.fnUntraced(function* (client: Client, millis: number, projectId: string) {
  const { choose, world } = client
  const got: Array<string> = []
  world.notes.readers.push({ projectId, way: "subscription", got })
  let after = "start"
  let kept = 0
  const subscription = {
    project_id: projectId,
    onEvent: ({ id }: { readonly id: string }) => got.push(id),
    onCursor: () => {
      kept = got.length
    },
  }
  const followFor = (time: number) =>
    Effect.map(follow(client, { ...subscription, after }, time), (cursor) => {
      after = cursor
      got.splice(kept)
    })
  const times = 1 + choose.below(3)
  for (let time = 0; time < times; time++) {
    yield* followFor(choose.between(1000, millis / 2))
    yield* Effect.sleep(choose.between(0, millis / 3))
  }
  // All that happens in the run is there by then.
  yield* Effect.sleep(Math.max(0, world.endsAt - lastMillis - world.loop.now()))
  yield* followFor(lastMillis)
})

// A subscription that nothing disturbs has all events in this time.
const lastMillis = 10_000

/** Has clients at work. */
export const startClients = (world: World, weather: Weather, token: string): void => {
  const { millis } = weather
  const { clients, loop, notes, seed } = world
  const choose = random(seed, "clients")
  const run = (name: string, program: (client: Client) => Effect.Effect<void, TenureError>): void =>
    loop.after(startMillis, () =>
      Effect.runCallbackWith(clients.services)(program(makeClient(world, name, token)), {
        onExit: (exit) => {
          if (Exit.isFailure(exit)) notes.deaths.push(`${name}: ${Cause.pretty(exit.cause)}`)
        },
      }),
    )
  const work = Effect.fnUntraced(function* (client: Client) {
    const acts = 2 + client.choose.below(8)
    for (const projectId of projects) {
      if (client.choose.chance(0.3)) yield* setGrace(client, projectId)
    }
    // So that there is something to change.
    if (client.choose.chance(0.5)) {
      for (const projectId of projects) yield* grant(client, projectId, users[0])
    }
    for (let index = 0; index < acts; index++) {
      yield* act(client, weather)
      yield* Effect.sleep(client.choose.between(0, millis / acts))
    }
  })
  const count = 1 + choose.below(3)
  for (let index = 0; index < count; index++) run(`client${index}`, work)
  for (const projectId of projects) {
    const way = choose.next()
    if (way < 0.5) run(`reader-${projectId}`, (client) => read(client, millis, projectId))
    if (way > 0.4 && way < 0.7) {
      run(`subscriber-${projectId}`, (client) => subscribe(client, millis, projectId))
    }
  }
}

// By then, processes have usually started.
const startMillis = 50
