/** Clients of the servers, over HTTP. */

import { randomUUID } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import * as Predicate from "effect/Predicate"
import {
  type Action,
  type Dated,
  type Manner,
  type Operation,
  type Webhook,
  manners,
} from "../history.ts"
import { type Random, random } from "../random.ts"
import { type World, operatorKeys, personIds, places, userIds } from "../world/world.ts"
import { type Request, type Send, fieldOf, makeSend } from "./http.ts"
import { type Recorder, anyDate } from "./recorder.ts"

/** What a client works with. */
interface Client {
  readonly world: World
  readonly recorder: Recorder
  readonly choose: Random
  readonly send: Send
  readonly key: string
  /** The webhooks that it has created and not deleted. */
  readonly webhooks: Array<Owned>
  /** The URLs of webhooks that may be there, because nothing was answered. */
  readonly uncertain: Set<string>
}

/** A webhook of a client. */
interface Owned {
  readonly id: string
  readonly projectId: string
  /** Whether it may be deleted already. */
  readonly isAskedAgain?: boolean
}

const webhookOf = (data: unknown): Webhook | undefined =>
  Predicate.hasProperty(data, "id") &&
  Predicate.hasProperty(data, "url") &&
  Predicate.hasProperty(data, "secret")
    ? { id: String(data.id), url: String(data.url), secret: String(data.secret) }
    : undefined

/** What is asked, and of which kind it is. */
interface Question extends Omit<Request, "token"> {
  readonly action: Action
  readonly projectId: string
  readonly userId?: string | undefined
  readonly endDate?: number | undefined
  readonly isNeverShortening?: boolean | undefined
  readonly expectedEndDate?: number | undefined
  readonly members?: ReadonlyArray<Dated> | undefined
  readonly subject?: string | undefined
  readonly expected: ReadonlyArray<number>
  /** Learns of the data of an answer. */
  readonly learn?: (data: unknown) => void
}

const instantOf = (date: unknown): number | undefined =>
  typeof date === "string" ? Date.parse(date) : undefined

/** What an answer says beyond its status: of a webhook, or of end dates. */
const toldBy = (
  { action, members }: Question,
  data: unknown,
  error: unknown,
): Partial<Operation> => {
  switch (action) {
    case "createWebhook":
      return { webhook: webhookOf(data) }
    case "extend":
      return { conflictingDate: instantOf(fieldOf(error, "current_end_date")) }
    case "find":
      return { endDate: instantOf(fieldOf(data, "end_date")) }
    case "list": {
      const rows: ReadonlyArray<unknown> = Array.isArray(data) ? data : []
      const found = new Map(
        rows.map((row) => [fieldOf(row, "user_id"), instantOf(fieldOf(row, "end_date"))]),
      )
      return { members: members?.map(({ userId }) => ({ userId, endDate: found.get(userId) })) }
    }
    default:
      return {}
  }
}

/** Asks any of the hosts. */
const ask = (client: Client, question: Question): Promise<Operation> => {
  const { choose, key, recorder, send, world } = client
  const { body, idempotencyKey, learn, method, path, ...known } = question
  const { process, url } = world.door(choose)
  const token = world.tokens[key] ?? ""
  return recorder.record({ ...known, idempotencyKey, process, key }, async () => {
    const asked = { body, idempotencyKey, method, path, token }
    const { data, error, next: _, ...answer } = await send(url, asked)
    learn?.(data)
    return { ...answer, ...toldBy(question, data, error) }
  })
}

const mostAttempts = 6
const tooLate = 422
const open: ReadonlySet<number> = new Set([0, 429, 503])

/** Asks with an idempotency key until there is an answer, each time any of the servers. */
const askOnce = async (client: Client, question: Question, key: string): Promise<void> => {
  const keyed = {
    ...question,
    idempotencyKey: key,
    // Another change may keep this one from being made for five seconds.
    expected: [...question.expected, 409],
  }
  for (let attempt = 0; attempt < mostAttempts; attempt++) {
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
  const isKeyed = !question.expected.includes(tooLate) && client.choose.chance(0.4)
  if (isKeyed) await askOnce(client, question, randomUUID())
  else await ask(client, question)
}

const base = (projectId: string): string => `/v2/projects/${projectId}`

const extending = (
  { choose }: Client,
  projectId: string,
  userId: string,
  { endDate, expected }: ReturnType<typeof anyDate>,
  further: { readonly expected_end_date?: number } = {},
): Question => ({
  action: "extend",
  projectId,
  userId,
  endDate,
  method: "PATCH",
  path: `${base(projectId)}/memberships/${userId}/extend`,
  body: { extend: choose.chance(0.5) ? endDate : new Date(endDate).toISOString(), ...further },
  // Persons come and go.
  expected: personIds.some((id) => id === userId) ? [...expected, 404] : expected,
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
    method: "PATCH",
    path: `${base(projectId)}/memberships/extend`,
    body: { extend: endDate, ...(isNeverShortening && { mode: "never_shorten" }) },
    expected,
  })
}

// Each has a history, and the ends of all are announced together.
const mostImported = 40

