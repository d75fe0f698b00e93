/** Clients, over HTTP. */

import { randomUUID } from "node:crypto"
import { get } from "node:http"
import { setTimeout as sleep } from "node:timers/promises"
import { type Operation, type Webhook, manners } from "../history.ts"
import type { Random } from "../random.ts"
import { type World, operatorKeys, personIds, places, userIds } from "../world/world.ts"
import { type Request, type Send, fieldOf, makeSend } from "./http.ts"
import {
  type Actor,
  type Answered,
  type Asked,
  type Scene,
  actor,
  anyDate,
  repeat,
} from "./recorder.ts"

/** What a client works with. */
interface Client extends Actor {
  readonly send: Send
  readonly key: string
  /** The webhooks that it has created and not deleted. */
  readonly webhooks: Array<Owned>
  /** URLs of webhooks that may be there, because nothing was answered. */
  readonly uncertain: Set<string>
}

/** A client's webhook. */
interface Owned {
  readonly id: string
  readonly projectId: string
  /** Whether it may be deleted already. */
  readonly isAskedAgain?: boolean
}

const clientOf = (on: Actor, send: Send, key: string): Client => ({
  ...on,
  send,
  key,
  webhooks: [],
  uncertain: new Set(),
})

const webhookOf = (data: unknown): Webhook | undefined => {
  const [id, url, secret] = ["id", "url", "secret"].map((name) => fieldOf(data, name))
  return secret === undefined
    ? undefined
    : { id: String(id), url: String(url), secret: String(secret) }
}

const instantOf = (date: unknown): number | undefined =>
  typeof date === "string" ? Date.parse(date) : undefined

/** What is asked, and what is known about it. */
interface Question extends Pick<Request, "body">, Omit<Asked, "expected" | "process"> {
  /** The method, and the path within the project. */
  readonly request: string
  /** Default: 200. */
  readonly expected?: ReadonlyArray<number>
  /** Tells what an answer says beyond its status: a webhook, or end dates. */
  readonly learn?: (data: unknown, error: unknown) => Partial<Operation> | void
}

/** Asks any host or server. */
const ask = (client: Client, question: Question): Promise<Operation> => {
  const { choose, key, recorder, send, world } = client
  const { body, expected = [200], idempotencyKey, learn, request, ...known } = question
  const { process, url } = world.door(choose)
  const token = world.tokens[key] ?? ""
  return recorder.record({ ...known, expected, idempotencyKey, process, key }, async () => {
    const [method = "", within] = request.split(" ")
    const path = `/v2/projects/${question.projectId}${within}`
    const asked = { body, idempotencyKey, method, path, token }
    const { data, error, next: _, ...answer } = await send(url, asked)
    return { ...answer, ...learn?.(data, error) }
  })
}

const maxAttempts = 6
const tooLate = 422
const open: ReadonlySet<number> = new Set([0, 429, 503])

/** Asks with an idempotency key until there is an answer, each time any server. */
const askOnce = async (client: Client, question: Question, key: string): Promise<void> => {
  const keyed = {
    ...question,
    idempotencyKey: key,
    // Another change may keep this one from being made for five seconds.
    expected: [...(question.expected ?? [200]), 409],
  }
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const { conflictingDate, status } = await ask(client, keyed)
    const isInProgress = status === 409 && conflictingDate === undefined
    if (!open.has(status) && !isInProgress) break
    await sleep(client.choose.between(100, 600))
  }
  // Whoever has not understood the answer asks once more.
  if (client.choose.chance(0.3)) await ask(client, keyed)
}

/** Asks, sometimes with an idempotency key. Near dates may have come when a request is repeated. */
const change = async (client: Client, question: Question): Promise<void> => {
  const isKeyed = question.expected?.includes(tooLate) !== true && client.choose.chance(0.4)
  if (isKeyed) await askOnce(client, question, randomUUID())
  else await ask(client, question)
}

const extending = (
  { choose }: Client,
  projectId: string,
  userId: string,
  { endDate, expected }: ReturnType<typeof anyDate>,
  expectedEndDate?: number,
): Question => ({
  action: "extend",
  projectId,
  userId,
  endDate,
  expectedEndDate,
  request: `PATCH /memberships/${userId}/extend`,
  body: {
    extend: choose.chance(0.5) ? endDate : new Date(endDate).toISOString(),
    expected_end_date: expectedEndDate,
  },
  // Persons come and go.
  expected: personIds.some((id) => id === userId) ? [...expected, 404] : expected,
  learn: (_, error) => ({ conflictingDate: instantOf(fieldOf(error, "current_end_date")) }),
})

