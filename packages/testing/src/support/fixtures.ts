/** Values for tests. */

import * as Http from "node:http"
import { text } from "node:stream/consumers"
import {
  type EventDraft,
  digestToken,
  draftEvent,
  eventData,
  makeEvent,
} from "@tenure/core/internal"
import { WebhookSecret, secretFromBytes, verifySignature } from "@tenure/core/signature"
import {
  type ApiKey,
  ApiKeyId,
  type Change,
  type ChangeContext,
  EndDate,
  type Event,
  EventId,
  EventType,
  type IdempotencyKey,
  ProjectId,
  StoredSecret,
  type StoredWebhook,
  UserId,
  WebhookId,
  hostOrigin,
  defaultProjectSettings,
  instantForm,
  parseEndDate,
} from "@tenure/core/store"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { expect } from "vitest"

export const p1 = ProjectId("p1")
export const p2 = ProjectId("p2")
export const u1 = UserId("1001")
export const u2 = UserId("1002")
export const u3 = UserId("1003")

/** User ids at hosts and sign-in services, and some that programs may mistake for something else. */
export const manyKindsOfUser = [
  "7",
  "07",
  "9".repeat(64),
  "0b0c7d9e-5a64-4c1f-8d6d-5a7c1b5d2c11",
  "user_2ab9XyZ",
  "cus_NffrFeUfNV2Hib",
  "auth0:ada",
  "ada.l+1@example.com",
  "Ada",
  "ada",
  "-1",
  "1e3",
  "...",
  "constructor",
  "__proto__",
  "null",
  "extend",
  "import",
  "z".repeat(128),
  "auth0|6123abcd0000000000000001",
  "o'brien@example.com",
  "gid://shopify/Customer/1",
  "dXNlcjoxMDAx==",
  "ada%40example.com",
  "%",
  "%2e",
  "%2F..%2f",
  "/",
  "a//b/../c",
  "..\\",
  "a,b;c=d",
  "a%2Cb",
  "?a=b&c#d",
  "~",
  "~~a",
  '"',
  '"user_id":"7"',
  "$&\\1",
  "(?:.*)|[^{}]+",
  "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
].map(UserId)

/** Parses an ISO date. */
export const date = (written: string): EndDate => EndDate(parseEndDate(written) ?? NaN)

export const in2027 = date("2027-01-01T00:00:00.000Z")
export const in2028 = date("2028-02-29T12:34:56.789Z")
export const in2029 = date("2029-12-31T23:59:59.999Z")

/** Returns a new event for a project, about a user if one is given. */
export const event = (projectId: ProjectId, type = "test.happened", userId?: string): Event =>
  makeEvent({
    id: EventId(crypto.randomUUID()),
    projectId,
    type: EventType(type),
    at: 0,
    data: { project_id: projectId, user_id: userId },
  })

/** Returns a new event draft for a project's change. */
export const draft = (projectId: ProjectId, type = "test.happened"): EventDraft =>
  draftEvent({
    id: EventId(crypto.randomUUID()),
    projectId,
    type: EventType(type),
    at: 0,
    data: { project_id: projectId },
  })

/** Returns the sequence number in a change's event. */
export const sequenceOf = (changed: Event): number => {
  const data = eventData(changed)
  return Predicate.hasProperty(data, "sequence") ? Number(data.sequence) : NaN
}

/** Nothing in tests was made before: in milliseconds since the epoch. */
export const longAgo = -10_000_000_000_000

/** The fields of a membership whose end date is an instant, in a project with the default settings. */
export const asInstant = { ...instantForm, ...defaultProjectSettings }

/** A change context without a particular origin. */
export const context: ChangeContext = { origin: hostOrigin, at: 0 }

/** Returns a request with a new idempotency key. */
export const idempotency = (): IdempotencyKey => ({
  owner: "key-1",
  key: crypto.randomUUID(),
  fingerprint: "a request",
})

/** Returns a change in a project, with a new event. */
export const change = (projectId: ProjectId, type?: string): Change => ({
  projectId,
  ...context,
  reason: undefined,
  event: draft(projectId, type),
})

/** Returns a new webhook for a project, with a new secret. */
export const makeWebhook = (projectId: ProjectId): StoredWebhook => {
  const id = WebhookId(crypto.randomUUID())
  return {
    id,
    projectId,
    url: `https://receiver.example/${id}`,
    secret: StoredSecret(secretFromBytes(crypto.getRandomValues(new Uint8Array(32)))),
    previous: undefined,
    signingKey: undefined,
    eventTypes: undefined,
    ordered: false,
    rate: undefined,
    createdAt: 1234,
    description: undefined,
    headers: undefined,
    disabled: undefined,
  }
}

/** Returns an API key with the given token and projects. */
export const apiKey = (token: string, ...projects: ReadonlyArray<ProjectId>): ApiKey => ({
  id: ApiKeyId(crypto.randomUUID()),
  digest: digestToken(token),
  role: "client",
  name: undefined,
  projects: new Set(projects),
  createdAt: 0,
  expiresAt: undefined,
  revokedAt: undefined,
  lastUsedAt: undefined,
})

/** Waits until a condition holds. Fails the test if it does not hold within a minute. */
export const eventually = (holds: () => Promise<boolean> | boolean): Promise<unknown> =>
  expect.poll(holds, { timeout: 60_000, interval: 20 }).toBe(true)

/** A received request. */
export interface Notification {
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: string
  /** When it was received, in milliseconds since the epoch. */
  readonly at: number
}

/** A running receiver. */
export interface Receiver {
  readonly url: string
  readonly received: ReadonlyArray<Notification>
  /** Waits until it has received this number of requests. */
  readonly until: (count: number) => Promise<void>
  readonly close: () => void
}

/** Responds to a request. */
export type Answer = (response: Http.ServerResponse, notification: Notification) => void

const noContent: Answer = (response) => void response.writeHead(204).end()

/** Tells whether a notification is signed with a secret. */
export const isSignedWith = ({ at, body, headers }: Notification, secret: string): boolean =>
  Result.isSuccess(verifySignature({ headers, body, now: at }, [WebhookSecret(secret)]))

/** Starts a receiver. It responds with 204 unless an answer is given. */
export const startReceiver = async (answer: Answer = noContent): Promise<Receiver> => {
  const received: Array<Notification> = []
  const waiting = new Set<() => void>()
  const server = Http.createServer(async (request, response) => {
    const body = await text(request).catch(() => undefined)
    // The sender closed the connection.
    if (body === undefined) return
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, value?.toString()]),
    )
    const notification = { headers, body, at: Date.now() }
    received.push(notification)
    for (const check of waiting) check()
    answer(response, notification)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" ? address?.port : undefined
  return {
    url: `http://127.0.0.1:${port}/hook`,
    received,
    until: (count) =>
      new Promise((resolve) => {
        const check = () => {
          if (received.length < count) return
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
        check()
      }),
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
