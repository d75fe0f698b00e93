/** Calls in process with another call's idempotency key. */

import { memory } from "@tenure/memory"
import { afterEach, beforeEach, expect, it } from "vitest"
import { type Tenure, createTenure } from "../src/tenure.ts"

const member = { projectId: "p1", userId: "1" }
const endDate = "2099-01-01T00:00:00.000Z"
const otherDate = "2098-01-01T00:00:00.000Z"
const url = "https://receiver.example/"

let tenure: Tenure
let webhookId: string
let eventId: string
let bulkId: string

beforeEach(async () => {
  tenure = await createTenure({ stores: memory(), webhooks: { dispatch: false } })
  for (const projectId of ["p1", "p2"]) {
    await tenure.memberships.createProject(projectId)
    for (const userId of ["1", "2"]) {
      await tenure.memberships.grant({ projectId, userId, endDate: otherDate })
    }
  }
  await tenure.memberships.extendAll({ projectId: "p1", endDate: otherDate })
  bulkId = (await tenure.memberships.bulkExtensions({ projectId: "p1" }))[0]?.id ?? ""
  webhookId = (await tenure.webhooks.create({ projectId: "p1", url })).id
  eventId = await tenure.events.publish({ projectId: "p1", type: "a", data: 1 })
})

afterEach(() => tenure.close())

/** A call with an idempotency key, its arguments, and another value for each. */
interface Keyed<Input> {
  readonly call: (input: Input & { readonly idempotencyKey: string }) => Promise<unknown>
  readonly input: Input
  readonly others: { readonly [Name in keyof Input]: unknown }
}

/** Returns calls with the same key; only the first is made. */
const keyed = <Input extends object>({ call, input, others }: Keyed<Input>) =>
  [input, ...Object.entries(others).map(([name, value]) => ({ ...input, [name]: value }))].map(
    (given) => () => call({ ...given, idempotencyKey: "k1" }),
  )

const dated = { ...member, endDate, reason: "paid" }
const otherDated = { projectId: "p2", userId: "2", endDate: otherDate, reason: "a gift" }
const { userId: _, ...all } = { ...dated, mode: "set" as const }
const { userId: __, ...others } = { ...otherDated, mode: "neverShorten" as const }

const rows = (of: string) => [{ userId: "3", endDate: of }]

const settings = {
  eventTypes: ["a"],
  ordered: true,
  rate: 1,
  description: "one",
  headers: { "x-a": "1" },
}
const otherSettings = {
  eventTypes: ["b"],
  ordered: false,
  rate: 2,
  description: "other",
  headers: { "x-a": "2" },
}

