/** Clients of the servers, over HTTP. */

import { setTimeout as sleep } from "node:timers/promises"
import * as Predicate from "effect/Predicate"
import { type Action, type Manner, manners, type Operation, type Webhook } from "../history.ts"
import { random, type Random } from "../random.ts"
import { places, userIds, type World } from "../world/World.ts"
import { makeSend, type Request, type Send } from "./http.ts"
import { anyDate, type Recorder } from "./recorder.ts"

/** What a client works with. */
interface Client {
  readonly world: World
  readonly recorder: Recorder
  readonly choose: Random
  readonly send: Send
  readonly key: string
  /** The webhooks that it has created and not deleted. */
  readonly webhooks: Array<Webhook & { readonly projectId: string }>
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
  readonly subject?: string | undefined
  readonly expected: ReadonlyArray<number>
}

/** Asks any of the servers. */
const ask = (client: Client, question: Question): Promise<Operation> => {
  const { choose, key, recorder, send, world } = client
  const { body, method, path, ...known } = question
  const process = choose.pick(places.servers)
  const token = world.tokens[key] ?? ""
  return recorder.record({ ...known, process, key }, async () => {
    const url = world.servers.get(process)?.url ?? ""
    const { data, next: _, ...answer } = await send(url, { body, method, path, token })
    return { ...answer, webhook: known.action === "createWebhook" ? webhookOf(data) : undefined }
  })
}

const base = (projectId: string): string => `/v2/projects/${projectId}`

const extend = async (client: Client, projectId: string): Promise<void> => {
  const userId = client.choose.pick(userIds)
  const { endDate, expected } = anyDate(client)
  await ask(client, {
    action: "extend",
    projectId,
    userId,
    endDate,
    method: "PATCH",
    path: `${base(projectId)}/memberships/${userId}/extend`,
    body: { extend: client.choose.chance(0.5) ? endDate : new Date(endDate).toISOString() },
    expected,
  })
}

const extendAll = async (client: Client, projectId: string): Promise<void> => {
  const { endDate, expected } = anyDate(client)
  await ask(client, {
    action: "extendAll",
    projectId,
    endDate,
    method: "PATCH",
    path: `${base(projectId)}/memberships/extend`,
    body: { extend: endDate },
    expected,
  })
}

const mannerOf = (choose: Random): Manner =>
  choose.chance(0.5) ? "fast" : (manners[choose.below(manners.length)] ?? "fast")

const createWebhook = async (client: Client, projectId: string): Promise<void> => {
  const { webhook } = await ask(client, {
    action: "createWebhook",
    projectId,
    method: "POST",
    path: `${base(projectId)}/integrations/webhooks`,
    body: { url: client.world.receivers.url(mannerOf(client.choose)) },
    expected: [200],
  })
  if (webhook !== undefined) client.webhooks.push({ ...webhook, projectId })
}

const deleteWebhook = async (client: Client): Promise<void> => {
  const webhook = client.webhooks.shift()
  if (webhook === undefined) return
  const { id, projectId } = webhook
  await ask(client, {
    action: "deleteWebhook",
    projectId,
    subject: id,
    method: "DELETE",
    path: `${base(projectId)}/integrations/webhooks/${id}`,
    expected: [200],
  })
}

const listWebhooks = async (client: Client, projectId: string): Promise<void> => {
  await ask(client, {
    action: "listWebhooks",
    projectId,
    method: "GET",
    path: `${base(projectId)}/integrations/webhooks`,
    expected: [200],
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
  if (dice < 0.62) return extend(client, projectId)
  if (dice < 0.7) return extendAll(client, projectId)
  if (dice < 0.76) return createWebhook(client, projectId)
  if (dice < 0.82) return deleteWebhook(client)
  if (dice < 0.9) return listWebhooks(client, projectId)
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
  const client: Client = { world, recorder, choose, send, key, webhooks: [] }
  while (!isOver()) {
    await step(client)
    await sleep(choose.between(20, 150))
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
  for (const key of keys) {
    if (isOver()) break
    const client: Client = { world, recorder, choose, send, key, webhooks: [] }
    const crowd = Array.from({ length: 35 }, () =>
      listWebhooks(client, choose.pick(places.projects)),
    )
    await Promise.all(crowd)
    await sleep(choose.between(300, 2000))
  }
  close()
}
