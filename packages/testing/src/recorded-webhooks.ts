/** A webhook receiver in the process: it records each request, and answers as the test asks. */

import { clearTimeout, setTimeout } from "node:timers"
import type { Events } from "@tenure/client"
import type { Tenure } from "@tenure/core"
import { Setting, fromCallSite } from "@tenure/core/internal"
import { type WebhookSecret, signMessage } from "@tenure/core/signature"
import { type TransportRequest, WebhookTransport } from "@tenure/core/transport"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** A recorded request. Each attempt to deliver an event is one. */
export interface SentWebhook<Type extends string = string> {
  /** The event id, identical in every attempt. */
  readonly id: string
  /** The event type, such as `membership.expired`. */
  readonly type: Type
  /** When the event happened: a time in UTC, with milliseconds. */
  readonly timestamp: string
  /** The event's data. `unknown` for an event that your host publishes. */
  readonly data: Type extends keyof Events ? Events[Type]["data"] : unknown
  /** The webhook's URL. */
  readonly url: string
  /** The header fields, with the signature. Their names are in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** The signed text. */
  readonly body: string
  /** When it was sent, in milliseconds since the epoch, by Tenure's clock. */
  readonly sentAt: number
  /** The status of the answer, or `timeout` without one. */
  readonly answer: number | "timeout"
}

/** No such webhook was sent in time. The message lists the recorded ones. */
export class WebhookNotSent extends Error {
  override readonly name = "WebhookNotSent"
  /** A constant for code that handles errors by tag. */
  readonly _tag = "WebhookNotSent"
}

// Editors suggest the known types.
type KnownOrOther = keyof Events | (string & {})

/** The recorded webhooks. */
export interface TestWebhooks {
  /**
   * Registers a webhook. Creates the project unless it exists.
   *
   * @param url - the default is `https://receiver.example/`. Nothing is sent there
   * @returns the webhook, with its id and its secret
   */
  readonly register: (projectId: string, url?: string) => ReturnType<Tenure["webhooks"]["create"]>
  /**
   * Returns the next request that no call has returned yet, and waits for it if necessary: 2 seconds in real time by
   * default. Other types are left for later calls. Rejects with `WebhookNotSent` if no such request arrives. The error
   * lists what was recorded.
   *
   * @param type - the event type; the default is any
   */
  readonly next: <Type extends KnownOrOther>(
    type?: Type,
    options?: NextOptions,
  ) => Promise<SentWebhook<Type>>
  /** Returns all requests in the order in which they were sent, also those that `next` has returned. */
  readonly all: () => ReadonlyArray<SentWebhook>
  /**
   * Has the next attempts fail. They are recorded.
   *
   * @param answer - the status from 300 to 599, or `"timeout"` for no answer until `webhooks.timeout` has
   *   passed; 500 by default
   * @param times - how many attempts; 1 by default
   */
  readonly failNext: (answer?: number | "timeout", times?: number) => void
  /**
   * Sends the recorded requests that no call has forwarded yet to a receiver that runs, one after the other. They are
   * signed anew for the present, because receivers refuse requests from another time. What the receiver answers
   * changes nothing in Tenure. Rejects with the error of `fetch` if it cannot be reached.
   *
   * @param url - an HTTP or HTTPS URL, such as `http://127.0.0.1:4000/hook`
   * @returns the receiver's responses
   */
  readonly forward: (url: string) => Promise<ReadonlyArray<ForwardedWebhook>>
}

/** A forwarded request, and the receiver's answer. */
export interface ForwardedWebhook {
  readonly sent: SentWebhook
  readonly status: number
  /** The response's text. */
  readonly body: string
}

const nextOptions = Setting.object({
  /** How long to wait, in real time. Default: `"2 seconds"`. */
  timeout: Setting.withDefault(Setting.duration({ least: 0, most: 600_000 }), "2 seconds"),
})

/** The options of `next`. */
export interface NextOptions extends Setting.InputOf<typeof nextOptions> {}

const failure = Setting.object({
  answer: Setting.custom<number | "timeout", number | "timeout">(
    'a status from 300 to 599, or "timeout"',
    (given) =>
      given === "timeout" ||
      (typeof given === "number" && Number.isInteger(given) && given >= 300 && given <= 599)
        ? given
        : undefined,
  ),
  times: Setting.integer({ most: 100_000 }),
})

const shownLines = 20

const sentLine = ({ answer, sentAt, type, url }: SentWebhook): string =>
  `  ${new Date(sentAt).toISOString()} ${type} to ${url}, answered ${answer}`

/** Says what was asked for, when, and what was recorded. */
const describeMissing = (
  type: string | undefined,
  sent: ReadonlyArray<SentWebhook>,
  hasReturned: boolean,
  now: number,
): string => {
  const further = hasReturned ? "further " : ""
  const ofType = type === undefined ? "" : ` of the type ${type}`
  const until = new Date(now).toISOString()
  const earlier = sent.length - shownLines
  return [
    `No ${further}webhook${ofType} was sent until ${until}, the time of the clock. Recorded so far:`,
    ...(earlier > 0 ? [`  … and ${earlier} earlier`] : []),
    ...(sent.length === 0 ? ["  nothing"] : sent.slice(-shownLines).map(sentLine)),
  ].join("\n")
}

/** The time, and a function to have Tenure send everything due. */
export interface RecorderClock {
  readonly now: () => number
  readonly settle: () => Promise<void>
}

