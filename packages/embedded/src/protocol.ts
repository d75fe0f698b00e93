/**
 * The relevant messages in PostgreSQL's protocol, and sessions on a database with a single connection.
 */

import { Duplex } from "node:stream"
import { setImmediate } from "node:timers/promises"

// https://www.postgresql.org/docs/current/protocol-message-formats.html
const tagOf = (letter: string): number => letter.charCodeAt(0)

const sync = tagOf("S")
const flush = tagOf("H")
const query = tagOf("Q")
const parse = tagOf("P")
const terminate = tagOf("X")

const cancelCode = 80_877_102

/** A client's message. */
export type MessagePart =
  /** Asks for a session. */
  | { readonly _tag: "Start" }
  /** Ends a session, or cancels another's statement. */
  | { readonly _tag: "End" }
  | Cycle

/** Messages answered together. */
interface Cycle {
  readonly _tag: "Cycle"
  readonly messages: Buffer
  /** The names of the prepared statements. */
  readonly prepares: ReadonlyArray<string>
  /** Whether the session continues afterwards, for example to read more rows. */
  readonly isUnfinished: boolean
}

const encode = (letter: string, ...parts: ReadonlyArray<Buffer>): Buffer => {
  const length = Buffer.alloc(4)
  length.writeInt32BE(4 + parts.reduce((sum, part) => sum + part.length, 0))
  return Buffer.concat([Buffer.from(letter), length, ...parts])
}

const textOf = (text: string): Buffer => Buffer.from(`${text}\0`)

const int32 = (...values: ReadonlyArray<number>): Buffer => {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [index, value] of values.entries()) bytes.writeInt32BE(value, 4 * index)
  return bytes
}

/** The answer to a new session: authenticated and ready. */
const welcome = Buffer.concat([
  encode("R", int32(0)),
  encode("K", int32(0, 0)),
  encode("Z", Buffer.from("I")),
])

/** Ends a transaction, and forgets prepared statements. */
const dropPreparedStatements = (prepared: Iterable<string>): Buffer =>
  Buffer.concat([
    encode("S"),
    encode("Q", textOf("ROLLBACK")),
    ...[...prepared].map((name) => encode("C", Buffer.from("S"), textOf(name))),
    encode("S"),
  ])

/** Returns the name of the statement a message prepares, if any. */
const preparedBy = (message: Buffer): string | undefined => {
  if (message[0] !== parse) return undefined
  return message.toString("utf8", 5, message.indexOf(0, 5)) || undefined
}

const cycleOf = (messages: ReadonlyArray<Buffer>): Cycle => ({
  _tag: "Cycle",
  messages: Buffer.concat(messages),
  prepares: messages.flatMap((message) => preparedBy(message) ?? []),
  isUnfinished: messages.at(-1)?.[0] === flush,
})

const endsCycle = (message: Buffer): boolean =>
  message[0] === sync || message[0] === query || message[0] === flush

/** Collects bytes, and returns complete messages. */
export const makeMessageReader = (): ((bytes: Buffer) => ReadonlyArray<MessagePart>) => {
  let rest: Buffer = Buffer.alloc(0)
  let isStarted = false
  let messages: Array<Buffer> = []

  /** The next message, or `undefined` if it has not arrived as a whole. */
  const take = (lengthAt: number): Buffer | undefined => {
    if (rest.length < lengthAt + 4) return undefined
    const length = lengthAt + rest.readInt32BE(lengthAt)
    if (rest.length < length) return undefined
    const message = rest.subarray(0, length)
    rest = rest.subarray(length)
    return message
  }

  const start = (message: Buffer): MessagePart => {
    isStarted = message.readInt32BE(4) !== cancelCode
    return { _tag: isStarted ? "Start" : "End" }
  }

  const add = (message: Buffer): MessagePart | undefined => {
    if (message[0] === terminate) return { _tag: "End" }
    messages.push(message)
    if (!endsCycle(message)) return undefined
    const cycle = cycleOf(messages)
    messages = []
    return cycle
  }

  return (bytes) => {
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes])
    const pieces: Array<MessagePart> = []
    for (;;) {
      // The first message has no letter.
      const message = take(isStarted ? 1 : 0)
      if (message === undefined) return pieces
      const piece = isStarted ? add(message) : start(message)
      if (piece !== undefined) pieces.push(piece)
    }
  }
}

