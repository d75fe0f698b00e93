/** What Tenure tells of its work to those who count it: metrics, and figures for operators. */

import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import type { ApiKeyId, ProjectId } from "../base/values.ts"

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
export type RefusingLimit = "key" | "burst" | "address" | "suspension"

/** A request that was refused by a rate limit. */
interface Refused {
  readonly by: RefusingLimit
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
export type StoreCall = (fault: StoreFault | undefined, durationMillis: number) => void

/**
 * Is told what has happened, synchronously, by those who do the work: its functions are quick and never
 * throw. What nobody wants to know is not even measured.
 */
export interface Observer {
  readonly answered?: ((answered: Answered) => void) | undefined
  readonly refused?: ((refused: Refused) => void) | undefined
  readonly attempted?: ((attempted: Attempted) => void) | undefined
  /** Is asked once for each method of a store, which is named by what it keeps, such as `memberships`. */
  readonly called?: ((store: string, method: string) => StoreCall) | undefined
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
export const addObserver = (added: Observer): Layer.Layer<never> =>
  Layer.effect(
    Observer,
    Effect.map(Observer, (present) => ({
      answered: both(present.answered, added.answered),
      refused: both(present.refused, added.refused),
      attempted: both(present.attempted, added.attempted),
      called: bothCalled(present.called, added.called),
    })),
  )

/** Why a call of a store has failed, if that is the fault of the store. */

/** A fault: it does not answer, or is defective. */
export type StoreFault = "StoreUnavailable" | "Defect"

/** Returns the fault in the exit of a call. An error such as `ProjectNotFound` is an answer. */
export const storeFaultOf = (exit: Exit.Exit<unknown, unknown>): StoreFault | undefined => {
  if (Exit.isSuccess(exit)) return undefined
  if (Cause.hasDies(exit.cause)) return "Defect"
  return Predicate.isTagged(Cause.squash(exit.cause), "StoreUnavailable")
    ? "StoreUnavailable"
    : undefined
}

/** The methods of requests that are told apart. A client can send any word as a method. */

const methods = ["_OTHER", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const

/** A method, or `_OTHER` for all others, as the conventions of OpenTelemetry have it. */
export type HttpMethod = (typeof methods)[number]

const known: ReadonlyMap<string, HttpMethod> = new Map(methods.map((method) => [method, method]))

/** Returns the method of a request. */
export const knownHttpMethod = (method: string): HttpMethod => known.get(method) ?? "_OTHER"
