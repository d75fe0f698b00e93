/** Client programs, which call Tenure by its client's package. */

import {
  type Client as Api,
  type ClientOptions,
  type Subscription,
  TenureError,
  createClient,
} from "@tenure/client"
import * as Effect from "effect/Effect"
import { type Random, random } from "../faults/random.ts"
import { baseUrl } from "./http.ts"
import type { Call } from "./record.ts"
import type { World } from "./world.ts"

/** A client, which makes one call at a time. */
export interface Client {
  readonly world: World
  readonly name: string
  readonly choose: Random
  /** Whether its calls that change something get an idempotency key by themselves. */
  readonly hasKeys: boolean
  readonly api: Api
  /** Runs a call. Counts its requests in `call`, if there is one. */
  readonly run: <A>(
    send: (api: Api) => Promise<A>,
    call?: Call | undefined,
  ) => Effect.Effect<A, TenureError>
}

/** How long an attempt may take. Shorter than what a process waits for the stores, twice. */
const timeout = 10_000

/** What a server has asked for. */
interface Asked {
  readonly millis: number
  readonly at: number
}

const askedBy = ({ headers }: Response, at: number): Asked | undefined => {
  const seconds = headers.get("retry-after")
  return seconds === null ? undefined : { millis: 1000 * Number(seconds), at }
}

/** Makes a client. */
export const makeClient = (world: World, name: string, token: string): Client => {
  const { clients, loop, notes, sabotage, seed } = world
  const choose = random(seed, name)
  const maxRetries = choose.pick([0, 1, 3, 6])
  let call: Call | undefined
  let asked: Asked | undefined

  const fetch: typeof globalThis.fetch = async (input, init) => {
    if (call !== undefined) call.tries++
    if (asked !== undefined) notes.waits.push({ asked: asked.millis, taken: loop.now() - asked.at })
    asked = undefined
    const response = await world.fetch(input, init)
    asked = askedBy(response, loop.now())
    return response
  }

  const options: ClientOptions = { baseUrl, token, timeout, maxRetries, fetch }
  const api = createClient(sabotage?.client?.(options, random(seed, name, "sabotage")) ?? options)

  return {
    world,
    name,
    choose,
    hasKeys: maxRetries > 0,
    api,
    run: (send, made) =>
      Effect.callback((resume) => {
        const end = (effect: Parameters<typeof resume>[0]): void =>
          clients.schedule(() => resume(effect))
        loop.enter(() => {
          call = made
          asked = undefined
          send(api).then(
            (value) => end(Effect.succeed(value)),
            (cause: unknown) =>
              end(cause instanceof TenureError ? Effect.fail(cause) : Effect.die(cause)),
          )
        })
      }),
  }
}

/** Follows the feed from a cursor on, for a time. Returns the last cursor. */
export const follow = (
  { run, world: { loop } }: Client,
  subscription: Subscription & { readonly after: string },
  millis: number,
): Effect.Effect<string, TenureError> => {
  const ending = new AbortController()
  let { after } = subscription
  loop.after(millis, () => loop.enter(() => ending.abort()))
  const onCursor = (cursor: string): void => {
    after = cursor
    subscription.onCursor?.(cursor)
  }
  return Effect.map(
    run((api) => api.events.subscribe({ ...subscription, onCursor, signal: ending.signal })),
    () => after,
  )
}