/** A database with a single client at a time. */
export interface Database {
  /** Runs messages, and passes on the answers. Their bytes are valid only during the call. */
  readonly run: (messages: Uint8Array, answer: (bytes: Uint8Array) => void) => Promise<void>
  readonly isInTransaction: () => boolean
  /** Whether it has failed for good. */
  readonly isStopped: () => boolean
}

/** Opens sessions. */
export interface Sessions {
  readonly open: () => Duplex
  /**
   * If the database has failed permanently, closes all sessions, because idle ones would seem to work.
   */
  readonly closeIfStopped: () => void
}

interface Session {
  readonly stream: Duplex
  readonly prepared: Set<string>
}

interface Waiting {
  readonly session: Session
  readonly start: () => void
  readonly drop: (reason: Error) => void
}

// After 20 ms of statements, this process's timers, signals and sockets run: consecutive statements
// would otherwise delay them forever.
const maxMillis = 20

/**
 * Creates sessions on a database. Each is a protocol stream, like a socket to a server. They take
 * turns: a session has the database for a statement or a transaction.
 */
export const makeSessions = (database: Database): Sessions => {
  let waiting: ReadonlyArray<Waiting> = []
  let isBusy = false
  // The session with an open transaction or unread rows.
  let owner: Session | undefined
  let lastTurn = performance.now()
  const streams = new Set<Duplex>()

  const closeIfStopped = (): void => {
    if (!database.isStopped()) return
    for (const stream of streams) stream.destroy(new Error("The database has stopped"))
  }

  const letOthers = async (): Promise<void> => {
    if (performance.now() - lastTurn < maxMillis) return
    await setImmediate()
    lastTurn = performance.now()
  }

  const admit = (): void => {
    if (isBusy) return
    const next = waiting.find(({ session }) => owner === undefined || owner === session)
    if (next === undefined) return
    waiting = waiting.filter((entry) => entry !== next)
    isBusy = true
    next.start()
  }

  /** Waits for a session's turn, runs its messages, and returns the answers. */
  const run = async (session: Session, messages: Buffer, isUnfinished: boolean) => {
    await new Promise<void>((start, drop) => {
      waiting = [...waiting, { session, start, drop }]
      admit()
    })
    const answers: Array<Buffer> = []
    try {
      await letOthers()
      await database.run(messages, (bytes) => answers.push(Buffer.from(bytes)))
    } finally {
      owner = isUnfinished || database.isInTransaction() ? session : undefined
      isBusy = false
      closeIfStopped()
      admit()
    }
    return Buffer.concat(answers)
  }

  /** Rolls back a session's transaction, and drops its prepared statements. */
  const forget = async (session: Session): Promise<void> => {
    const dropped = waiting.filter((entry) => entry.session === session)
    waiting = waiting.filter((entry) => entry.session !== session)
    for (const { drop } of dropped) drop(new Error("The session was closed"))
    await run(session, dropPreparedStatements(session.prepared), false)
  }

  const handle = async (session: Session, piece: MessagePart): Promise<void> => {
    switch (piece._tag) {
      case "Start":
        if (database.isStopped()) session.stream.destroy(new Error("The database has stopped"))
        else session.stream.push(welcome)
        return
      case "End":
        session.stream.destroy()
        return
      case "Cycle":
        for (const name of piece.prepares) session.prepared.add(name)
        session.stream.push(await run(session, piece.messages, piece.isUnfinished))
    }
  }

  return {
    closeIfStopped,
    open: () => {
      const read = makeMessageReader()
      const stream = new Duplex({
        read: () => undefined,
        write: (bytes: Buffer, _encoding, done) => {
          const handled = read(bytes).reduce(
            (before, piece) => before.then(() => handle(session, piece)),
            Promise.resolve(),
          )
          handled.then(() => done(), done)
        },
        final: (done) => {
          stream.destroy()
          done()
        },
        destroy: (error, done) => {
          streams.delete(stream)
          // A failed database loses them anyway.
          const closed = (): void => done(error)
          forget(session).then(closed, closed)
        },
      })
      const session: Session = { stream, prepared: new Set() }
      streams.add(stream)
      return stream
    },
  }
}
