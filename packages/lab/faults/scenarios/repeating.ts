/**
 * Kills servers while they answer requests with an idempotency key, repeats the requests at two other
 * servers at the same time, and counts what was changed: `npm run repeating -- --seeds 1-200`.
 */

import { dirname } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { parseArgs } from "node:util"
import { parseSeeds } from "../../arguments.ts"
import { random } from "../random.ts"
import { type Request, fieldOf, makeSend } from "../workload/http.ts"
import { connectTo } from "../world/database.ts"
import type { Server } from "../world/server.ts"
import type { Scenario } from "../world/stage.ts"

// The longest time from a request until its server ends, in milliseconds.
const maxMillis = 40

const token = "repeating"
const project = "/v2/projects/p1"
const webhooks = `${project}/integrations/webhooks`

type Kind = "extend" | "extendAll" | "create" | "delete"

const requestOf = (kind: Kind, seed: number, removed: string): Omit<Request, "idempotencyKey"> => {
  const body = { extend: Date.UTC(2040, 0, 1) + seed }
  switch (kind) {
    case "extend":
      return { method: "PATCH", path: `${project}/memberships/1001/extend`, token, body }
    case "extendAll":
      return { method: "PATCH", path: `${project}/memberships/extend`, token, body }
    case "create":
      return {
        method: "POST",
        path: webhooks,
        token,
        body: { url: `https://receiver.example/${seed}` },
      }
    case "delete":
      return { method: "DELETE", path: removed, token }
  }
}

// That a secret was shown again is no change.
const counts = `
  SELECT (SELECT count(*) FROM tenure.audit WHERE action <> 'secret_shown')::integer AS changes,
         (SELECT count(*) FROM tenure.events)::integer AS events,
         (SELECT count(*) FROM tenure.deliveries)::integer
           + (SELECT count(*) FROM tenure.finished_deliveries)::integer
           + (SELECT count(event_id) FROM tenure.delivered_runs, unnest(event_ids) event_id)::integer AS deliveries,
         (SELECT count(*) FROM tenure.webhooks)::integer AS webhooks`

export const run: Scenario = async (stage, args) => {
  const { values } = parseArgs({ args, options: { seeds: { type: "string", default: "1-5" } } })
  const seeds = parseSeeds(values.seeds)
  const postgres = await stage.postgres()
  const memberships = [{ user_id: "1001", end_date: "2030-01-01T00:00:00.000Z" }]
  const environment = {
    SUSPENSION: "false",
    NODE_COMPILE_CACHE: dirname(await stage.program()),
  }
  const started = (): Promise<Server> =>
    stage.server(
      "server",
      postgres.url,
      { projects: [{ id: "p1", memberships, api_keys: [token] }] },
      environment,
    )
  const { send } = stage.own(makeSend(false), ({ close }) => close())
  const session = stage.own(await connectTo(postgres.url), ({ close }) => close())

  /** Counts changes, events, deliveries and webhooks in the tables. */
  const counted = async (): Promise<ReadonlyArray<number>> => {
    const [row = {}] = await session.query<Record<string, number>>(counts)
    return Object.values(row)
  }

  const others = [await started(), await started()] as const
  const change = (kind: Kind, seed: number, removed = "") =>
    send(others[0].url, {
      ...requestOf(kind, seed, removed),
      idempotencyKey: crypto.randomUUID(),
    })
  /** Creates a webhook that nobody answers, and returns its path. */
  const newWebhook = async (): Promise<string> =>
    `${webhooks}/${fieldOf((await change("create", 0)).data, "id")}`

  await newWebhook()
  // Servers are started before they are needed.
  const ready = [started(), started()]
  const figures = { requests: 0, answered: 0, madeBefore: 0, failures: 0 }
  for (const seed of seeds) {
    const choose = random(seed)
    ready.push(started())
    const victim = await ready.shift()
    if (victim === undefined) break
    const kind = choose.pick(["extend", "extendAll", "create", "delete"] as const)
    const removed = kind === "delete" ? await newWebhook() : ""
    const request = { ...requestOf(kind, seed, removed), idempotencyKey: `seed-${seed}` }
    // A process's first request is slow, and most kills would come before its statement.
    const warmUp = { ...request, path: "/v2/warm-up" }
    await Promise.all(Array.from({ length: 3 }, () => send(victim.url, warmUp)))
    const before = await counted()
    const [, , , live = 0] = before
    const answer = send(victim.url, request)
    await sleep(choose.below(maxMillis + 1))
    await victim.kill()
    const answered = (await answer).status || undefined
    const made = (await counted())[0] !== before[0]
    const responses = await Promise.all(others.map(({ url }) => send(url, request)))
    const changed = (await counted()).map((count, index) => count - (before[index] ?? 0))
    const isEvent = kind === "extend" || kind === "extendAll"
    const difference = kind === "create" ? 1 : kind === "delete" ? -1 : 0
    const expected = [1, isEvent ? 1 : 0, isEvent ? live : 0, difference]
    const data = responses.map((response) => JSON.stringify(response.data))
    // A project may have 50 webhooks.
    if (kind === "create") {
      await change("delete", seed, `${webhooks}/${fieldOf(responses[0]?.data, "id")}`)
    }
    const statuses = responses.map(({ status }) => status)
    const isRight =
      statuses.every((status) => status === 200) &&
      data[0] === data[1] &&
      JSON.stringify(changed) === JSON.stringify(expected)
    figures.requests++
    if (figures.requests % 20 === 0) console.log(figures)
    if (answered !== undefined) figures.answered++
    if (answered === undefined && made) figures.madeBefore++
    if (!isRight) {
      figures.failures++
      console.log(`seed ${seed}, ${kind}:`, { answered, made, statuses, changed, expected, data })
    }
  }
  await Promise.all(ready)
  console.log(figures)
  return figures.failures === 0
}
