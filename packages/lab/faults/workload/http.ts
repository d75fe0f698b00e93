/** Requests of the API over HTTP, and their answers. */

import { Agent, request as send } from "node:http"
import { text } from "node:stream/consumers"
import * as Predicate from "effect/Predicate"

/** An answer, or why it is missing. */
interface Answer {
  /** 0 if there is no answer. */
  readonly status: number
  readonly requestId: string | undefined
  readonly data: unknown
  /** What the answer says of its error. */
  readonly error: unknown
  /** Whether the answer says that it repeats an earlier one. */
  readonly isReplayed: boolean
  /** The cursor after a page. */
  readonly next: string | undefined
  readonly problem: string | undefined
}

/** A request. */
export interface Request {
  readonly method: string
  readonly path: string
  readonly token: string
  /** An object that is sent as JSON, or lines of JSON. */
  readonly body?: object | string | undefined
  readonly idempotencyKey?: string | undefined
}

/** Sends a request to the server at a URL. Never rejects. */
export type Send = (url: string, request: Request) => Promise<Answer>

const longestMillis = 60_000

const unanswered = (problem: string): Answer => ({
  status: 0,
  requestId: undefined,
  data: undefined,
  error: undefined,
  isReplayed: false,
  next: undefined,
  problem,
})

const parse = (body: string): unknown => {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

/** Returns a field of a value, if it is an object that has it. */
export const fieldOf = (value: unknown, name: string): unknown =>
  Predicate.hasProperty(value, name) ? value[name] : undefined

const read = (status: number, body: string, isReplayed: boolean): Answer => {
  const envelope = parse(body)
  const isValid =
    Predicate.hasProperty(envelope, "code") &&
    envelope.code === status &&
    Predicate.hasProperty(envelope, "request_id") &&
    typeof envelope.request_id === "string"
  if (!isValid) {
    const problem = `no valid envelope: ${body.slice(0, 200)}`
    return { ...unanswered(problem), status }
  }
  const next = fieldOf(envelope, "next")
  return {
    status,
    requestId: String(envelope.request_id),
    data: fieldOf(envelope, "data"),
    error: fieldOf(envelope, "error"),
    isReplayed,
    next: next === undefined ? undefined : String(next),
    problem: undefined,
  }
}

// Connections that are used once.
const fresh = new Agent({ keepAlive: false })

const typeOf = (body: object | string): string =>
  typeof body === "string" ? "application/x-ndjson" : "application/json"

/** Sends a request over a connection of an agent. */
const sendOnce = (url: string, question: Request, agent: Agent): Promise<Answer> =>
  new Promise((resolve) => {
    const { body, idempotencyKey, method, path, token } = question
    const { hostname, port } = new URL(url)
    const headers = {
      Authorization: `Bearer ${token}`,
      ...(body !== undefined && { "Content-Type": typeOf(body) }),
      ...(idempotencyKey !== undefined && { "Idempotency-Key": idempotencyKey }),
    }
    const request = send({ hostname, port, path, method, headers, agent }, (response) => {
      text(response).then(
        (content) => {
          const isReplayed = response.headers["idempotent-replayed"] === "true"
          resolve(read(response.statusCode ?? 0, content, isReplayed))
        },
        (fault: unknown) => resolve(unanswered(String(fault))),
      )
    })
    const timer = setTimeout(
      () => request.destroy(new Error(`no answer in ${longestMillis} ms`)),
      longestMillis,
    )
    request.on("close", () => clearTimeout(timer))
    request.on("error", (fault) => {
      // The server may close a connection that was idle just as it is used again.
      if (request.reusedSocket && method === "GET") resolve(sendOnce(url, question, fresh))
      else resolve(unanswered(fault.message))
    })
    request.end(typeof body === "object" ? JSON.stringify(body) : body)
  })

/** Makes a client that keeps its connections. */
export const makeSend = (): { readonly send: Send; readonly close: () => void } => {
  const agent = new Agent({ keepAlive: true })
  return {
    close: () => agent.destroy(),
    send: (url, question) => sendOnce(url, question, agent),
  }
}
