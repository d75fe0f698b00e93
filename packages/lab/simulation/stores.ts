/** The stores' server, and a process's way to it. */

import {
  ApiKeyStore,
  FeedStore,
  MembershipStore,
  Outbox,
  type OutboxChange,
  RateLimitStore,
  StoreUnavailable,
  TicketStore,
  WebhookStore,
} from "@tenure/core/store"
import type { StorePorts } from "@tenure/core/store"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import type { Random } from "../faults/random.ts"
import type { Loop, Machine } from "./loop.ts"
import type { Trouble } from "./weather.ts"

/** A server with all stores, which never loses what it has done. */
export interface StoreServer {
  readonly machine: Machine
  /** Where the stores are now. */
  readonly stores: () => Context.Context<StorePorts>
  readonly isUp: () => boolean
  /** Runs an effect at the server, while nothing else goes on. */
  readonly run: <A, E>(effect: Effect.Effect<A, E>, done: (exit: Exit.Exit<A, E>) => void) => void
}

/** What a network to the server does. */
export interface StoreNetwork {
  readonly loop: Loop
  readonly choose: Random
  readonly trouble: () => Trouble
  /** Tells what happened to a call. */
  readonly tell: (who: string, what: string, isTrouble: boolean) => void
  /** Called when the server has done something. */
  readonly done: (
    method: string,
    args: ReadonlyArray<unknown>,
    exit: Exit.Exit<unknown, unknown>,
  ) => void
}

// A process gives up waiting for the server after this time.
const patienceMillis = 5000

/** Sends a call to the server. It takes place in one step there. */
const send = <A, E>(
  { choose, done, loop, tell, trouble }: StoreNetwork,
  { isUp, run }: Pick<StoreServer, "isUp" | "run">,
  process: Machine,
  method: string,
  args: ReadonlyArray<unknown>,
  call: Effect.Effect<A, E | StoreUnavailable>,
): Effect.Effect<A, E | StoreUnavailable> =>
  Effect.callback((resume) => {
    let isWaiting = true
    const { delay, lost, unanswered } = trouble()
    const answer = (exit: Exit.Exit<A, E | StoreUnavailable>): void => {
      if (!isWaiting || !process.isUp()) return
      isWaiting = false
      process.schedule(() => resume(exit))
    }
    const fail = (cause: string): void => {
      if (isWaiting && process.isUp()) tell(process.name, `${method}: ${cause}`, true)
      answer(Exit.fail(new StoreUnavailable({ cause })))
    }
    const isLost = choose.chance(lost)
    const isUnanswered = choose.chance(unanswered)
    loop.after(choose.between(...delay), () => {
      if (!isUp() || isLost) return fail("the server does not answer")
      run(call, (exit) => {
        if (isUnanswered) tell(process.name, `${method}: done, but not answered`, true)
        done(method, args, exit)
        if (!isUnanswered) loop.after(choose.between(...delay), () => answer(exit))
      })
    })
    loop.after(patienceMillis, () => fail("no answer in time"))
    return Effect.sync(() => {
      isWaiting = false
    })
  })

const never = Number.MAX_SAFE_INTEGER

const isMethod = (value: unknown): value is (...args: ReadonlyArray<unknown>) => unknown =>
  Predicate.isFunction(value)

/** Replaces a port's effects by calls to the server. */
function remote<Port extends object>(
  port: Port,
  call: (method: string, args: ReadonlyArray<unknown>, effect: Effect.Effect<unknown>) => unknown,
): Port
function remote(
  port: object,
  call: (method: string, args: ReadonlyArray<unknown>, effect: Effect.Effect<unknown>) => unknown,
): object {
  const replaced = (method: string, value: unknown): unknown => {
    if (isEffect(value)) return call(method, [], value)
    // Never is a time, too: it tells this poll from those that know none.
    if (method === "nextCheckAt" && isMethod(value)) {
      return () => Math.min(never, Number(value()))
    }
    if (isMethod(value)) {
      return (...args: ReadonlyArray<unknown>) => {
        const result = value(...args)
        return isEffect(result) ? call(method, args, result) : result
      }
    }
    return method === "expiry" && Predicate.isObject(value) ? remote(value, call) : value
  }
  return Object.fromEntries(
    Object.entries(port).map(([method, value]) => [method, replaced(method, value)]),
  )
}

const isEffect = (value: unknown): value is Effect.Effect<unknown> => Effect.isEffect(value)

/** News for a process's dispatcher. */
export interface News {
  readonly tell: (change: OutboxChange) => void
  /** Waits for the next one. */
  readonly next: Effect.Effect<OutboxChange>
}

/** Makes a process's news. */
export const makeNews = (process: Machine): News => {
  const waiting: Array<OutboxChange> = []
  let wake: (() => void) | undefined
  return {
    tell: (change) => {
      if (!process.isUp()) return
      const isKnown = change._tag === "Due" && waiting.some(({ _tag }) => _tag === "Due")
      if (!isKnown) waiting.push(change)
      wake?.()
    },
    next: Effect.callback((resume) => {
      const take = (): void => {
        const change = waiting.shift()
        if (change === undefined) return
        wake = undefined
        process.schedule(() => resume(Effect.succeed(change)))
      }
      wake = take
      take()
    }),
  }
}

/** The stores as a process sees them, over a network. */
export const remoteStores = (
  network: StoreNetwork,
  server: StoreServer,
  process: Machine,
  news: News,
): Context.Context<StorePorts> => {
  const stores = server.stores()
  // Nobody answers where they have been.
  const known = { run: server.run, isUp: () => server.isUp() && server.stores() === stores }
  const call = (method: string, args: ReadonlyArray<unknown>, effect: Effect.Effect<unknown>) =>
    send(network, known, process, method, args, effect)
  return Context.make(MembershipStore, remote(Context.get(stores, MembershipStore), call)).pipe(
    Context.add(WebhookStore, remote(Context.get(stores, WebhookStore), call)),
    Context.add(ApiKeyStore, remote(Context.get(stores, ApiKeyStore), call)),
    Context.add(Outbox, {
      ...remote(Context.get(stores, Outbox), call),
      nextChange: news.next,
    }),
    Context.add(FeedStore, remote(Context.get(stores, FeedStore), call)),
    Context.add(RateLimitStore, remote(Context.get(stores, RateLimitStore), call)),
    Context.add(TicketStore, remote(Context.get(stores, TicketStore), call)),
  )
}
