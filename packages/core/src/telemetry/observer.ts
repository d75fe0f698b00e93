/** Tenure's reports about its work, for metrics and operators. */

import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import type { ApiKeyId, ProjectId } from "../base/values.ts"

/** An answered request. */
interface Answered {
  /** As on the wire: any text. */
  readonly method: string
  /** Its path's pattern, with the base path; `undefined` if no route matches. */
  readonly route: string | undefined
  readonly status: number
  /** The scheme of the client's URL, as far as proxies tell. */
  readonly scheme: string
  /** The time until the response was decided; a stream goes on afterwards. */
  readonly durationMillis: number
}

/** The reason for refusing requests: an empty bucket or a suspended key. */
export type RefusingLimit = "key" | "burst" | "address" | "suspension"

/** A request refused by a rate limit. */
interface Refused {
  readonly by: RefusingLimit
  /** The request's API key, if valid. */
  readonly keyId: ApiKeyId | undefined
}

/** A completed attempt. Aborted attempts are not reported. */
interface Attempted {
  readonly projectId: ProjectId
  /**
   * Whether the receiver has the event; if not, whether it is attempted again, was given up, or was given
   * up together with its webhook.
   */
  readonly outcome: "Delivered" | "Retry" | "Failed" | "Disabled"
  /** The response's status, or an error such as `Timeout`. */
  readonly answer: number | string
  readonly durationMillis: number
}

/**
 * Reports a completed call to a store.
 *
 * @param fault - why the store has not answered; `undefined` if it has
 */
export type StoreCall = (fault: StoreFault | undefined, durationMillis: number) => void

/**
 * Receives reports synchronously, in the middle of the work: its functions are quick and never throw.
 * Without an observer, nothing is measured.
 */
export interface Observer {
  readonly answered?: ((answered: Answered) => void) | undefined
  readonly refused?: ((refused: Refused) => void) | undefined
  readonly attempted?: ((attempted: Attempted) => void) | undefined
  /**
   * Called once for each method in a store. The store's name describes its contents, for example
   * `memberships`.
   */
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

/** Observes everything. By default, there is no observer. */
export const Observer = Context.Reference<Observer>("@tenure/core/Observer", {
  defaultValue: () => ({}),
})

/** Adds an observer to the existing ones. */
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

/** A fault: it does not answer, or is defective. */
export type StoreFault = "StoreUnavailable" | "Defect"

/** Returns the store's fault in a call's exit. An error such as `ProjectNotFound` is an answer. */
export const storeFaultOf = (exit: Exit.Exit<unknown, unknown>): StoreFault | undefined => {
  if (Exit.isSuccess(exit)) return undefined
  if (Cause.hasDies(exit.cause)) return "Defect"
  return Predicate.isTagged(Cause.squash(exit.cause), "StoreUnavailable")
    ? "StoreUnavailable"
    : undefined
}

const methods = ["_OTHER", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const

/** A method, or `_OTHER` for all others, as in OpenTelemetry's conventions. */
export type HttpMethod = (typeof methods)[number]

const known: ReadonlyMap<string, HttpMethod> = new Map(methods.map((method) => [method, method]))

/** Returns a request's method. */
export const knownHttpMethod = (method: string): HttpMethod => known.get(method) ?? "_OTHER"

/** Returns the error of a response for a server; `undefined` if the server has not failed. */
export const serverErrorOf = (status: number): string | undefined =>
  status < 500 ? undefined : String(status)