const anyUser = (choose: Random): string => choose.pick([...userIds, ...personIds])

const extend = (client: Client, projectId: string): Promise<void> =>
  change(client, extending(client, projectId, anyUser(client.choose), anyDate(client)))

const extendAll = (client: Client, projectId: string): Promise<void> => {
  const { endDate, expected } = anyDate(client)
  const isNeverShortening = client.choose.chance(0.5)
  return change(client, {
    action: "extendAll",
    projectId,
    endDate,
    isNeverShortening,
    request: "PATCH /memberships/extend",
    body: { extend: endDate, ...(isNeverShortening && { mode: "never_shorten" }) },
    expected,
  })
}

// Each has a history, and all ends are announced together.
const maxImported = 40

/** Imports new members, and some that there may be already. */
const importSome = (client: Client, projectId: string): Promise<void> => {
  const { choose, recorder } = client
  const userIdsToImport = [
    String(4_000_000 + choose.below(maxImported)),
    choose.pick(userIds),
    ...personIds.filter(() => choose.chance(0.5)),
  ]
  const members = userIdsToImport.map((userId) => ({ userId, endDate: recorder.nextDate() }))
  return change(client, {
    action: "import",
    projectId,
    members,
    request: "POST /memberships/import",
    body: members
      .map(({ endDate, userId }) =>
        JSON.stringify({ user_id: userId, end_date: new Date(endDate).toISOString() }),
      )
      .join("\n"),
  })
}

/** Uses one idempotency key for two projects at the same time: one request has to be refused. */
const useTwice = async (client: Client): Promise<void> => {
  const { choose, recorder } = client
  const key = randomUUID()
  const use = (projectId: string): Promise<void> => {
    const date = { endDate: recorder.nextDate(), expected: [200, 422] }
    return askOnce(client, extending(client, projectId, choose.pick(userIds), date), key)
  }
  await Promise.all(choose.shuffle(places.projects).slice(0, 2).map(use))
}

/** Extends a membership if it still has the end date that was read before. */
const extendFound = async (client: Client, projectId: string): Promise<void> => {
  const userId = anyUser(client.choose)
  const { endDate, status } = await ask(client, {
    action: "find",
    projectId,
    userId,
    request: `GET /memberships/${userId}`,
    expected: [200, 404],
    learn: (data) => ({ endDate: instantOf(fieldOf(data, "end_date")) }),
  })
  if (status !== 200 || endDate === undefined) return
  const date = anyDate(client)
  const conflicting = { ...date, expected: [...date.expected, 409] }
  await ask(client, extending(client, projectId, userId, conflicting, endDate))
}

const listMembers = (client: Client, projectId: string): Promise<Operation> => {
  const asked = [...userIds, ...personIds]
  return ask(client, {
    action: "list",
    projectId,
    request: `GET /memberships?user_ids=${asked.join(",")}`,
    learn: (data) => {
      const rows: ReadonlyArray<unknown> = Array.isArray(data) ? data : []
      const found = new Map(
        rows.map((row) => [fieldOf(row, "user_id"), instantOf(fieldOf(row, "end_date"))]),
      )
      return { members: asked.map((userId) => ({ userId, endDate: found.get(userId) })) }
    },
  })
}

// A project may have 50, and each gets all its events.
const maxWebhooks = 3

const createWebhook = async (client: Client, projectId: string): Promise<void> => {
  const { choose, webhooks } = client
  const { receivers } = client.world
  if (webhooks.length >= maxWebhooks) return deleteWebhook(client)
  const url = receivers.url(choose.chance(0.5) ? "fast" : choose.pick(manners))
  const { status, webhook } = await ask(client, {
    action: "createWebhook",
    projectId,
    request: "POST /integrations/webhooks",
    body: { url },
    learn: (data) => ({ webhook: webhookOf(data) }),
  })
  if (webhook !== undefined) webhooks.push({ id: webhook.id, projectId })
  else if (open.has(status)) client.uncertain.add(url)
}

