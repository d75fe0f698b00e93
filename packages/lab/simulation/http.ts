/** The network between clients and processes: requests and responses over HTTP, and streams. */

import type { ApiRequest, ApiResponse } from "@tenure/core/adapter"
import type { Random } from "../faults/random.ts"
import type { Loop, Machine } from "./loop.ts"
import type { Trouble } from "./weather.ts"

/** What a client hears after a request, in this order. Nothing after `end` or `broken`. */
interface Hearing {
  readonly head: (status: number, headers: ApiResponse["headers"]) => void
  readonly text: (text: string) => void
  readonly end: () => void
  /** The connection broke. */
  readonly broken: () => void
}

/** What a network to the processes does. */
export interface HttpNetwork {
  readonly loop: Loop
  readonly choose: Random
  readonly trouble: () => Trouble
  /** The process that a request reaches. */
  readonly pick: () => number
  /** Has a process respond, if it lives for as long. */
  readonly serve: (
    process: number,
    request: ApiRequest,
    respond: (response: ApiResponse, machine: Machine) => void,
  ) => void
}

/** The network. */
export interface Http {
  /** Sends a request. Returns what tells the network that the client has gone. */
  readonly send: (request: ApiRequest, hearing: Hearing) => () => void
  /** Breaks a process's connections, which clients may hear. */
  readonly crash: (process: number) => void
}

type Stream = Exclude<ApiResponse["body"], string>

// A response's pieces come one after another.
const leastMillis = 0.001

// How long it takes until a connection that does not answer is known to be broken, if it ever is.
const longestSilence = 5000

// So often does a process that streams run what waits for promises.
const turnMillis = 1000

/** Makes the network. */
export const makeHttp = ({ choose, loop, pick, serve, trouble }: HttpNetwork): Http => {
  const connections = new Map<number, Set<() => void>>()

  const send = (request: ApiRequest, hearing: Hearing): (() => void) => {
    const { delay, doubled, lost, unanswered } = trouble()
    const number = pick()
    const own = connections.get(number) ?? new Set()
    connections.set(number, own)
    let isOpen = true
    let isAnswered = false
    let lastAt = 0
    let closeStream: (() => void) | undefined

    const leave = (): void => {
      isOpen = false
      own.delete(cut)
      loop.after(choose.between(...delay), () => closeStream?.())
    }
    const cut = (): void => {
      if (!isOpen) return
      leave()
      hearing.broken()
    }
    own.add(cut)

    /** Has the client hear something, after all that it heard before. */
    const later = (hear: () => void): void => {
      lastAt = Math.max(lastAt + leastMillis, loop.now() + choose.between(...delay))
      loop.after(lastAt - loop.now(), () => {
        if (isOpen) hear()
      })
    }
    /** The client hears nothing more, except maybe that. */
    const fallSilent = (): void => {
      if (choose.chance(0.5)) loop.after(choose.between(0, longestSilence), cut)
    }

    const stream = (body: Stream, machine: Machine): void => {
      let isStreaming = true
      const end = (): void => {
        if (!isStreaming) return
        isStreaming = false
        machine.listen(-1)
        machine.schedule(() => body.close())
      }
      closeStream = end
      machine.listen(1)
      const turn = (): void => {
        if (!isStreaming || !machine.isUp()) return
        loop.loads()
        loop.after(turnMillis, turn)
      }
      turn()
      const pump = (): void =>
        machine.schedule(() =>
          body.receive((text) => {
            if (!isStreaming) return
            if (text === undefined) {
              end()
              return later(() => {
                leave()
                hearing.end()
              })
            }
            if (choose.chance(trouble().lost)) {
              loop.after(choose.between(0, longestSilence), end)
              return fallSilent()
            }
            later(() => hearing.text(text))
            pump()
          }),
        )
      pump()
    }

    const answer = ({ body, headers, status }: ApiResponse, machine: Machine): void => {
      if (isAnswered || !isOpen) {
        if (typeof body !== "string") machine.schedule(() => body.close())
        return
      }
      isAnswered = true
      later(() => hearing.head(status, headers))
      if (typeof body !== "string") return stream(body, machine)
      later(() => {
        hearing.text(body)
        leave()
        hearing.end()
      })
    }

    const arrive = (): void =>
      serve(number, request, (response, machine) => {
        if (!choose.chance(unanswered)) return answer(response, machine)
        if (typeof response.body !== "string") response.body.close()
        fallSilent()
      })
    if (choose.chance(lost)) fallSilent()
    else {
      loop.after(choose.between(...delay), arrive)
      if (choose.chance(doubled)) loop.after(choose.between(...delay), arrive)
    }
    return () => {
      if (isOpen) leave()
    }
  }

  return {
    send,
    crash: (number) => {
      for (const cut of connections.get(number) ?? []) {
        if (choose.chance(0.5)) loop.after(choose.between(0, longestSilence), cut)
      }
    },
  }
}

const utf8 = new TextEncoder()
const clientAddress = "192.0.2.1"

/** Makes a request as it arrives at a process. */
export const requestOf = (
  method: string,
  target: string,
  headers: ApiRequest["headers"],
  body: string,
): ApiRequest => {
  const [path = target, query] = target.split("?")
  return {
    method,
    path,
    query,
    headers,
    body: { _tag: "Bytes", bytes: utf8.encode(body) },
    remoteAddress: clientAddress,
  }
}

/** The server, as clients name it. */
export const baseUrl = "https://tenure.example"

type Fetch = typeof globalThis.fetch

/** Cuts a text in two at any byte. */
const piecesOf = (choose: Random, text: string): ReadonlyArray<Uint8Array> => {
  const bytes = utf8.encode(text)
  if (bytes.length === 0 || choose.chance(0.7)) return [bytes]
  const at = choose.below(bytes.length)
  return [bytes.subarray(0, at), bytes.subarray(at)].filter(({ length }) => length > 0)
}

/** Makes a `fetch` that sends over the network. */
export const makeFetch =
  ({ send }: Http, loop: Loop, choose: Random): Fetch =>
  (input, { body, headers, method = "GET", signal } = {}) =>
    new Promise((resolve, reject) => {
      let controller: ReadableStreamDefaultController<Uint8Array> | undefined
      let isOver = false
      const fail = (cause: unknown): void => {
        if (isOver) return
        isOver = true
        controller?.error(cause)
        reject(cause)
      }
      const heard =
        <Given extends ReadonlyArray<unknown>>(hear: (...given: Given) => void) =>
        (...given: Given): void =>
          loop.enter(() => {
            if (!isOver) hear(...given)
          })
      const target = String(input).slice(baseUrl.length)
      const sentHeaders = Object.fromEntries(new Headers(headers))
      const sentText = typeof body === "string" ? body : ""
      const leave = send(requestOf(method, target, sentHeaders, sentText), {
        head: heard((status, fields) => {
          const stream = new ReadableStream<Uint8Array>({
            start: (given) => {
              controller = given
            },
            cancel: () => {
              isOver = true
              leave()
            },
          })
          resolve(new Response(stream, { status, headers: fields }))
        }),
        text: heard((text) => {
          for (const piece of piecesOf(choose, text)) controller?.enqueue(piece)
        }),
        end: heard(() => {
          isOver = true
          controller?.close()
        }),
        broken: heard(() => fail(new TypeError("fetch failed"))),
      })
      signal?.addEventListener("abort", () => {
        leave()
        fail(signal.reason)
      })
    })
