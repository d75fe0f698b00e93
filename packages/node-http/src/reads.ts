/** Hands what connections send to Node's parser in small pieces, once one of them sends too much. */

import type { EventEmitter } from "node:events"
import type { Duplex } from "node:stream"

// Node's parser makes all requests of a read, 2,600 of the shortest, before anybody can pause the
// connection. Reading in pieces costs others a thirtieth of their throughput, so it starts when needed.
const pieceLength = 1024

// What to do if a connection sends too much. Not known for connections of servers that are not guarded.
const alarms = new WeakMap<Duplex, () => void>()

/** The only reader of a connection: Node's parser, unless the connection was upgraded. */
const readerOf = (socket: Duplex): Function | undefined => {
  const [reader, ...others] = socket.listeners("data")
  return others.length === 0 ? reader : undefined
}

/**
 * Has a connection parsed piece by piece.
 *
 * @param isBusy - whether requests wait, so that the next piece must wait too
 */
const readInPieces = (socket: Duplex, isBusy: (socket: Duplex) => boolean): void => {
  const parse = readerOf(socket)
  if (parse === undefined) return
  const onData = (chunk: Buffer): void => {
    parse(chunk.subarray(0, pieceLength))
    if (chunk.length <= pieceLength) return
    // Nobody sends so much behind an upgrade before it is answered.
    if (!socket.listeners("data").includes(parse)) return void socket.destroy()
    if (isBusy(socket)) socket.pause()
    // Comes back here at once, unless the connection is paused.
    socket.unshift(chunk.subarray(pieceLength))
  }
  // Like a listener by `once`, this one goes when Node removes its own.
  socket.removeAllListeners("data").on("data", Object.assign(onData, { listener: parse }))
}

/** Has all connections of a server read in pieces as soon as one of them sends too much. */
export const guardReads = (server: EventEmitter, isBusy: (socket: Duplex) => boolean): void => {
  // The open connections, each with its parser.
  const open = new Map<Duplex, ReturnType<typeof readerOf>>()
  let isWary = false

  const alarm = (): void => {
    isWary = true
    for (const [socket, parser] of open) {
      // An upgraded connection is no longer parsed. Who reads it now may depend on whole chunks.
      if (readerOf(socket) === parser) readInPieces(socket, isBusy)
    }
    open.clear()
  }
  const onConnection = (socket: Duplex): void => {
    if (isWary) return readInPieces(socket, isBusy)
    alarms.set(socket, alarm)
    // A connection that is read again has another parser.
    if (!open.has(socket)) socket.on("close", () => open.delete(socket))
    open.set(socket, readerOf(socket))
  }
  // The connections of a server with TLS are parsed once they are secure.
  server.on("connection", onConnection).on("secureConnection", onConnection)
}

/** Tells that a connection sends too much. */
export const raiseAlarm = (socket: Duplex, isBusy: (socket: Duplex) => boolean): void => {
  readInPieces(socket, isBusy)
  alarms.get(socket)?.()
}