const deleteWebhook = async (client: Client): Promise<void> => {
  const webhook = client.webhooks.shift()
  if (webhook === undefined) return
  const { id, isAskedAgain = false, projectId } = webhook
  const { status } = await ask(client, {
    action: "deleteWebhook",
    projectId,
    subject: id,
    request: `DELETE /integrations/webhooks/${id}`,
    expected: isAskedAgain ? [200, 404] : [200],
  })
  if (open.has(status)) client.webhooks.push({ id, isAskedAgain: true, projectId })
}

/** Lists webhooks. Those without an answer become the client's own. */
const listWebhooks = (client: Client, projectId: string): Promise<Operation> =>
  ask(client, {
    action: "listWebhooks",
    projectId,
    request: "GET /integrations/webhooks",
    learn: (data) => {
      for (const webhook of Array.isArray(data) ? data : []) {
        if (!client.uncertain.delete(String(fieldOf(webhook, "url")))) continue
        client.webhooks.push({ id: String(fieldOf(webhook, "id")), projectId })
      }
    },
  })

const invalid = (client: Client, projectId: string): Promise<Operation> => {
  const [path, expected] = client.choose.pick([
    ["/memberships/1001/extend", 422],
    ["/memberships/9/extend", 404],
    ["/../unknown/memberships/extend", 404],
  ])
  return ask(client, {
    action: "invalid",
    projectId,
    request: `PATCH ${path}`,
    body: { extend: expected === 422 ? "tomorrow" : Date.UTC(2099, 0) },
    expected: [expected],
  })
}

const step = (client: Client): Promise<unknown> => {
  const { choose } = client
  const projectId = choose.pick(places.projects)
  const dice = choose.next()
  if (dice < 0.4) return extend(client, projectId)
  if (dice < 0.46) return extendAll(client, projectId)
  if (dice < 0.62) return extendFound(client, projectId)
  if (dice < 0.66) return useTwice(client)
  if (dice < 0.72) return listMembers(client, projectId)
  if (dice < 0.78) return createWebhook(client, projectId)
  if (dice < 0.84) return deleteWebhook(client)
  if (dice < 0.9) return listWebhooks(client, projectId)
  if (dice < 0.95 && operatorKeys.includes(client.key)) return importSome(client, projectId)
  return invalid(client, projectId)
}

const warmUpRounds = 10

/** Asks every server a few times, since a process's first answers take longer. */
export const warmUp = async ({ servers, tokens }: World): Promise<void> => {
  const { close, send } = makeSend()
  const [token = ""] = Object.values(tokens)
  const path = `/v2/projects/${places.projects[0]}/integrations/webhooks`
  for (let round = 0; round < warmUpRounds; round++) {
    await Promise.all(
      [...servers.values()].map(({ url }) => send(url, { method: "GET", path, token })),
    )
  }
  close()
}

/** Asks one question after the other. */
export const runClient = async (scene: Scene, key: string): Promise<void> => {
  const { close, send } = makeSend()
  const client = clientOf(actor(scene, key), send, key)
  await repeat(client, () => step(client))
  close()
}

/** Exceeds its keys' limits, at all servers at once. */
export const runGreedyClient = async (scene: Scene, keys: ReadonlyArray<string>): Promise<void> => {
  const on = actor(scene, "greedy")
  const { close, send } = makeSend()
  let turn = 0
  const exceed = () => {
    const client = clientOf(on, send, keys[turn++ % keys.length] ?? "")
    return Promise.all(
      Array.from({ length: 35 }, () => listWebhooks(client, on.choose.pick(places.projects))),
    )
  }
  await repeat(on, exceed, 300, 2000)
  close()
}

const probeMillis = 250

const probe = (url: string): Promise<Answered> =>
  new Promise((resolve) => {
    const request = get(`${url}/readyz`, { agent: false }, (response) => {
      response.resume().on("end", () => resolve({ status: response.statusCode ?? 0 }))
    })
    request.on("error", ({ message }) => resolve({ status: 0, problem: message }))
  })

/** Asks every server whether it is ready, as a load balancer does. */
export const runProbes = async ({ isOver, recorder, world }: Scene): Promise<void> => {
  const watch = async (process: string): Promise<void> => {
    while (!isOver()) {
      const asked = { action: "ready", process, projectId: "", expected: [200] } as const
      await recorder.record(asked, () => probe(world.servers.get(process)?.url ?? ""))
      await sleep(probeMillis)
    }
  }
  await Promise.all(places.servers.map(watch))
}
