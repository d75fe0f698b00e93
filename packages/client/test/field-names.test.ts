import { describe, expect, it } from "vitest"
import { createClient } from "../src/create-client.ts"
import { fields } from "../src/operations.ts"
import {
  type VerifyOptions,
  WebhookVerificationError,
  verifyWebhook,
} from "../src/verify-webhook.ts"
import { errorOf } from "./support.ts"

const sent: Array<string> = []

const client = createClient({
  baseUrl: "http://127.0.0.1:1",
  token: "t",
  maxRetries: 0,
  fetch: async (url) => {
    sent.push(String(url))
    return new Response("{}", { status: 200 })
  },
})

/** Calls an operation as JavaScript does. Returns its error. */
const callError = (operation: string, ...args: ReadonlyArray<unknown>): Promise<unknown> => {
  const [resource = "", name = ""] = operation.split(".")
  const service: object = Reflect.get(client, resource)
  return errorOf((async () => Reflect.apply(Reflect.get(service, name), service, args))())
}

const camel = (name: string): string =>
  name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())

const spellings = (name: string): ReadonlyArray<string> =>
  [
    camel(name),
    name.replaceAll("_", "-"),
    name.toUpperCase(),
    name.endsWith("s") ? name.slice(0, -1) : `${name}s`,
  ].filter((spelling) => spelling !== name)

const operations = Object.entries(fields).flatMap(([resource, routes]) =>
  Object.values(routes).map((text) => {
    const [name = "", ...names] = text.split(" ")
    return { operation: `${resource}.${name}`, names }
  }),
)

const member = { project_id: "p1", user_id: "1001" }
const extend = "2099-01-01T00:00:00.000Z"

describe("another spelling of a field", () => {
  it.each(operations)("is refused by $operation, before anything is sent", async (one) => {
    sent.length = 0
    for (const name of one.names) {
      for (const spelling of spellings(name)) {
        expect(await callError(one.operation, { [spelling]: "x" })).toEqual(
          new TypeError(`${spelling} must be written "${name}"`),
        )
      }
    }
    expect(sent).toEqual([])
  })

  it("is refused in the options of a client, of a call and of a receiver", async () => {
    const options = { baseUrl: "http://127.0.0.1:1", max_retries: 0 }
    expect(() => createClient(options)).toThrow('max_retries must be written "maxRetries"')
    const error = await callError("projects.create", { project_id: "p1" }, { idempotency_key: "k" })
    expect(error).toEqual(new TypeError('idempotency_key must be written "idempotencyKey"'))
    const lax: VerifyOptions = JSON.parse('{ "tolerance_seconds": 5 }')
    await expect(
      verifyWebhook({ headers: {}, body: "" }, ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"], lax),
    ).rejects.toThrow(
      new WebhookVerificationError(
        "InvalidOptions",
        'tolerance_seconds must be written "toleranceSeconds"',
      ),
    )
  })
})

const refused: ReadonlyArray<
  readonly [operation: string, args: ReadonlyArray<object>, problem: string]
> = [
  ["memberships.extend", [{ ...member, extend, dryrun: true }], 'must be written "dry_run"'],
  ["memberships.extend", [{ ...member, extend, dyr_run: true }], 'must be written "dry_run"'],
  ["memberships.extend", [{ ...member, extend, neverShorten: true }], 'must be written "mode"'],
  ["memberships.extend", [{ ...member, by: "P1M" }], 'must be written "extend_by"'],
  ["memberships.extend", [{ ...member, end_date: extend }], 'must be written "extend"'],
  ["memberships.list", [{ project_id: "p1", before: extend }], 'must be written "ending_before"'],
  ["webhooks.create", [{ project_id: "p1", types: ["a.b"] }], 'must be written "event_types"'],
  ["webhooks.replayMany", [{ ...member, dryRun: true }], 'must be written "dry_run"'],
  ["events.subscribe", [{ project_id: "p1", on_event() {} }], 'must be written "onEvent"'],
  // These belong elsewhere.
  ["memberships.extend", [{ ...member, extend, metadata: {} }], "it is for grant, update"],
  ["memberships.extendAll", [{ ...member, extend }], "must be left out: it is for "],
  ["memberships.end", [{ ...member, dry_run: true }], "must be left out: it is for "],
  ["memberships.extend", [{ ...member, extend, idempotencyKey: "k" }], "the second argument"],
  ["memberships.extend", [{ ...member, extend }, { dry_run: true }], "the first argument"],
  ["webhooks.delete", [{ project_id: "p1", webhook_id: "w", dry_run: true }], "it is for replay"],
]

it.each(refused)(
  "a field with a wrong name is refused by %s: %j",
  async (operation, args, problem) => {
    expect(await callError(operation, ...args)).toMatchObject({
      name: "TypeError",
      message: expect.stringContaining(problem),
    })
  },
)

it.each([
  { id: 5, email: "ada@example.com", plan: "gold", createdAt: 1, user: {}, project: {} },
  { end_date: extend, state: "active", metadata: {} },
  { dryRun: undefined },
])("others are left to the server: %j", async (others) => {
  sent.length = 0
  await callError("memberships.extend", { ...member, extend, ...others })
  expect(sent).toHaveLength(1)
})
