/** Receivers with every manner, all on one port: the path names the manner, and no two webhooks share one. */

import { type IncomingMessage, type ServerResponse, createServer } from "node:http"
import { text } from "node:stream/consumers"
import { setTimeout as sleep } from "node:timers/promises"
import { now } from "../clock.ts"
import { type Arrival, type Manner, manners } from "../history.ts"
import { closeServer, listen } from "./ports.ts"

/** Sends an answer and returns its status, or `undefined` for none. */
type Answer = (response: ServerResponse, attempt: number) => Promise<number | undefined> | number

const plainly = (response: ServerResponse, status: number): number => {
  response.writeHead(status).end()
  return status
}

const hugeAnswer = "x".repeat(2 ** 20)

const answers: Readonly<Record<Exclude<Manner, "hanging">, Answer>> = {
  fast: (response) => plainly(response, 204),
  slow: async (response, attempt) => {
    await sleep(200 + 100 * (attempt % 8))
    return plainly(response, 204)
  },
  failing: (response) => plainly(response, 500),
  shaky: (response, attempt) => plainly(response, attempt % 3 === 0 ? 200 : 500),
  gone: (response) => plainly(response, 410),
  busy: (response, attempt) => {
    if (attempt % 2 === 0) return plainly(response, 202)
    const status = attempt % 4 === 1 ? 429 : 503
    response.writeHead(status, { "Retry-After": "1" }).end()
    return status
  },
  resetting: async (response) => {
    response.socket?.resetAndDestroy()
    return undefined
  },
  talkative: (response) => {
    response.writeHead(200).end(hugeAnswer)
    return 200
  },
}

const mannerOf = (path: string): Manner => {
  const [, name] = path.split("/")
  return manners.find((manner) => manner === name) ?? "fast"
}

export const startReceivers = async () => {
  const given: Record<string, Manner> = {}
  const arrivals: Array<() => Arrival> = []
  const attempts = new Map<string, number>()
  const hanging = new Set<ServerResponse>()
  let isWell = false
  let origin = ""

  const answer = async (manner: Manner, response: ServerResponse, url: string) => {
    const attempt = 1 + (attempts.get(url) ?? 0)
    attempts.set(url, attempt)
    if (manner !== "hanging") return answers[manner](response, attempt)
    hanging.add(response)
    return undefined
  }

  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const at = now()
    const outcome: { status: number | undefined; ended: number | undefined } = {
      status: undefined,
      ended: undefined,
    }
    response.on("close", () => {
      outcome.ended = now()
    })
    const path = request.url ?? ""
    const url = `${origin}${path}`
    const body = await text(request)
    const headers = Object.fromEntries(
      Object.entries(request.headers)
        .filter(([name]) => name.startsWith("webhook-"))
        .map(([name, value]) => [name, value?.toString()]),
    )
    // A webhook that is gone stays so: it has been disabled.
    const manner = isWell && mannerOf(path) !== "gone" ? "fast" : mannerOf(path)
    arrivals.push(() => ({ url, at, headers, body, ...outcome }))
    outcome.status = await answer(manner, response, url)
  }

  const server = createServer((request, response) => {
    // The sender may close the connection at any time.
    receive(request, response).catch(() => {})
  })
  origin = `http://127.0.0.1:${await listen(server)}`

  return {
    /** Returns a URL that nobody has yet, whose receiver behaves like this. */
    url: (manner: Manner): string => {
      const url = `${origin}/${manner}/${Object.keys(given).length}`
      given[url] = manner
      return url
    },
    /** How the receiver at each URL behaves. */
    manners: (): Readonly<Record<string, Manner>> => ({ ...given }),
    arrivals: (): ReadonlyArray<Arrival> => arrivals.map((arrival) => arrival()),
    /** From now on, all receivers are fast and accept everything. */
    becomeWell: (): void => {
      isWell = true
      for (const response of hanging) response.destroy()
    },
    close: () => closeServer(server),
  }
}

export type Receivers = Awaited<ReturnType<typeof startReceivers>>
