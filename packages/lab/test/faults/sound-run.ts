/** A small run, made by hand, in which nothing is wrong. */

import { secretFromBytes, signMessage } from "@tenure/core/signature"
import type { Arrival, AuditRow, Operation, Run } from "../../faults/history.ts"

/** When the run begins. */
export const begin = Date.UTC(2030, 0)

const projectId = "p1"
const url = "http://127.0.0.1:1/fast/0"
const deletedUrl = "http://127.0.0.1:1/fast/1"
const secret = secretFromBytes(new Uint8Array(32).fill(7))
const webhook = { id: "w1", url, secret }
const deleted = { id: "w2", url: deletedUrl, secret }

const asked = (
  second: number,
  fields: Pick<Operation, "action"> & Partial<Operation>,
): Operation => ({
  process: "s1",
  projectId,
  start: begin + 1000 * second,
  end: begin + 1000 * second + 20,
  status: 200,
  expected: [200],
  ...fields,
})

const dateOf = (number: number): number => Date.UTC(2100, 0) + number

const extending = (second: number, number: number, fields: Partial<Operation> = {}): Operation =>
  asked(second, {
    action: "extend",
    userId: "1001",
    endDate: dateOf(number),
    key: "c1",
    requestId: `request-${number}`,
    ...fields,
  })

const row = (number: number, from: number, fields: Partial<AuditRow> = {}): AuditRow => ({
  projectId,
  userId: "1001",
  action: "extended",
  from: dateOf(from),
  to: dateOf(number),
  requestId: `request-${number}`,
  ...fields,
})

const changeEvent = (number: number, type: string, userId: string | undefined) => ({
  id: `event-${number}`,
  projectId,
  type,
  body: JSON.stringify({
    type,
    timestamp: new Date(begin).toISOString(),
    data: {
      project_id: projectId,
      user_id: userId,
      new_end_date: new Date(dateOf(number)).toISOString(),
      request_id: number === 0 ? null : `request-${number}`,
    },
  }),
})

const payment = {
  id: "event-payment",
  projectId,
  type: "payment.completed",
  body: '{"type":"payment.completed","timestamp":"","data":{"payment":"7"}}',
}

const ofSecond = (action: string, from: number | undefined, requestId?: string): AuditRow => ({
  projectId,
  userId: "1002",
  action,
  from,
  to: endDate,
  requestId,
})

/** A row of the person who was erased. */
const ofPerson = (action: string, to: number | undefined, requestId: string): AuditRow => ({
  projectId,
  userId: undefined,
  action,
  from: undefined,
  to,
  requestId,
})

// The member who comes and expires, with a reminder.
const endDate = begin + 11_000

const granted = {
  id: "event-granted",
  projectId,
  type: "membership.granted",
  body: JSON.stringify({
    data: {
      user_id: "1002",
      new_end_date: new Date(endDate).toISOString(),
      request_id: "request-granted",
    },
  }),
}

const announcing = (type: string, second: number, sequence: number, reminder?: number) => ({
  id: `event-${type}`,
  projectId,
  type,
  body: JSON.stringify({
    timestamp: new Date(begin + 1000 * second).toISOString(),
    data: { user_id: "1002", end_date: new Date(endDate).toISOString(), reminder, sequence },
  }),
})

const telling = (type: string, fields: object) => ({
  id: `event-${type}`,
  projectId,
  type,
  body: JSON.stringify({ data: fields }),
})

const lengthened = {
  ...changeEvent(-1, "memberships.extended", undefined),
  body: JSON.stringify({
    data: {
      new_end_date: new Date(dateOf(-1)).toISOString(),
      request_id: "request--1",
      mode: "never_shorten",
    },
  }),
}

/** All events, with the seconds in which they happen. */
const told = [
  [0, changeEvent(0, "membership.granted", "1001")],
  [2, changeEvent(1, "membership.extended", "1001")],
  [3, changeEvent(2, "membership.extended", "1001")],
  [4, changeEvent(3, "memberships.extended", undefined)],
  [5, changeEvent(4, "membership.extended", "1001")],
  [5.6, lengthened],
  [6, payment],
  [7, granted],
  [8, announcing("membership.expiring", 8, 2, 3)],
  [
    8.2,
    telling("memberships.imported", { total: 1, request_id: "request-imported", sequence: 10 }),
  ],
  [8.6, telling("membership.ended", { user_id: null, request_id: "request-erased", sequence: 11 })],
  [11, announcing("membership.expired", 11, 3)],
] as const

const events = told.map(([, event]) => event)

const sent = told.slice(1)

const arrivals = sent.map(([second, { body, id }]): Arrival => {
  const at = begin + 1000 * second + 100
  const timestamp = Math.floor(at / 1000)
  const signature = signMessage({ id, timestamp, body }, secret)
  const headers = {
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": signature,
  }
  return { url, at, headers, body, status: 204, ended: at + 1 }
})

const person = { process: "host", userId: "1003" } as const

/**
 * The run: three extensions and a bulk extension between them, of one member with one webhook. The last of
 * them is repeated, and a bulk extension leaves it as it is. Then another member comes, and expires, and a
 * third one comes by an import, and is erased.
 */
