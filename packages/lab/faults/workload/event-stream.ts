/** A stream of Server-Sent Events, as it arrives. */

import { request as send } from "node:http"
import { now } from "../clock.ts"
import type { Ended, Follow, Message } from "./following.ts"

const fieldOf = (block: string, name: string): string | undefined =>
  new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1]

const messageOf = (block: string): Message => {
  const data = fieldOf(block, "data")
  return { event: data === undefined ? undefined : JSON.parse(data), cursor: fieldOf(block, "id") }
}

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
  const request = send(url + path, { headers, agent: false, signal })
  let answer = { status: 0, from: now() }
  const ended = new Promise<Ended>((resolve) => {
    const end = () => resolve({ ...answer, to: now(), refusal: undefined })
    request.on("error", end)
    request.on("close", end)
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
