/** A small run, made by hand, in which nothing is wrong. */

import { secretFromBytes, signMessage } from "@tenure/core/signature"
import type { Arrival, AuditRow, Operation, Run } from "../../faults/history.ts"

/** When the run begins. */
export const begin = Date.UTC(2030, 0)

/** An end date in the run, by its number. */
export const dateOf = (number: number): number => Date.UTC(2100, 0) + number

const projectId = "p1"
const url = "http://127.0.0.1:1/fast/0"
const deletedUrl = "http://127.0.0.1:1/fast/1"
const secret = secretFromBytes(new Uint8Array(32).fill(7))
const webhook = { id: "w1", url, secret }
const deleted = { id: "w2", url: deletedUrl, secret }

/** When another member's membership ends, about whom a reminder was sent. */
const endDate = begin + 11_000

const asked = (
  second: number,
  action: Operation["action"],
  fields: Partial<Operation> = {},
): Operation => ({
  action,
  process: "s1",
  projectId,
  start: begin + 1000 * second,
  end: begin + 1000 * second + 20,
  status: 200,
  expected: [200],
  ...fields,
})

const extending = (second: number, number: number, fields: Partial<Operation> = {}): Operation =>
  asked(second, "extend", {
    userId: "1001",
    endDate: dateOf(number),
    key: "c1",
    requestId: `request-${number}`,
    ...fields,
  })

const row = (
  userId: string | undefined,
  action: string,
  from: number | undefined,
  to: number | undefined,
  requestId?: string | number,
): AuditRow => ({
  projectId,
  userId,
  action,
  from,
  to,
  requestId: requestId === undefined ? undefined : `request-${requestId}`,
})

const event = (second: number, id: string, type: string, fields: object) =>
  [
    second,
    {
      id: `event-${id}`,
      projectId,
      type,
      body: JSON.stringify({
        type,
        timestamp: new Date(begin + 1000 * second).toISOString(),
        data: fields,
      }),
    },
  ] as const

const changed = (second: number, number: number, type: string, userId?: string, more = {}) =>
  event(second, String(number), type, {
    project_id: projectId,
    user_id: userId,
    new_end_date: new Date(dateOf(number)).toISOString(),
    request_id: number === 0 ? null : `request-${number}`,
    ...more,
  })

const ofSecond = { user_id: "1002", end_date: new Date(endDate).toISOString() }

/** All events, with the seconds in which they happen. */
const told = [
  changed(0, 0, "membership.granted", "1001"),
  changed(2, 1, "membership.extended", "1001"),
  changed(3, 2, "membership.extended", "1001"),
  changed(4, 3, "memberships.extended"),
  changed(5, 4, "membership.extended", "1001"),
  changed(5.6, -1, "memberships.extended", undefined, { mode: "never_shorten" }),
  event(6, "payment", "payment.completed", { payment: "7" }),
  event(7, "granted", "membership.granted", {
    user_id: "1002",
    new_end_date: ofSecond.end_date,
    request_id: "request-granted",
  }),
  event(8, "expiring", "membership.expiring", { ...ofSecond, reminder: 3, sequence: 2 }),
  event(8.2, "imported", "memberships.imported", {
    total: 1,
    request_id: "request-imported",
    sequence: 10,
  }),
  event(8.6, "ended", "membership.ended", {
    user_id: null,
    request_id: "request-erased",
    sequence: 11,
  }),
  event(11, "expired", "membership.expired", { ...ofSecond, sequence: 3 }),
]

const events = told.map(([, one]) => one)

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

/**
 * The run: three extensions and a bulk extension between them, for one member with one webhook. The last of
 * them is repeated, and a bulk extension leaves it as it is. Then another member comes, and expires, and a
 * third one comes by an import, and is erased.
 */
export const soundRun: Run = {
  seed: 0,
  processes: ["s1", "s2", "host"],
  operations: [
    asked(0.1, "createWebhook", { webhook }),
    asked(0.2, "createWebhook", { webhook: deleted }),
    asked(0.3, "deleteWebhook", { subject: deleted.id }),
    extending(2, 1),
    extending(3, 2),
    asked(4, "extendAll", { endDate: dateOf(3), requestId: "request-3" }),
    extending(5, 4, { idempotencyKey: "key-4" }),
    extending(5.2, 4, { idempotencyKey: "key-4", isReplayed: true, requestId: "request-again" }),
    extending(5.3, 7, { idempotencyKey: "key-4", status: 422, expected: [200, 422] }),
    asked(5.5, "find", { process: "host", userId: "1001", endDate: dateOf(4) }),
    asked(5.6, "extendAll", {
      isNeverShortening: true,
      endDate: dateOf(-1),
      requestId: "request--1",
    }),
    asked(6, "publish", { process: "host", subject: "7" }),
    asked(7, "grant", { process: "host", userId: "1002", endDate, requestId: "request-granted" }),
    ...Array.from({ length: 20 }, () => asked(7, "listWebhooks", { key: "c2" })),
    asked(7, "listWebhooks", { key: "c2", status: 429 }),
    asked(8.2, "import", {
      requestId: "request-imported",
      members: [{ userId: "1003", endDate: dateOf(10) }],
    }),
    asked(8.4, "list", {
      members: [
        { userId: "1003", endDate: dateOf(10) },
        { userId: "1004", endDate: undefined },
      ],
    }),
    asked(8.6, "erase", { process: "host", userId: "1003", requestId: "request-erased" }),
    asked(8.8, "find", { process: "host", userId: "1003", status: 404, expected: [200, 404] }),
    asked(8, "invalid", { key: "c1", status: 422, expected: [422] }),
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
    // The event from a transaction that has committed late is missing.
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
  maxAttempts: 5,
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
      row("1001", "granted", undefined, dateOf(0)),
      row("1001", "extended", dateOf(0), dateOf(1), 1),
      row("1001", "extended", dateOf(1), dateOf(2), 2),
      row(undefined, "bulk_extended", undefined, dateOf(3), 3),
      row("1001", "extended", dateOf(3), dateOf(4), 4),
      row(undefined, "bulk_lengthened", undefined, dateOf(-1), -1),
      row("1002", "granted", undefined, endDate, "granted"),
      row("1002", "expiring", endDate, endDate),
      row("1002", "expired", endDate, endDate),
      // The person who was erased.
      row(undefined, "imported", undefined, dateOf(10), "imported"),
      row(undefined, "person_erased", undefined, undefined, "erased"),
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
