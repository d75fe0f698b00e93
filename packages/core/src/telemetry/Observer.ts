/** What Tenure tells of its work to those who count it: metrics, and figures for operators. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ApiKeyId } from "../base/ApiKeyId.ts"
import type { ProjectId } from "../base/Project.ts"
import type { StoreFault } from "./StoreFault.ts"

/** A request that was answered. */
interface Answered {
  /** As on the wire: any text. */
  readonly method: string
  /** The pattern of its path, with the base path; `undefined` if no route has the path. */
  readonly route: string | undefined
  readonly status: number
  /** The time until the response was decided; a stream goes on afterwards. */
  readonly durationMillis: number
}

/** What refuses requests: a bucket that is empty, or the suspension of a key. */
export type Refuser = "key" | "burst" | "address" | "suspension"

/** A request that was refused by a rate limit. */
interface Refused {
  readonly by: Refuser
  /** The API key of the request, if it has a valid one. */
  readonly keyId: ApiKeyId | undefined
}

/** An attempt to deliver an event that has ended. Attempts that were aborted are not told. */
interface Attempted {
  readonly projectId: ProjectId
  /**
   * Whether the receiver has the event; if not, whether it is attempted again, was given up, or was given
   * up together with its webhook.
   */
  readonly outcome: "Delivered" | "Retry" | "Failed" | "Disabled"
  /** The status of the response, or what went wrong instead, such as `Timeout`. */
  readonly answer: number | string
  readonly durationMillis: number
}

/**
 * Is told that a call of a store has ended.
 *
 * @param fault - why the store has not answered; `undefined` if it has
 */
export type Called = (fault: StoreFault | undefined, durationMillis: number) => void

/**
 * Is told what has happened, synchronously, by those who do the work: its functions are quick and never
 * throw. What nobody wants to know is not even measured.
 */
export interface Observer {
  readonly answered?: ((answered: Answered) => void) | undefined
  readonly refused?: ((refused: Refused) => void) | undefined
  readonly attempted?: ((attempted: Attempted) => void) | undefined
  /** Is asked once for each method of a store, which is named by what it keeps, such as `memberships`. */
  readonly called?: ((store: string, method: string) => Called) | undefined
}

type Listener<A> = ((value: A) => void) | undefined

const both = <A>(one: Listener<A>, other: Listener<A>): Listener<A> =>
  one === undefined || other === undefined
    ? (one ?? other)
    : (value) => {
        one(value)
        other(value)
      }

const bothCalled = (one: Observer["called"], other: Observer["called"]): Observer["called"] =>
  one === undefined || other === undefined
    ? (one ?? other)
    : (store, method) => {
        const listeners = [one(store, method), other(store, method)]
        return (fault, durationMillis) => {
          for (const listener of listeners) listener(fault, durationMillis)
        }
      }

/** The observer of everything. By default, nobody observes. */
export const Observer = Context.Reference<Observer>("@tenure/core/Observer", {
  defaultValue: () => ({}),
})

/** Adds an observer to those that there are. */
export const add = (added: Observer): Layer.Layer<never> =>
  Layer.effect(
    Observer,
    Effect.map(Observer, (present) => ({
      answered: both(present.answered, added.answered),
      refused: both(present.refused, added.refused),
      attempted: both(present.attempted, added.attempted),
      called: bothCalled(present.called, added.called),
    })),
  )
