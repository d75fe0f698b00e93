/** Hands the messages of one sender to one receiver, which takes them one by one. */

import * as Effect from "effect/Effect"

/** A place for one message. */
export interface Mailbox<Message> {
  /** Waits for the next message, or for the last one, which can be taken again and again. */
  readonly take: Effect.Effect<Message>
  /** Whether there is a message, or the receiver has not come for the next one. */
  readonly isIdle: () => boolean
  /** Puts a message. There must be none. */
  readonly put: (message: Message) => void
  /** Puts the last message, in place of any other. It stays the last. */
  readonly end: (message: Message) => void
}

/** Makes an empty mailbox. */
export const make = <Message>(): Mailbox<Message> => {
  let held: Message | undefined
  let last: Message | undefined
  let receive: ((message: Effect.Effect<Message>) => void) | undefined

  const hand = (message: Message): boolean => {
    const receiver = receive
    receive = undefined
    receiver?.(Effect.succeed(message))
    return receiver !== undefined
  }

  return {
    take: Effect.callback((resume) => {
      const message = last ?? held
      held = undefined
      if (message !== undefined) return resume(Effect.succeed(message))
      receive = resume
      return Effect.sync(() => {
        receive = undefined
      })
    }),
    isIdle: () => receive === undefined,
    put: (message) => {
      if (!hand(message)) held = message
    },
    end: (message) => {
      last ??= message
      hand(last)
    },
  }
}
