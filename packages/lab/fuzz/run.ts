/** Sends generated exchanges to all hosts, and compares what they answer. */

import * as fc from "fast-check"
import { type HostReply, compare } from "./compare.ts"
import { type Client, type Exchange, makeClient } from "./connection.ts"
import type { Host } from "./hosts.ts"
import { exchange } from "./requests.ts"
import { webhookPlaceholder } from "./vocabulary.ts"

/** An exchange that hosts did not answer as they must. */
export interface Failure {
  readonly exchange: Exchange
  readonly replies: ReadonlyArray<HostReply>
  readonly problems: ReadonlyArray<string>
}

/** What to send. */
export interface Plan {
  readonly seed: number
  readonly requests: number
  /** How many exchanges are in flight at the same time. */
  readonly concurrency: number
  readonly onFailure: (failure: Failure) => void
  /** How long a host may take to answer, in milliseconds. */
  readonly deadline?: number
}

type Target = Host & { readonly client: Client }

// By itself, fast-check prefers the first alternative's edge cases over the weights.
const unbiased = fc.noBias(exchange)

/** How many exchanges a block has. Each block has its own seed, so that few are kept in memory. */
const blockLength = 500

const blockOf = (seed: number, block: number, most: number): ReadonlyArray<Exchange> =>
  fc.sample(unbiased, { seed: seed * 1_000_003 + block, numRuns: Math.min(blockLength, most) })

const replaceAll = (packets: ReadonlyArray<Buffer>, id: string): ReadonlyArray<Buffer> =>
  packets.map((packet) =>
    Buffer.from(packet.toString("latin1").replaceAll(webhookPlaceholder, id), "latin1"),
  )

/** Sends an exchange. If it names a webhook, one is made for it, and its id is hidden in the reply. */
const ask = async (one: Exchange, { client, createWebhook, name }: Target): Promise<HostReply> => {
  if (!one.packets.some((packet) => packet.includes(webhookPlaceholder))) {
    return { host: name, reply: await client.send(one) }
  }
  const id = await createWebhook()
  const reply = await client.sendOnce({ ...one, packets: replaceAll(one.packets, id) })
  const answers = reply.answers.map((answer) => ({
    ...answer,
    body: answer.body.replaceAll(id, webhookPlaceholder),
  }))
  return { host: name, reply: { ...reply, answers } }
}

/** Sends the requests. Returns how many were sent, to each host. */
export const run = async (
  hosts: ReadonlyArray<Host>,
  { concurrency, deadline, onFailure, requests, seed }: Plan,
): Promise<number> => {
  const targets = hosts.map((host) => ({ ...host, client: makeClient(host.port, deadline) }))

  const check = async (one: Exchange): Promise<void> => {
    const replies = await Promise.all(targets.map((target) => ask(one, target)))
    const problems = compare(one, replies)
    if (problems.length > 0) onFailure({ exchange: one, replies, problems })
  }

  // Several lanes take from the same iterator.
  const lane = async (exchanges: Iterable<Exchange>): Promise<void> => {
    for (const one of exchanges) await check(one)
  }

  let sent = 0
  for (let block = 0; sent < requests; block++) {
    const exchanges = blockOf(seed, block, requests - sent)
    const shared = exchanges.values()
    await Promise.all(Array.from({ length: concurrency }, () => lane(shared)))
    await Promise.all(hosts.map((host) => host.deleteWebhooks()))
    for (const { methods } of exchanges) sent += methods.length
  }
  for (const { client } of targets) client.close()
  return sent
}
