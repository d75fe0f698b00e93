/** The events that webhooks receive. */

import type { Events } from "./operations.ts"

type OwnEvents<Data extends object> = {
  readonly [Type in keyof Data]: {
    readonly type: Type
    readonly timestamp: string
    readonly data: Data[Type]
  }
}

/**
 * An event that a webhook received, discriminated by `type`. Other types than these may arrive: those
 * that the host publishes, unless they are given here, and those of newer servers.
 *
 * @typeParam Own - the data of the events that the host publishes, by type
 */
export type WebhookEvent<Own extends object = {}> = (
  | Events[keyof Events]
  | OwnEvents<Own>[keyof Own]
) & {
  /** The id of the event, the same in every attempt to deliver it. */
  readonly id: string
}
