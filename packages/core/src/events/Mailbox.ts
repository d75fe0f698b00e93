/** Hands the messages of one sender to one receiver, which takes them one by one. */

import * as Effect from "effect/Effect"

type Receive<Message> = (message: Message) => void

/** A place for one message. An empty one is no more than this object, because there may be thousands. */
export class Mailbox<Message> {
  private held: Message | undefined
  private last: Message | undefined
  private receiver: Receive<Message> | undefined

  /** Whether there is no message. */
  get isEmpty(): boolean {
    return this.held === undefined && this.last === undefined
  }

  /** Whether somebody waits for a message. */
  get isAwaited(): boolean {
    return this.receiver !== undefined
  }

  /** Hands over the next message, or the last one, which can be had again and again, when it is there. */
  receive(receiver: Receive<Message>): void {
    const message = this.last ?? this.held
    this.held = undefined
    if (message === undefined) this.receiver = receiver
    else receiver(message)
  }

  /** Waits for the next message. */
  get take(): Effect.Effect<Message> {
    return Effect.callback((resume) => {
      this.receive((message) => resume(Effect.succeed(message)))
      return Effect.sync(() => {
        this.receiver = undefined
      })
    })
  }

  /** Puts a message. There must be none. */
  put(message: Message): void {
    if (!this.hand(message)) this.held = message
  }

  /** Puts the last message, in place of any other. It stays the last. */
  end(message: Message): void {
    this.last ??= message
    this.hand(this.last)
  }

  private hand(message: Message): boolean {
    const { receiver } = this
    this.receiver = undefined
    receiver?.(message)
    return receiver !== undefined
  }
}
