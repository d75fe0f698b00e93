/** API requests over HTTP, and their answers. */

import { Agent, request as send } from "node:http"
import { text } from "node:stream/consumers"
import * as Predicate from "effect/Predicate"

/** An answer, or why it is missing. */
interface Answer {
  /** 0 if there is no answer. */
  readonly status: number
  readonly requestId?: string | undefined
  readonly data?: unknown
  readonly error?: unknown
  /** Whether the answer says that it repeats an earlier one. */
  readonly isReplayed: boolean
  /** The cursor after a page. */
  readonly next?: string | undefined
  readonly problem?: string | undefined
}

export interface Request {
  readonly method: string
  readonly path: string
  readonly token: string
  /** An object that is sent as JSON, or JSON lines. */
  readonly body?: object | string | undefined
  readonly idempotencyKey?: string | undefined
}

/** Sends a request to the server at a URL. Never rejects. */
export type Send = (url: string, request: Request) => Promise<Answer>

const longestMillis = 60_000

const unanswered = (problem: string, status = 0): Answer => ({ status, isReplayed: false, problem })

/** Reads JSON; `undefined` if it is none. */
export const parse = (body: string): unknown => {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

/** Returns a value's field, if it is an object that has it. */
export const fieldOf = (value: unknown, name: string): unknown =>
  Predicate.hasProperty(value, name) ? value[name] : undefined

const read = (status: number, body: string, isReplayed: boolean): Answer => {
  const envelope = parse(body)
  const requestId = fieldOf(envelope, "request_id")
  if (fieldOf(envelope, "code") !== status || typeof requestId !== "string") {
    return unanswered(`no valid envelope: ${body.slice(0, 200)}`, status)
  }
  const next = fieldOf(envelope, "next")
  return {
    status,
    requestId,
    data: fieldOf(envelope, "data"),
    error: fieldOf(envelope, "error"),
    isReplayed,
    next: next === undefined ? undefined : String(next),
  }
}

// Connections that are used once.
const fresh = new Agent({ keepAlive: false })

/** Sends a request over an agent's connection. */
const sendOnce = (
  url: string,
  question: Request,
  agent: Agent,
  isRepeating: boolean,
): Promise<Answer> =>
  new Promise((resolve) => {
    const { body, idempotencyKey, method, path, token } = question
    const headers = {
      Authorization: `Bearer ${token}`,
      ...(body !== undefined && {
        "Content-Type": typeof body === "string" ? "application/x-ndjson" : "application/json",
      }),
      ...(idempotencyKey !== undefined && { "Idempotency-Key": idempotencyKey }),
    }
    const request = send(new URL(path, url), { method, headers, agent }, (response) => {
      text(response).then(
        (content) => {
          const isReplayed = response.headers["idempotent-replayed"] === "true"
          resolve(read(response.statusCode ?? 0, content, isReplayed))
        },
        (fault: unknown) => resolve(unanswered(String(fault))),
      )
    })
    const giveUp = () => request.destroy(new Error(`no answer in ${longestMillis} ms`))
    const timer = setTimeout(giveUp, longestMillis)
    request.on("close", () => clearTimeout(timer))
    request.on("error", (fault) => {
      // The server may close a connection that was idle just as it is used again.
      if (isRepeating && request.reusedSocket && method === "GET") {
        resolve(sendOnce(url, question, fresh, false))
      } else resolve(unanswered(fault.message))
    })
    request.end(typeof body === "object" ? JSON.stringify(body) : body)
  })

/** Makes a client that keeps its connections, and repeats reads whose connection was closed meanwhile, or does not. */
export const makeSend = (
  isRepeating = true,
): { readonly send: Send; readonly close: () => void } => {
  const agent = new Agent({ keepAlive: true })
  return {
    close: () => agent.destroy(),
    send: (url, question) => sendOnce(url, question, agent, isRepeating),
  }
}
