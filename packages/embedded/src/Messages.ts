/** The messages of PostgreSQL's protocol that matter to whoever carries them. */

// https://www.postgresql.org/docs/current/protocol-message-formats.html
const tagOf = (letter: string): number => letter.charCodeAt(0)

const sync = tagOf("S")
const flush = tagOf("H")
const query = tagOf("Q")
const parse = tagOf("P")
const terminate = tagOf("X")

const cancelCode = 80_877_102

/** What a client sends. */
export type Piece =
  /** Asks for a session. */
  | { readonly _tag: "Start" }
  /** Ends a session, or asks to cancel what another one does. */
  | { readonly _tag: "End" }
  | Cycle

/** Messages that are answered together. */
interface Cycle {
  readonly _tag: "Cycle"
  readonly messages: Buffer
  /** The names of the statements that the messages prepare. */
  readonly prepares: ReadonlyArray<string>
  /** Whether the session goes on with what the messages began, such as reading rows. */
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

/** The answer to a client that asks for a session: it is authenticated, and ready. */
export const welcome = Buffer.concat([
  encode("R", int32(0)),
  encode("K", int32(0, 0)),
  encode("Z", Buffer.from("I")),
])

/** Ends a transaction, and forgets prepared statements. */
export const forgetting = (prepared: Iterable<string>): Buffer =>
  Buffer.concat([
    encode("S"),
    encode("Q", textOf("ROLLBACK")),
    ...[...prepared].map((name) => encode("C", Buffer.from("S"), textOf(name))),
    encode("S"),
  ])

/** The name of the statement that a message prepares, or `undefined` if it has none. */
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

/** Takes bytes as they arrive, and returns the pieces that are complete. */
export const reader = (): ((bytes: Buffer) => ReadonlyArray<Piece>) => {
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

  const start = (message: Buffer): Piece => {
    isStarted = message.readInt32BE(4) !== cancelCode
    return { _tag: isStarted ? "Start" : "End" }
  }

  const add = (message: Buffer): Piece | undefined => {
    if (message[0] === terminate) return { _tag: "End" }
    messages.push(message)
    if (!endsCycle(message)) return undefined
    const cycle = cycleOf(messages)
    messages = []
    return cycle
  }

  return (bytes) => {
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes])
    const pieces: Array<Piece> = []
    for (;;) {
      // The first message has no letter.
      const message = take(isStarted ? 1 : 0)
      if (message === undefined) return pieces
      const piece = isStarted ? add(message) : start(message)
      if (piece !== undefined) pieces.push(piece)
    }
  }
}
