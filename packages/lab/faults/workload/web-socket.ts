/** A connection by WebSocket, as its frames arrive. */

import { WebSocket } from "ws"
import { now } from "../clock.ts"
import type { Ended, Follow, Message } from "./following.ts"
import { fieldOf } from "./http.ts"

/** What a frame says to a reader. A reader takes an unknown one for an event, which it never was sent. */
const messageOf = (frame: unknown): Message | undefined => {
  switch (fieldOf(frame, "type")) {
    case "cursor":
      return { event: undefined, cursor: String(fieldOf(frame, "cursor")) }
    case "event":
      return { event: fieldOf(frame, "event"), cursor: undefined }
    case "error":
      return undefined
    default:
      return { event: frame, cursor: undefined }
  }
}

/** The status that a close frame tells with its code. */
const refusalOf = (code: number): number | undefined => (code > 4000 ? code - 4000 : undefined)

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
    if (fieldOf(frame, "type") === "ping") return send({ type: "pong" })
    const message = messageOf(frame)
    if (message !== undefined) onMessage(message)
  })
  // The library tells of the end only when another connection may have its slot already.
  let over: number | undefined
  socket.on("upgrade", ({ socket: connection }) => connection.once("end", () => (over = now())))
  const answered = new Promise<number>((resolve) => {
    const begin = (status: number): void => {
      answer = { status, from: now() }
      resolve(status)
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
  const ended = new Promise<Ended>((resolve) => {
    socket.on("close", (code) => {
      signal.removeEventListener("abort", leave)
      resolve({ ...answer, to: over ?? now(), refusal: refusalOf(code) })
    })
  })
  if (signal.aborted) leave()
  return { ended, answered: Promise.race([answered, ended.then(({ status }) => status)]) }
}
