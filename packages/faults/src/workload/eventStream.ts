/** A stream of Server-Sent Events, as it arrives. */

import { request as send } from "node:http"
import { now } from "../clock.ts"

/** A message of a stream. */
interface Message {
  readonly type: string
  /** The place after the message, if it has one. */
  readonly cursor: string | undefined
  readonly data: string
}

/** What to follow. */
export interface Subscription {
  readonly url: string
  readonly path: string
  readonly token: string
  readonly cursor: string
  readonly signal: AbortSignal
  readonly onMessage: (message: Message) => void
}

/** A connection that has ended. */
export interface Ended {
  /** The status of the answer; 0 if there was none. */
  readonly status: number
  /** When the answer began, and when it ended. */
  readonly from: number
  readonly to: number
  readonly problem: string | undefined
}

const fieldOf = (block: string, name: string): string | undefined =>
  new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1]

const messageOf = (block: string): Message => ({
  type: fieldOf(block, "event") ?? "",
  cursor: fieldOf(block, "id"),
  data: fieldOf(block, "data") ?? "",
})

/** A connection. Its promises never reject. */
export interface Stream {
  /** The status of the answer, as soon as it begins; 0 if there is none. */
  readonly answered: Promise<number>
  readonly ended: Promise<Ended>
}

/** Follows a stream until it ends. */
export const listen = ({ cursor, onMessage, path, signal, token, url }: Subscription): Stream => {
  const headers = {
    Accept: "text/event-stream",
    Authorization: `Bearer ${token}`,
    ...(cursor !== "start" && { "Last-Event-ID": cursor }),
  }
  const query = cursor === "start" ? "?after=start" : ""
  const request = send(`${url}${path}${query}`, { headers, agent: false, signal })
  let answer = { status: 0, from: now() }
  const ended = new Promise<Ended>((resolve) => {
    request.on("error", ({ message }) => resolve({ ...answer, to: now(), problem: message }))
    request.on("close", () => resolve({ ...answer, to: now(), problem: undefined }))
  })
  const answered = new Promise<number>((resolve) => {
    request.on("response", (response) => {
      answer = { status: response.statusCode ?? 0, from: now() }
      resolve(answer.status)
      let rest = ""
      response.setEncoding("utf8").on("data", (text: string) => {
        const blocks = (rest + text).split("\n\n")
        rest = blocks.pop() ?? ""
        for (const block of blocks) onMessage(messageOf(block))
      })
      response.on("error", () => {})
    })
  })
  request.end()
  return { ended, answered: Promise.race([answered, ended.then(({ status }) => status)]) }
}