/** Imports new members, and some that there may be already. */
const importSome = (client: Client, projectId: string): Promise<void> => {
  const { choose, recorder } = client
  const userIdsToImport = [
    String(4_000_000 + choose.below(mostImported)),
    choose.pick(userIds),
    ...personIds.filter(() => choose.chance(0.5)),
  ]
  const members = userIdsToImport.map((userId) => ({ userId, endDate: recorder.nextDate() }))
  return change(client, {
    action: "import",
    projectId,
    members,
    method: "POST",
    path: `${base(projectId)}/memberships/import`,
    body: members
      .map(({ endDate, userId }) =>
        JSON.stringify({ user_id: userId, end_date: new Date(endDate).toISOString() }),
      )
      .join("\n"),
    expected: [200],
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

const find = (client: Client, projectId: string, userId: string): Promise<Operation> =>
  ask(client, {
    action: "find",
    projectId,
    userId,
    method: "GET",
    path: `${base(projectId)}/memberships/${userId}`,
    expected: [200, 404],
  })

/** Extends a membership if it still has the end date that was read before. */
const extendFound = async (client: Client, projectId: string): Promise<void> => {
  const userId = anyUser(client.choose)
  const { endDate: expectedEndDate, status } = await find(client, projectId, userId)
  if (status !== 200 || expectedEndDate === undefined) return
  const further = { expected_end_date: expectedEndDate }
  const question = extending(client, projectId, userId, anyDate(client), further)
  await ask(client, { ...question, expectedEndDate, expected: [...question.expected, 409] })
}

const listMembers = async (client: Client, projectId: string): Promise<void> => {
  const asked = [...userIds, ...personIds]
  await ask(client, {
    action: "list",
    projectId,
    members: asked.map((userId) => ({ userId, endDate: undefined })),
    method: "GET",
    path: `${base(projectId)}/memberships?user_ids=${asked.join(",")}`,
    expected: [200],
  })
}

const mannerOf = (choose: Random): Manner =>
  choose.chance(0.5) ? "fast" : (manners[choose.below(manners.length)] ?? "fast")

// A project may have 50, and all of them get all its events.
const mostWebhooks = 3

const createWebhook = async (client: Client, projectId: string): Promise<void> => {
  if (client.webhooks.length >= mostWebhooks) return deleteWebhook(client)
  const url = client.world.receivers.url(mannerOf(client.choose))
  const { status, webhook } = await ask(client, {
    action: "createWebhook",
    projectId,
    method: "POST",
    path: `${base(projectId)}/integrations/webhooks`,
    body: { url },
    expected: [200],
  })
  if (webhook !== undefined) client.webhooks.push({ id: webhook.id, projectId })
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
    method: "DELETE",
    path: `${base(projectId)}/integrations/webhooks/${id}`,
    expected: isAskedAgain ? [200, 404] : [200],
  })
  if (open.has(status)) client.webhooks.push({ id, isAskedAgain: true, projectId })
}

/** Lists webhooks. Those of which nothing was answered become the client's own. */
const listWebhooks = async (client: Client, projectId: string): Promise<void> => {
  await ask(client, {
    action: "listWebhooks",
    projectId,
    method: "GET",
    path: `${base(projectId)}/integrations/webhooks`,
    expected: [200],
    learn: (data) => {
      for (const webhook of Array.isArray(data) ? data : []) {
        if (!client.uncertain.delete(String(fieldOf(webhook, "url")))) continue
        client.webhooks.push({ id: String(fieldOf(webhook, "id")), projectId })
      }
    },
  })
}

const invalid = async (client: Client, projectId: string): Promise<void> => {
  const [path, expected] = client.choose.pick([
    [`${base(projectId)}/memberships/1001/extend`, 422],
    [`${base(projectId)}/memberships/9/extend`, 404],
    [`${base("unknown")}/memberships/extend`, 404],
  ])
  await ask(client, {
    action: "invalid",
    projectId,
    method: "PATCH",
    path,
    body: { extend: expected === 422 ? "tomorrow" : Date.UTC(2099, 0) },
    expected: [expected],
  })
}

const step = (client: Client): Promise<void> => {
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

/** Asks every server a few times, since the first answers of a process take longer. */
export const warmUp = async ({ servers, tokens }: World): Promise<void> => {
  const { close, send } = makeSend()
  const [token = ""] = Object.values(tokens)
  const path = `${base(places.projects[0])}/integrations/webhooks`
  for (let round = 0; round < warmUpRounds; round++) {
    await Promise.all(
      [...servers.values()].map(({ url }) => send(url, { method: "GET", path, token })),
    )
  }
  close()
}

/** Asks one question after the other, with short breaks, until it is told to stop. */
export const runClient = async (
  world: World,
  recorder: Recorder,
  seed: number,
  key: string,
  isOver: () => boolean,
): Promise<void> => {
  const choose = random(seed, key)
  const { close, send } = makeSend()
  const client: Client = { world, recorder, choose, send, key, webhooks: [], uncertain: new Set() }
  while (!isOver()) {
    await step(client)
    await world.rest(choose, 20, 150)
  }
  close()
}

/** Exceeds the limits of its keys, at all servers at once, until it is told to stop. */
export const runGreedyClient = async (
  world: World,
  recorder: Recorder,
  seed: number,
  keys: ReadonlyArray<string>,
  isOver: () => boolean,
): Promise<void> => {
  const choose = random(seed, "greedy")
  const { close, send } = makeSend()
  for (let turn = 0; !isOver(); turn++) {
    const key = keys[turn % keys.length] ?? ""
    const client: Client = {
      world,
      recorder,
      choose,
      send,
      key,
      webhooks: [],
      uncertain: new Set(),
    }
    const crowd = Array.from({ length: 35 }, () =>
      listWebhooks(client, choose.pick(places.projects)),
    )
    await Promise.all(crowd)
    await world.rest(choose, 300, 2000)
  }
  close()
}
