/**
 * A process that keeps a server busy, with one request in flight on each connection. It writes
 * prepared bytes and reads only as much as it must, so that it is never the bottleneck.
 */

import { connect } from "node:net"
import { quantile } from "./rounds.ts"
import { announce } from "./servers/server.ts"

/** The task. */
export interface Load {
  readonly port: number
  readonly connections: number
  readonly seconds: number
  readonly requests: ReadonlyArray<string>
  /** How long each connection rests after a response; it does not by default. */
  readonly restMillis?: number
}

/** The responses. */
export interface Answered {
  readonly responses: number
  /** Responses with a status other than 200, and the first one. */
  readonly failures: number
  readonly firstFailure: string | undefined
  readonly seconds: number
  /** The 99th percentile of the milliseconds until a response. */
  readonly p99: number
  /** The generator's share in one processor. */
  readonly busy: number
}

const success = "HTTP/1.1 200"

/** The length of the response at a text's beginning, if it is complete. */
const lengthOf = (text: string): number | undefined => {
  const end = text.indexOf("\r\n\r\n")
  if (end < 0) return undefined
  const head = text.slice(0, end)
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (length === undefined) throw new Error(`a response without a length: ${head}`)
  const total = end + 4 + Number(length)
  return text.length >= total ? total : undefined
}

const generate = async ({
  connections,
  port,
  requests,
  restMillis,
  seconds,
}: Load): Promise<Answered> => {
  let [next, responses, failures] = [0, 0, 0]
  let firstFailure: string | undefined
  const latencies: Array<number> = []
  const start = performance.now()
  const cpu = process.cpuUsage()
  const end = start + 1000 * seconds

  const count = (text: string): void => {
    responses++
    if (text.startsWith(success)) return
    failures++
    firstFailure ??= text
  }

  const converse = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true })
      let text = ""
      let askedAt = 0
      const ask = () => {
        askedAt = performance.now()
        socket.write(requests[next++ % requests.length] ?? "", "latin1")
      }
      socket.setEncoding("latin1")
      socket.on("connect", ask)
      socket.on("error", reject)
      socket.on("close", () => resolve())
      socket.on("data", (chunk: string) => {
        text += chunk
        const length = lengthOf(text)
        if (length === undefined) return
        latencies.push(performance.now() - askedAt)
        count(text)
        text = ""
        if (performance.now() >= end) socket.destroy()
        else if (restMillis === undefined) ask()
        else setTimeout(ask, restMillis)
      })
    })

  await Promise.all(Array.from({ length: connections }, converse))
  const elapsed = (performance.now() - start) / 1000
  const { system, user } = process.cpuUsage(cpu)
  const busy = (system + user) / 1_000_000 / elapsed
  const p99 = quantile(latencies, 0.99)
  return { responses, failures, firstFailure, seconds: elapsed, p99, busy }
}

announce("ready", generate)
