/**
 * Sessions on a database that has only one. Each is a stream of PostgreSQL's protocol, as a socket to a
 * server is. They take turns: a session has the database for a statement, or for a transaction.
 */

import { Duplex } from "node:stream"
import { setImmediate } from "node:timers/promises"
import * as Messages from "./Messages.ts"

/** A database that one client at a time can use. */
export interface Database {
  /** Runs messages, and passes on the answers, whose bytes are only valid for the call. */
  readonly run: (messages: Uint8Array, answer: (bytes: Uint8Array) => void) => Promise<void>
  readonly isInTransaction: () => boolean
  /** Whether it has failed for good. */
  readonly isStopped: () => boolean
}

/** Opens sessions. */
export interface Sessions {
  readonly open: () => Duplex
  /** Closes all sessions if the database has failed for good, so that those that are idle do not seem to work. */
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

// After so many milliseconds of statements, timers, signals and sockets of this process have their turn:
// whoever only waits for one statement after the other would keep them waiting forever.
const mostMillis = 20

/** Makes the sessions of a database. */
export const make = (database: Database): Sessions => {
  let waiting: ReadonlyArray<Waiting> = []
  let isBusy = false
  // The session that has a transaction open, or rows to read.
  let owner: Session | undefined
  let lastTurn = performance.now()
  const streams = new Set<Duplex>()

  const closeIfStopped = (): void => {
    if (!database.isStopped()) return
    for (const stream of streams) stream.destroy(new Error("The database has stopped"))
  }

  const letOthers = async (): Promise<void> => {
    if (performance.now() - lastTurn < mostMillis) return
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

  /** Waits until it is the turn of a session, and runs messages of it. Returns the answers. */
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

  /** Undoes what a session has begun, and forgets what it has prepared. */
  const forget = async (session: Session): Promise<void> => {
    const dropped = waiting.filter((entry) => entry.session === session)
    waiting = waiting.filter((entry) => entry.session !== session)
    for (const { drop } of dropped) drop(new Error("The session was closed"))
    await run(session, Messages.forgetting(session.prepared), false)
  }

  const handle = async (session: Session, piece: Messages.Piece): Promise<void> => {
    switch (piece._tag) {
      case "Start":
        if (database.isStopped()) session.stream.destroy(new Error("The database has stopped"))
        else session.stream.push(Messages.welcome)
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
      const read = Messages.reader()
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
          // What a database that has failed cannot forget is lost with it.
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