/** All changes with an idempotency key. */
const calls: Readonly<Record<string, () => ReadonlyArray<() => Promise<unknown>>>> = {
  "memberships.grant": () =>
    keyed({
      call: (input) => tenure.memberships.grant(input),
      input: { ...dated, metadata: { plan: "gold" } },
      others: { ...otherDated, metadata: {} },
    }),
  "memberships.import": () =>
    keyed({
      call: (input) => tenure.memberships.import(input),
      input: { projectId: "p1", memberships: rows(endDate), reason: "moved" },
      others: { projectId: "p2", memberships: rows(otherDate), reason: "again" },
    }),
  "memberships.extend": () =>
    keyed({
      call: (input) => tenure.memberships.extend(input),
      input: { ...dated, expectedEndDate: otherDate },
      others: { ...otherDated, expectedEndDate: endDate },
    }),
  "memberships.extend by a duration": () =>
    keyed({
      call: (input) => tenure.memberships.extend(input),
      input: { ...member, by: "P1M", from: "end" as const },
      others: { projectId: "p2", userId: "2", by: "P1Y", from: "now" as const },
    }),
  "memberships.extendAll": () =>
    keyed({ call: (input) => tenure.memberships.extendAll(input), input: all, others }),
  "memberships.undoBulkExtension": () =>
    keyed({
      call: (input) => tenure.memberships.undoBulkExtension(input),
      input: { projectId: "p1", id: bulkId, reason: "a mistake" },
      others: { projectId: "p2", id: crypto.randomUUID(), reason: "another" },
    }),
  "memberships.update": () =>
    keyed({
      call: (input) => tenure.memberships.update(input),
      input: { ...member, metadata: { plan: "gold" }, reason: "paid" },
      others: { projectId: "p2", userId: "2", metadata: { plan: "silver" }, reason: "a gift" },
    }),
  "memberships.end": () =>
    keyed({
      call: (input) => tenure.memberships.end(input),
      input: { ...member, reason: "left" },
      others: { projectId: "p2", userId: "2", reason: "asked" },
    }),
  "memberships.move": () =>
    keyed({
      call: (input) => tenure.memberships.move(input),
      input: { ...member, to: "3", reason: "renamed" },
      others: { projectId: "p2", userId: "2", to: "4", reason: "again" },
    }),
  "memberships.erase": () =>
    keyed({
      call: (input) => tenure.memberships.erase(input),
      input: member,
      others: { projectId: "p2", userId: "2" },
    }),
  "memberships.createProject": () =>
    keyed({
      call: ({ id, ...key }) => tenure.memberships.createProject(id, {}, key),
      input: { id: "p3" },
      others: { id: "p4" },
    }),
  "memberships.deleteProject": () =>
    keyed({
      call: ({ id, ...key }) => tenure.memberships.deleteProject(id, {}, key),
      input: { id: "p1" },
      others: { id: "p2" },
    }),
  "webhooks.create": () =>
    keyed({
      call: (input) => tenure.webhooks.create(input),
      input: {
        projectId: "p1",
        url,
        ...settings,
      },
      others: {
        projectId: "p2",
        url: `${url}other`,
        ...otherSettings,
      },
    }),
  "webhooks.update": () =>
    keyed({
      call: (input) => tenure.webhooks.update({ projectId: "p1", webhookId, ...input }),
      input: {
        url: `${url}one`,
        ...settings,
        disabled: false,
      },
      others: {
        url: `${url}other`,
        ...otherSettings,
        disabled: true,
      },
    }),
  "webhooks.rotateSecret": () =>
    keyed({
      call: (input) => tenure.webhooks.rotateSecret({ projectId: "p1", webhookId, ...input }),
      input: { keepOldFor: "1 hour" as const },
      others: { keepOldFor: "2 hours" as const },
    }),
  "webhooks.replay": () =>
    keyed({
      call: (input) => tenure.webhooks.replay({ projectId: "p1", webhookId, ...input }),
      input: { eventId },
      others: { eventId: crypto.randomUUID() },
    }),
  "webhooks.replayMany": () =>
    keyed({
      call: (input) => tenure.webhooks.replayMany({ projectId: "p1", webhookId, ...input }),
      input: { since: otherDate, only: "failed" as const, types: ["a"] },
      others: { since: endDate, only: "missed" as const, types: ["b"] },
    }),
  "webhooks.ping, enable and delete": () =>
    (["ping", "enable", "delete"] as const).map(
      (name) => () => tenure.webhooks[name]({ projectId: "p1", webhookId, idempotencyKey: "k1" }),
    ),
  "events.publish": () =>
    keyed({
      call: (input) => tenure.events.publish(input),
      input: { projectId: "p1", type: "a", data: { amount: 1 } },
      others: { projectId: "p2", type: "b", data: { amount: 2 } },
    }),
  "apiKeys.issue": () =>
    keyed({
      call: (input) => tenure.apiKeys.issue(input),
      input: {
        projects: ["p1"],
        role: "client" as const,
        name: "one",
        expiresAt: endDate,
        token: "a".repeat(32),
      },
      others: {
        projects: ["p2"],
        role: "operator" as const,
        name: "other",
        expiresAt: otherDate,
        token: "b".repeat(32),
      },
    }),
}

it.each(Object.entries(calls))(
  "%s refuses the key of a call with another argument",
  async (_name, of) => {
    const [first, ...rest] = of()
    await first?.()
    for (const call of rest)
      await expect(call()).rejects.toMatchObject({ _tag: "IdempotencyMismatch" })
  },
)