export const soundRun: Run = {
  seed: 0,
  processes: ["s1", "s2", "host"],
  operations: [
    asked(0.1, { action: "createWebhook", webhook }),
    asked(0.2, { action: "createWebhook", webhook: deleted }),
    asked(0.3, { action: "deleteWebhook", subject: deleted.id }),
    extending(2, 1),
    extending(3, 2),
    asked(4, { action: "extendAll", endDate: dateOf(3), requestId: "request-3" }),
    extending(5, 4, { idempotencyKey: "key-4" }),
    extending(5.2, 4, { idempotencyKey: "key-4", isReplayed: true, requestId: "request-again" }),
    extending(5.3, 7, { idempotencyKey: "key-4", status: 422, expected: [200, 422] }),
    asked(5.5, { action: "find", process: "host", userId: "1001", endDate: dateOf(4) }),
    asked(5.6, {
      action: "extendAll",
      isNeverShortening: true,
      endDate: dateOf(-1),
      requestId: "request--1",
    }),
    asked(6, { action: "publish", process: "host", subject: "7" }),
    asked(7, {
      action: "grant",
      process: "host",
      userId: "1002",
      endDate,
      requestId: "request-granted",
    }),
    ...Array.from({ length: 20 }, () => asked(7, { action: "listWebhooks", key: "c2" })),
    asked(7, { action: "listWebhooks", key: "c2", status: 429 }),
    asked(8.2, {
      action: "import",
      requestId: "request-imported",
      members: [{ userId: "1003", endDate: dateOf(10) }],
    }),
    asked(8.4, {
      action: "list",
      members: [
        { userId: "1003", endDate: dateOf(10) },
        { userId: "1004", endDate: undefined },
      ],
    }),
    asked(8.6, { ...person, action: "erase", requestId: "request-erased" }),
    asked(8.8, { ...person, action: "find", status: 404, expected: [200, 404] }),
    asked(8, { action: "invalid", key: "c1", status: 422, expected: [422] }),
    extending(20.1, 6, { status: 503, requestId: "request-6" }),
  ],
  arrivals,
  readers: [
    {
      name: "poller0",
      projectId,
      got: [
        ...told.slice(0, 3).map((one) => ({ one, isSettled: true })),
        // A cut, after which an event comes again.
        ...told.slice(3, 4).map((one) => ({ one, isSettled: false })),
        ...told.slice(3).map((one) => ({ one, isSettled: true })),
      ].map(({ isSettled, one: [second, { id }] }) => ({
        eventId: id,
        at: begin + 1000 * second + 50,
        isSettled,
      })),
    },
  ],
  naive: {
    name: "naive",
    projectId,
    // The event of a transaction that has committed late is missing.
    got: events
      .filter((_, index) => index !== 2)
      .map(({ id }) => ({ eventId: id, at: begin + 8000, isSettled: true })),
  },
  connections: [{ key: "listener0", process: "s1", from: begin, to: begin + 1000 }],
  revocations: [{ revoked: begin + 1000, ended: begin + 2000 }],
  intrusions: [{ sent: "a binary frame", at: begin + 1000, ended: begin + 1010 }],
  manners: { [url]: "fast", [deletedUrl]: "fast" },
  faults: [{ kind: "linkRefused", target: "s1", start: begin + 20_000, end: begin + 20_500 }],
  exits: [{ process: "s1", code: 0, signal: null, millis: 100 }],
  logs: [{ process: "s1", text: '{"level":"info","path":"/v2"}' }],
  secrets: { "the API key c1": "correct horse" },
  sizes: [
    {
      process: "s1",
      before: { bytes: 2 ** 26, handles: 30 },
      after: { bytes: 2 ** 27, handles: 32 },
    },
  ],
  samples: [
    { process: "s1", id: 1, at: begin, heapBytes: 2 ** 25, bytes: 2 ** 26, handles: 30 },
    { process: "s1", id: 1, at: begin + 20_000, heapBytes: 2 ** 25, bytes: 2 ** 27, handles: 32 },
  ],
  leads: [3000, 0],
  limits: [{ capacity: 20, perSecond: 20 }],
  mostAttempts: 5,
  slackMillis: 0,
  backlog: 10,
  drainedMillis: 100,
  endedAt: begin + 30_000,
  state: {
    memberships: [
      { projectId, userId: "1001", endDate: dateOf(4) },
      { projectId, userId: "1002", endDate },
    ],
    audit: [
      row(0, 0, { action: "granted", from: undefined, requestId: undefined }),
      row(1, 0),
      row(2, 1),
      row(3, 0, { action: "bulk_extended", userId: undefined, from: undefined }),
      row(4, 3),
      row(-1, 0, { action: "bulk_lengthened", userId: undefined, from: undefined }),
      ofSecond("granted", undefined, "request-granted"),
      ofSecond("expiring", endDate),
      ofSecond("expired", endDate),
      ofPerson("imported", dateOf(10), "request-imported"),
      ofPerson("person_erased", undefined, "request-erased"),
    ],
    events,
    deliveries: sent.map(([, { id: eventId }]) => ({
      eventId,
      webhookId: webhook.id,
      state: "delivered",
      attempts: 1,
    })),
    webhooks: [{ ...webhook, projectId, isDisabled: false }],
  },
}
