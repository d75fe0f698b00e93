/** Ways to follow a project's feed: by polls, by Server-Sent Events, and by WebSocket. */

import { request as get } from "node:http"
import { WebSocket } from "ws"
import { now } from "../clock.ts"
import type { Got, Operation } from "../history.ts"
import { type Send, fieldOf } from "./http.ts"

/** What to follow. */
interface Subscription {
  readonly url: string
  readonly projectId: string
  /** The event types to follow; all if missing. */
  readonly types?: ReadonlyArray<string> | undefined
  readonly token: string
  readonly cursor: string
  readonly signal: AbortSignal
  readonly onMessage: (message: Message) => void
}

/** A server's message. */
interface Message {
  /** The event, if it brings one; also anything else that is not expected. */
  readonly event?: unknown
  /** The place after the message, if it has one. */
  readonly cursor?: string | undefined
}

export interface Ended {
  /** The answer's status; 0 if there was none. */
  readonly status: number
  /** When the answer began, and when the connection ended. */
  readonly from: number
  readonly to: number
  /** The status with which the server closed the connection, if it refused to go on. */
  readonly refusal?: number | undefined
}

/** A connection. Its promises never reject. */
interface Following {
  /** The answer, as soon as it begins; its status is 0 if the connection fails before. */
  readonly answered: Promise<Pick<Operation, "problem" | "requestId" | "status">>
  readonly ended: Promise<Ended>
}

export type Follow = (subscription: Subscription) => Following

/** The statuses of connections that are admitted: streams, and WebSockets. */
export const admitted: ReadonlyArray<number> = [200, 101]

/** An event's id. */
const idOf = (event: unknown): string => String(fieldOf(event, "id") ?? "an event without an id")

/** Reads over one connection. Events settle with the cursor that follows them: those after it come again. */
export const readOn = (
  follow: Follow,
  subscription: Omit<Subscription, "onMessage">,
  take: (got: Got) => void,
) => {
  const expired = new AbortController()
  const signal = AbortSignal.any([subscription.signal, expired.signal])
  let { cursor: reached } = subscription
  const unsettled: Array<Got> = []
  const settle = (isSettled: boolean): void => {
    for (const one of unsettled.splice(0)) take({ ...one, isSettled })
  }
  const { answered, ended } = follow({
    ...subscription,
    signal,
    onMessage: ({ cursor, event }) => {
      // The server says why it has to begin anew.
      if (fieldOf(event, "reason") !== undefined) expired.abort()
      if (event !== undefined) unsettled.push({ eventId: idOf(event), at: now(), isSettled: false })
      if (cursor === undefined) return
      reached = cursor
      settle(true)
    },
  })
  const read = async () => {
    const end = await ended
    settle(false)
    const isExpired = expired.signal.aborted || end.status === 410 || end.refusal === 410
    return { ...end, reached, isExpired }
  }
  return { answered, ended: read() }
}

/** Asks for one page, and waits some seconds for an event. */
export const polling =
  (send: Send, limit: number, wait: number): Follow =>
  ({ cursor, onMessage, projectId, token, types, url }) => {
    const from = now()
    const only = types === undefined ? "" : `&types=${types.join(",")}`
    const query = `after=${cursor}&limit=${limit}&wait=${wait}${only}`
    const path = `/v2/projects/${projectId}/events?${query}`
    const ask = async () => {
      const { data, next, problem, requestId, status } = await send(url, {
        method: "GET",
        path,
        token,
      })
      if (status === 200 && next !== undefined && Array.isArray(data)) {
        for (const event of data) onMessage({ event })
        onMessage({ cursor: next })
      }
      return { status, problem, requestId }
    }
    const answered = ask()
    return { answered, ended: answered.then(({ status }) => ({ status, from, to: now() })) }
  }

const partOf = (block: string, name: string): string | undefined =>
  new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1]

/** Follows a stream until it ends. */
export const listen: Follow = ({ cursor, onMessage, projectId, signal, token, types, url }) => {
  const headers = {
    Accept: "text/event-stream",
    Authorization: `Bearer ${token}`,
    ...(cursor !== "start" && { "Last-Event-ID": cursor }),
  }
  const query = new URLSearchParams({
    ...(cursor === "start" && { after: cursor }),
    ...(types !== undefined && { types: types.join(",") }),
  })
  const path = `/v2/projects/${projectId}/events?${query}`
  const request = get(url + path, { headers, agent: false, signal })
  let answer = { status: 0, from: now() }
  const ended = new Promise<Ended>((resolve) => {
    const end = () => resolve({ ...answer, to: now() })
    request.on("error", end)
    request.on("close", end)
  })
  const answered = new Promise<{ readonly status: number }>((resolve) => {
    void ended.then(({ status }) => resolve({ status }))
    request.on("response", (response) => {
      answer = { status: response.statusCode ?? 0, from: now() }
      resolve({ status: answer.status })
      let rest = ""
      response.setEncoding("utf8").on("data", (text: string) => {
        const blocks = (rest + text).split("\n\n")
        rest = blocks.pop() ?? ""
        for (const block of blocks) {
          const data = partOf(block, "data")
          const event: unknown = data === undefined ? undefined : JSON.parse(data)
          onMessage({ event, cursor: partOf(block, "id") })
        }
      })
      response.on("error", () => {})
    })
  })
  request.end()
  return { ended, answered }
}

/** What a frame says to a reader. A reader takes an unknown one for an event, which it never was sent. */
const messageOf = (frame: unknown): Message => {
  switch (fieldOf(frame, "type")) {
    case "cursor":
      return { cursor: String(fieldOf(frame, "cursor")) }
    case "event":
      return { event: fieldOf(frame, "event") }
    case "error":
      return {}
    default:
      return { event: frame }
  }
}

/** Follows by WebSocket until the connection ends. */
export const subscribe: Follow = ({ cursor, onMessage, projectId, signal, token, types, url }) => {
  const headers = { Authorization: `Bearer ${token}` }
  const socket = new WebSocket(`${url.replace("http", "ws")}/v2/realtime`, "tenure.v1", { headers })
  const send = (frame: object): void => socket.send(JSON.stringify(frame))
  let answer = { status: 0, from: now() }
  const leave = () => socket.terminate()
  signal.addEventListener("abort", leave)
  // The end tells as much.
  socket.on("error", () => {})
  socket.on("message", (data) => {
    const frame: unknown = JSON.parse(String(data))
    if (fieldOf(frame, "type") === "ping") send({ type: "pong" })
    else onMessage(messageOf(frame))
  })
  // The library tells about the end only when another connection may have its slot already.
  let over: number | undefined
  socket.on("upgrade", ({ socket: connection }) => connection.once("end", () => (over = now())))
  const ended = new Promise<Ended>((resolve) => {
    socket.on("close", (code) => {
      signal.removeEventListener("abort", leave)
      // A close frame tells a status with its code.
      resolve({ ...answer, to: over ?? now(), refusal: code > 4000 ? code - 4000 : undefined })
    })
  })
  const answered = new Promise<{ readonly status: number }>((resolve) => {
    void ended.then(({ status }) => resolve({ status }))
    const begin = (status: number): void => {
      answer = { status, from: now() }
      resolve({ status })
    }
    socket.on("open", () => {
      begin(101)
      send({ type: "subscribe", project: projectId, after: cursor, types })
    })
    socket.on("unexpected-response", (_, { statusCode = 0 }) => {
      begin(statusCode)
      socket.terminate()
    })
  })
  if (signal.aborted) leave()
  return { ended, answered }
}
