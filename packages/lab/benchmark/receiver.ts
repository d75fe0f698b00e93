/**
 * A process that receives notifications, verifies each, and reports to its parent what has arrived. A path begins with
 * the milliseconds until the answer.
 */

import { type ServerResponse, createServer } from "node:http"
import { WebhookSecret, verifySignature } from "@tenure/core/signature"
import * as Result from "effect/Result"
import { listen } from "../listening.ts"
import { announce } from "./servers/server.ts"

export interface Arrivals {
  readonly total: number
  readonly distinct: number
  readonly unverified: number
  /** Milliseconds from commit to arrival, for what arrived since the last report. */
  readonly latencies: ReadonlyArray<number>
  /** When the first one since then arrived. */
  readonly firstAt: number | undefined
  /** When the last one arrived. */
  readonly lastAt: number | undefined
  /** Microseconds on a processor so far. */
  readonly cpu: number
}

const secrets = new Map<string, WebhookSecret>()
const ids = new Set<string>()
let total = 0
let unverified = 0
let latencies: Array<number> = []
let firstAt: number | undefined
let lastAt: number | undefined

const delayOf = (path = ""): number => Number(path.split("/")[1])

const answer = (response: ServerResponse): void => {
  response.writeHead(204).end()
}

const server = createServer((request, response) => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    const delay = delayOf(request.url)
    if (delay > 0) setTimeout(answer, delay, response)
    else answer(response)
    const body = Buffer.concat(chunks)
    const secret = secrets.get(request.url ?? "")
    const notification = { headers: request.headers, body, now: Date.now() }
    const verdict = verifySignature(notification, secret === undefined ? [] : [secret])
    total++
    lastAt = Date.now()
    firstAt ??= lastAt
    if (Result.isFailure(verdict)) unverified++
    ids.add(`${request.url} ${String(request.headers["webhook-id"])}`)
    const { data } = JSON.parse(body.toString())
    latencies.push(lastAt - Number(data.at))
  })
})

/** A webhook to verify with. Without one, the parent asks for a report. */
interface Message {
  readonly path?: string
  readonly secret?: string
}

announce(await listen(server), ({ path, secret }: Message): Arrivals => {
  if (path !== undefined && secret !== undefined) secrets.set(path, WebhookSecret(secret))
  const { system, user } = process.cpuUsage()
  const cpu = system + user
  const report = { total, distinct: ids.size, unverified, latencies, firstAt, lastAt, cpu }
  latencies = []
  firstAt = undefined
  return report
})