/** A recorder. */
export interface WebhookRecorder {
  readonly transport: Layer.Layer<WebhookTransport>
  /** Returns the webhooks that Tenure sends with the transport. */
  readonly webhooksOf: (tenure: Tenure) => TestWebhooks
}

// The host may be about to cause the webhook.
const pauseMillis = 5

const pause = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, pauseMillis)
  })

const isOfType = <Type extends string>(
  sent: SentWebhook,
  type: Type | undefined,
): sent is SentWebhook<Type> => type === undefined || sent.type === type

const recordOf = (
  { body, headers, url }: TransportRequest,
  sentAt: number,
  answer: number | "timeout",
): SentWebhook => {
  const event: { readonly type: string; readonly timestamp: string; readonly data: unknown } =
    JSON.parse(body)
  const { data, timestamp, type } = event
  return {
    id: headers["webhook-id"] ?? "",
    type,
    timestamp,
    data,
    url,
    headers,
    body,
    sentAt,
    answer,
  }
}

const receiver = Setting.object({
  url: Setting.string(
    "an HTTP or HTTPS URL",
    (given) => URL.canParse(given) && /^https?:$/.test(new URL(given).protocol),
  ),
})

const pageSize = 1000

/** Returns all webhooks' secrets by their URLs. */
const secretsByUrl = async ({
  memberships,
  webhooks,
}: Tenure): Promise<ReadonlyMap<string, ReadonlyArray<WebhookSecret>>> => {
  const secrets = new Map<string, Array<WebhookSecret>>()
  for (let after: string | undefined; ;) {
    const projects = await memberships.listProjects({ after, limit: pageSize })
    for (const { id: projectId } of projects)
      for (const { secret, url } of await webhooks.list({ projectId }))
        if (secret !== undefined) secrets.set(url, [...(secrets.get(url) ?? []), secret])
    after = projects.at(-1)?.id
    if (projects.length < pageSize) return secrets
  }
}

/** Sends a request again as if it were new. */
const sendNow = async (
  sent: SentWebhook,
  secrets: ReadonlyArray<WebhookSecret>,
  url: string,
): Promise<ForwardedWebhook> => {
  const message = { id: sent.id, timestamp: Math.floor(Date.now() / 1000), body: sent.body }
  const response = await fetch(url, {
    method: "POST",
    redirect: "manual",
    headers: {
      ...sent.headers,
      "webhook-timestamp": String(message.timestamp),
      "webhook-signature": secrets.map((secret) => signMessage(message, secret)).join(" "),
    },
    body: sent.body,
  })
  return { sent, status: response.status, body: await response.text() }
}

/** Makes a recorder. */
export const makeWebhookRecorder = ({ now, settle }: RecorderClock): WebhookRecorder => {
  const sent: Array<SentWebhook> = []
  const returned = new Set<SentWebhook>()
  const failures: Array<number | "timeout"> = []
  let forwarded = 0

  const send = (request: TransportRequest) =>
    Effect.suspend(() => {
      const answer = failures.shift() ?? 204
      sent.push(recordOf(request, now(), answer))
      return answer === "timeout"
        ? Effect.never
        : Effect.succeed({ status: answer, retryAfter: undefined, body: "" })
    })

  const take = <Type extends string>(type: Type | undefined): SentWebhook<Type> | undefined => {
    for (const one of sent) {
      if (returned.has(one) || !isOfType(one, type)) continue
      returned.add(one)
      return one
    }
    return undefined
  }

  const hasReturned = (type: string | undefined): boolean =>
    [...returned].some((one) => isOfType(one, type))

  const next = <Type extends string>(
    type?: Type,
    given: NextOptions = {},
  ): Promise<SentWebhook<Type>> => fromCallSite(next, () => waitForNext(type, given))

  const waitForNext = async <Type extends string>(
    type: Type | undefined,
    given: NextOptions,
  ): Promise<SentWebhook<Type>> => {
    const { timeout } = Setting.parse(nextOptions, given)
    let isOver = false
    const timer = setTimeout(() => {
      isOver = true
    }, timeout)
    try {
      for (;;) {
        await settle()
        const found = take(type)
        if (found !== undefined) return found
        if (isOver) throw new WebhookNotSent(describeMissing(type, sent, hasReturned(type), now()))
        await pause()
      }
    } finally {
      clearTimeout(timer)
    }
  }

  const forwardTo = async (tenure: Tenure, given: string) => {
    const { url } = Setting.parse(receiver, { url: given })
    await settle()
    const secrets = await secretsByUrl(tenure)
    const responses: Array<ForwardedWebhook> = []
    for (let one = sent[forwarded]; one !== undefined; one = sent[forwarded]) {
      responses.push(await sendNow(one, secrets.get(one.url) ?? [], url))
      forwarded++
    }
    return responses
  }

  return {
    transport: Layer.succeed(WebhookTransport, { sendsHttpToNames: true, send }),
    webhooksOf: (tenure) => {
      const forward: TestWebhooks["forward"] = (url) =>
        fromCallSite(forward, () => forwardTo(tenure, url))
      return {
        register: async (projectId, url = "https://receiver.example/") => {
          await tenure.memberships.createProject(projectId)
          return tenure.webhooks.create({ projectId, url })
        },
        next,
        forward,
        all: () => [...sent],
        failNext: (answer = 500, times = 1) => {
          const parsed = Setting.parse(failure, { answer, times })
          failures.push(...Array.from({ length: parsed.times }, () => parsed.answer))
        },
      }
    },
  }
}
