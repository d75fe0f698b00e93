/** The client. */

import { type CallOptions, type Calls, makePages } from "./calls.ts"
import { checkInput, checkNames } from "./field-names.ts"
import { type Operations, operations } from "./operations.ts"
import {
  type Method,
  type OutgoingRequest,
  type RequestTemplate,
  attempt,
  longestTime,
  makeLinesRequest,
  makeRequest,
  retryDelay,
  sleep,
} from "./request.ts"
import { type Page, TenureError } from "./response.ts"
import { type Subscribe, makeSubscribe } from "./subscribe.ts"

export interface ClientOptions {
  /** The URL before `/v2`, for example `https://example.com/members`. */
  readonly baseUrl: string
  /**
   * The token of an API key. Leave it out if the server identifies the caller in another way, such as
   * by a cookie.
   */
  readonly token?: string | undefined
  /** How long an attempt may take, in milliseconds. Default: 30,000. */
  readonly timeout?: number | undefined
  /** The most attempts after the first, 0 for none. Default: 3. */
  readonly maxRetries?: number | undefined
  /**
   * The longest wait before a retry, in milliseconds. If the server asks for a longer one, the call
   * fails at once. Default: 60,000.
   */
  readonly maxWait?: number | undefined
  /** The longest response, in bytes. Default: 16,777,216. */
  readonly maxResponseBytes?: number | undefined
  /** Replaces `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** Waits before a retry, in milliseconds. Tests can replace it to skip the wait. */
  readonly sleep?: typeof sleep | undefined
}

const invalid = (name: string, expected: string): never => {
  throw new TypeError(`${name} must be ${expected}`)
}

const count = (name: string, given: number | undefined, fallback: number, least: number): number =>
  given === undefined || (Number.isInteger(given) && given >= least && given <= longestTime)
    ? (given ?? fallback)
    : invalid(name, `a whole number from ${least} to ${longestTime}`)

const readBaseUrl = (given: string): string => {
  const url = URL.canParse(given) ? new URL(given) : undefined
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.username ||
    url.password ||
    url.search ||
    url.hash
  ) {
    return invalid("baseUrl", "an http or https URL without user, query or fragment")
  }
  return url.href.replace(/\/+$/, "")
}

// Other characters make fetch throw an error, and its message contains the token.
const readToken = (given: string | undefined): string | undefined =>
  given === undefined || /^[\x21-\x7e]+$/.test(given)
    ? given
    : invalid("token", "a text of visible ASCII characters")

const optionNames = [
  "baseUrl",
  "token",
  "timeout",
  "maxRetries",
  "maxWait",
  "maxResponseBytes",
  "fetch",
  "sleep",
]

const readOptions = (given: ClientOptions) => ({
  baseUrl: readBaseUrl(given.baseUrl),
  token: readToken(given.token),
  timeout: count("timeout", given.timeout, 30_000, 1),
  maxRetries: count("maxRetries", given.maxRetries, 3, 0),
  maxWait: count("maxWait", given.maxWait, 60_000, 0),
  maxResponseBytes: count("maxResponseBytes", given.maxResponseBytes, 16_777_216, 1),
  fetch: given.fetch ?? globalThis.fetch,
  sleep: given.sleep ?? sleep,
})

type Settings = ReturnType<typeof readOptions>

type ReplayRequest = Parameters<Operations["webhooks"]["replay"]>[0]

/** Which events to send to a webhook again: the fields of `replay` without those of a single event or page. */
export interface ReplayManyRequest extends Omit<ReplayRequest, "event_id" | "after" | "since"> {
  /** Sends only events from this time on. */
  readonly since: NonNullable<ReplayRequest["since"]>
}

/**
 * Calls `replay` until all events were looked at, and returns how many are sent again. The calls after the first have
 * the idempotency key with a number behind it, so it has at most 240 characters.
 */
export type ReplayMany = (input: ReplayManyRequest, options?: CallOptions) => Promise<number>

/** The API's operations by resource. */
export interface Client extends Operations {
  readonly events: Operations["events"] & { readonly subscribe: Subscribe }
  readonly webhooks: Operations["webhooks"] & { readonly replayMany: ReplayMany }
}

/** Returns the idempotency key: with it, the server makes a repeated change only once. */
const keyOf = ({ method }: OutgoingRequest, given: string | undefined, { maxRetries }: Settings) =>
  given ?? (method === "GET" || maxRetries === 0 ? undefined : crypto.randomUUID())

/** Performs a call: attempts, until one has a result or there is no next one. */
const makeCall =
  <Input extends object>(
    settings: Settings,
    make: (method: Method, template: RequestTemplate, input: Input) => OutgoingRequest,
  ) =>
  async <Result extends object>(
    method: Method,
    template: RequestTemplate,
    input: Input,
    options: CallOptions = {},
  ): Promise<Result> => {
    const { idempotencyKey, signal } = options
    checkInput(method, template, input, options)
    const outgoing = make(method, template, input)
    const key = keyOf(outgoing, idempotencyKey, settings)
    const run = async (retries: number): Promise<Result> => {
      const outcome = await attempt<Result>(settings, outgoing, key, signal)
      if (!(outcome instanceof TenureError)) return outcome
      const wait = retryDelay(outcome, retries, settings, Math.random())
      if (wait === undefined) throw outcome
      await settings.sleep(wait, signal)
      return run(retries + 1)
    }
    return run(0)
  }

const makeList =
  (call: Calls["call"]): Calls["list"] =>
  <Item>(method: Method, template: RequestTemplate, input: object, options?: CallOptions) => {
    const load = (cursor: object) =>
      call<Page<Item>>(method, template, { ...input, ...cursor }, options)
    return makePages(load({}), (after) => load({ after }))
  }

const replayManyNames = ["project_id", "webhook_id", "since", "types", "only", "dry_run"]

const makeReplayMany =
  ({ replay }: Operations["webhooks"]): ReplayMany =>
  async (input, options = {}) => {
    checkNames(input, replayManyNames, (name) =>
      name === "after" || name === "event_id" ? "must be left out: it is for replay" : undefined,
    )
    const { idempotencyKey: key } = options
    const run = async (after: string | undefined, calls: number): Promise<number> => {
      const idempotencyKey = key === undefined || calls === 0 ? key : `${key}-${calls}`
      const { data } = await replay({ ...input, after }, { ...options, idempotencyKey })
      const { next, replayed } = data
      return next === null ? replayed : replayed + (await run(next, calls + 1))
    }
    return run(undefined, 0)
  }

/**
 * Creates a client for the HTTP API.
 *
 * A method takes the path, query and body fields in one object, under the API's names, and returns the
 * response body. It rejects with a `TenureError`, or with the signal's reason if the signal aborts.
 *
 * @throws TypeError if an option is invalid. Its message does not contain the token.
 * @example
 * ```ts
 * import { createClient } from "tenure/client"
 *
 * const client = createClient({ baseUrl: "http://127.0.0.1:3000", token: "a token" })
 * const { data } = await client.memberships.extend({
 *   project_id: "p1",
 *   user_id: "1001",
 *   extend: "2099-01-01T00:00:00.000Z",
 * })
 * ```
 */
export const createClient = (options: ClientOptions): Client => {
  checkNames(options, optionNames)
  const settings = readOptions(options)
  const call = makeCall(settings, makeRequest)
  const callWithLines = makeCall(settings, makeLinesRequest)
  const all = operations({ call, callWithLines, list: makeList(call) })
  return {
    ...all,
    events: { ...all.events, subscribe: makeSubscribe(settings) },
    webhooks: { ...all.webhooks, replayMany: makeReplayMany(all.webhooks) },
  }
}
