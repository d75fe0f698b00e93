/** Sends bytes to a server over raw connections, which are used again where the answers allow it. */

import { type Socket, connect } from "node:net"
import { setImmediate } from "node:timers/promises"
import { type Answer, type Parsed, parseAnswers } from "./answers.ts"

/** One or more requests, to be sent over one connection. */
export interface Exchange {
  /** The bytes, in the pieces that they are sent in. */
  readonly packets: ReadonlyArray<Buffer>
  /** Each request's method. */
  readonly methods: ReadonlyArray<string>
  /** Each request's target. */
  readonly targets: ReadonlyArray<string>
  /** Whether the bytes end within a request. The client then ends its side. */
  readonly isCut: boolean
  /** Whether nothing but valid requests is sent, so that the connection may be used again. */
  readonly isValid: boolean
}

/** What a server answers to an exchange. */
export interface Reply extends Parsed {
  /** How it ended: with all answers, with the connection, or not within the deadline. */
  readonly end: "answered" | "closed" | "late"
  /** What was sent over the same connection just before. */
  readonly previous?: Exchange | undefined
}

export interface Client {
  /** Sends an exchange, and once more if the server has closed the connection without an answer. */
  readonly send: (exchange: Exchange) => Promise<Reply>
  /** Sends an exchange that would be answered differently if it were sent again. */
  readonly sendOnce: (exchange: Exchange) => Promise<Reply>
  readonly close: () => void
}

/** How long a server may take to answer, in milliseconds. */
const deadlineMillis = 5000

// Time is counted in steps, so that a machine that stands still for seconds makes no answer late.
const stepMillis = 100

const open = (port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true, allowHalfOpen: true })
    socket.once("error", reject)
    socket.once("connect", () => {
      socket.off("error", reject)
      socket.on("error", () => {})
      resolve(socket)
    })
  })

/** Writes the packets, each in its own turn. */
const write = async (socket: Socket, { isCut, packets }: Exchange): Promise<void> => {
  for (const packet of packets) {
    if (!socket.writable) return
    socket.write(packet)
    if (packets.length > 1) await setImmediate()
  }
  if (isCut) socket.end()
}

const isLast = ({ headers }: Answer): boolean => headers["connection"]?.toLowerCase() === "close"

/** Collects the reply to an exchange. */
const receive = (socket: Socket, { isCut, methods }: Exchange, deadline: number): Promise<Reply> =>
  new Promise((resolve) => {
    let bytes = Buffer.alloc(0)
    const settle = (end: Reply["end"]) => {
      clearInterval(timer)
      socket.off("data", onData).off("end", onClosed).off("close", onClosed)
      resolve({ ...parseAnswers(bytes, methods, end === "closed"), end })
    }
    const onClosed = () => settle("closed")
    const onData = (data: Buffer) => {
      bytes = Buffer.concat([bytes, data])
      const { answers } = parseAnswers(bytes, methods, false)
      // What the server still sends after its last answer belongs to the reply.
      if (!isCut && answers.length >= methods.length && !answers.some(isLast)) settle("answered")
    }
    let steps = 0
    const timer = setInterval(() => {
      if (++steps * stepMillis >= deadline) settle("late")
    }, stepMillis)
    socket.on("data", onData).on("end", onClosed).on("close", onClosed)
  })

/** A connection, and what was sent over it last. */
interface Connection {
  readonly socket: Socket
  readonly previous?: Exchange
}

/** Makes a client for the server on a port. */
export const makeClient = (port: number, deadline = deadlineMillis): Client => {
  const idle: Array<Connection> = []

  const sendOver = async ({ previous, socket }: Connection, exchange: Exchange): Promise<Reply> => {
    const receiving = receive(socket, exchange, deadline)
    await write(socket, exchange)
    const reply = await receiving
    const isReusable = reply.end === "answered" && reply.rest.length === 0 && exchange.isValid
    if (isReusable) idle.push({ socket, previous: exchange })
    else socket.destroy()
    return { ...reply, previous }
  }

  const sendOnce = async (exchange: Exchange): Promise<Reply> =>
    sendOver({ socket: await open(port) }, exchange)

  const send = async (exchange: Exchange): Promise<Reply> => {
    const used = idle.pop()
    if (used === undefined || used.socket.readableEnded) return sendOnce(exchange)
    const reply = await sendOver(used, exchange)
    // The server may have closed a connection that was idle.
    const isStale = reply.end === "closed" && reply.answers.length === 0
    return isStale ? sendOnce(exchange) : reply
  }

  return {
    send,
    sendOnce,
    close: () => {
      for (const { socket } of idle) socket.destroy()
    },
  }
}
