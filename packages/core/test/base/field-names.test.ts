import { memory } from "@tenure/memory"
import { afterAll, describe, expect, it } from "vitest"
import type { Fields } from "../../src/base/field-names.ts"
import { createTenure } from "../../src/index.ts"
import { toPrincipal } from "../../src/keys/identity.ts"
import { membershipNames } from "../../src/memberships/names.ts"
import { eventNames, webhookNames } from "../../src/webhooks/inputs.ts"

const tenure = await createTenure({
  stores: memory(),
  logger: { info() {}, warn() {}, error() {} },
  webhooks: { dispatch: false },
})
afterAll(() => tenure.close())
await tenure.memberships.createProject("p1")
const member = { projectId: "p1", userId: "1001" }
const endDate = "2099-01-01T00:00:00.000Z"
const by = "P1M"
const granted = await tenure.memberships.grant({ ...member, endDate })
const webhook = await tenure.webhooks.create({ projectId: "p1", url: "https://a.example/" })
const hook = { projectId: "p1", webhookId: webhook.id }

/** Calls a method as JavaScript does. Returns its error or its result. */
const call = async (service: object, method: string, ...args: ReadonlyArray<unknown>) => {
  try {
    return await Reflect.apply(Reflect.get(service, method), service, args)
  } catch (error) {
    return error
  }
}

const refused = (field: string, problem: string) => ({
  _tag: "InvalidInput",
  message: expect.stringContaining(`${field} ${problem}`),
})

const snake = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

const spellings = (name: string): ReadonlyArray<string> =>
  [
    snake(name),
    snake(name).replaceAll("_", "-"),
    snake(name).toUpperCase(),
    name.toLowerCase(),
    `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`,
    name.endsWith("s") ? name.slice(0, -1) : `${name}s`,
  ].filter((spelling) => spelling !== name)

const services = [
  ["memberships", tenure.memberships, membershipNames.methods],
  ["webhooks", tenure.webhooks, webhookNames.methods],
  ["events", tenure.events, eventNames.methods],
] as const

const fieldsOf = services.flatMap(([noun, service, methods]) =>
  Object.entries<ReadonlyArray<Fields | null>>(methods).flatMap(([method, args]) =>
    args.flatMap((fields, position) =>
      Object.keys(fields ?? {}).map((name) => ({ noun, service, method, args, position, name })),
    ),
  ),
)

describe("another spelling of a field", () => {
  it.each(fieldsOf)(
    "is refused by $noun: $method, argument $position, $name",
    async ({ args, method, name, position, service }) => {
      for (const spelling of spellings(name)) {
        const given = args.map((fields, index) =>
          fields === null ? "p1" : index === position ? { [spelling]: "x" } : {},
        )
        const error = await call(service, method, ...given)
        expect([spelling, error]).toMatchObject([spelling, refused(spelling, "must be written ")])
      }
    },
  )

  it.each([
    ["grant", { ...member, endDate, idempotncyKey: "k" }, 'must be written "idempotencyKey"'],
    ["grant", { ...member, endDat: endDate }, 'must be written "endDate"'],
    ["extend", { ...member, endDate, dryrun: true }, 'must be written "dryRun"'],
    ["extend", { ...member, endDate, dyrRun: true }, 'must be written "dryRun"'],
    ["extend", { ...member, endDate, mdoe: "set" }, 'must be written "mode"'],
    ["extend", { ...member, endDate, neverShorten: true }, 'must be written mode: "neverShorten"'],
    ["extend", { ...member, endDate, never_shorten: true }, 'must be written mode: "neverShorten"'],
    ["extend", { ...member, extend: endDate }, 'must be written "endDate"'],
    ["extend", { ...member, extendBy: by }, 'must be written "by"'],
    ["extendAll", { projectId: "p1", extend_by: "P3D" }, 'must be written "by"'],
    ["listEnding", { projectId: "p1", ending_before: endDate }, 'must be written "before"'],
    ["end", { ...member, erase: true }, "must be written as the method erase"],
    ["history", { ...member, since: 0 }, "must be written as an argument of searchHistory"],
    ["history", { ...member, announcements: false }, '"announcements" is for searchHistory'],
    ["searchHistory", { projectId: "p1", request_id: "r" }, 'must be written "requestId"'],
  ])("is refused by %s: %j", async (method, given, problem) => {
    expect(await call(tenure.memberships, method, given)).toMatchObject(refused("", problem))
  })

  it.each([
    [{ userId: "1", end_date: endDate }, 'memberships[0].end_date must be written "endDate"'],
    [{ userId: "1", endDate, metaData: {} }, 'memberships[0].metaData must be written "metadata"'],
    [{ userId: "1", endDate, mode: "neverShorten" }, "memberships[0].mode must be left out"],
  ])("is refused in a row of an import: %j", async (row, problem) => {
    const rows = { projectId: "p1", memberships: [row] }
    expect(await call(tenure.memberships, "import", rows)).toMatchObject({
      message: expect.stringContaining(problem),
    })
  })

  it("is refused in the extension of a count", async () => {
    const counting = { projectId: "p1", extension: { extend_by: "P3D" } }
    expect(await call(tenure.memberships, "countEnds", counting)).toMatchObject(
      refused("extension.extend_by", 'must be written "by"'),
    )
  })

  it.each([
    ["read", { projectId: "p1", wait_millis: 5 }, 'must be written "waitMillis"'],
    ["read", { projectId: "p1", wait: 5 }, 'must be written "waitMillis", in milliseconds'],
    ["read", { projectId: "p1", cursor: "start" }, 'must be written "after"'],
    ["consume", { projectId: "p1", type: ["a"] }, 'must be written "types"'],
    ["consume", { projectId: "p1", after: "now" }, 'must be left out: "after" is for read, '],
  ])("is refused by events.%s: %j", async (method, given, problem) => {
    expect(await call(tenure.events, method, given)).toMatchObject(refused("", problem))
  })

  it("is refused by events.stream", async () => {
    const query = { projectId: "p1", Signal: AbortSignal.abort() }
    await expect(tenure.events.stream(query)[Symbol.asyncIterator]().next()).rejects.toMatchObject(
      refused("Signal", 'must be written "signal"'),
    )
  })

  it.each([
    ["issue", [{ projects: ["p1"], expires_at: endDate }], 'must be written "expiresAt"'],
    ["issue", [{ project: ["p1"] }], 'must be written "projects"'],
    ["issue", [{ projects: "all", within: "all" }], 'must be left out: "within" is for revoke'],
    ["revoke", ["k", {}, { idempotency_key: "k" }], 'must be written "idempotencyKey"'],
    ["revoke", ["k", { within: [] }], "must be in the third argument"],
    ["list", [{ limits: 5 }], 'must be written "limit"'],
  ])("is refused by apiKeys.%s: %j", async (method, given, problem) => {
    expect(await call(tenure.apiKeys, method, ...given)).toMatchObject(refused("", problem))
  })

  it("is refused in an identity, which would be allowed more", () => {
    const identity = { keyId: "a", projects: ["p1"], read_only: true }
    expect(() => toPrincipal(identity)).toThrow(
      new TypeError('in an identity, read_only must be written "readOnly"'),
    )
  })
})

describe("a field of other methods", () => {
  it.each([
    ["grant", { ...member, endDate, mode: "neverShorten" }, '"mode" is for extend, extendAll'],
    [
      "grant",
      { ...member, endDate, dry_run: true },
      '"dryRun" is for updateProject, import, extend, ',
    ],
    ["grant", { ...member, endDate, expectedEndDate: endDate }, '"expectedEndDate" is for extend'],
    ["grant", { ...member, by }, '"by" is for extend, extendAll'],
    ["extend", { ...member, endDate, metadata: { plan: "a" } }, '"metadata" is for grant, update'],
    ["extendAll", { ...member, endDate }, '"userId" is for '],
    ["extendAll", { projectId: "p1", by: "P3D", state: "active" }, '"state" is for list'],
    ["extendAll", { projectId: "p1", by: "P3D", expectedEndDate: endDate }, "is for extend"],
    ["end", { ...member, dryRun: true }, '"dryRun" is for '],
    ["end", { ...member, endDate }, '"endDate" is for grant, extend, extendAll'],
    ["update", { ...member, metadata: {}, endDate }, '"endDate" is for '],
    ["list", { projectId: "p1", before: endDate }, '"before" is for listEnding'],
  ])("is refused by %s: %j", async (method, given, problem) => {
    const error = await call(tenure.memberships, method, given)
    expect(error).toMatchObject(refused("", "must be left out: "))
    expect(error).toMatchObject(refused("", problem))
    expect(await tenure.memberships.find(member)).toMatchObject(granted)
  })

  it.each([
    ["extend", [{ ...member, endDate }, { idempotencyKey: "k" }], "must be in the first argument"],
    ["extend", [{ ...member, endDate }, { dry_run: true }], "must be in the first argument"],
    ["extend", [{ ...member, endDate, keyId: "k" }], "must be in the second argument"],
    ["extend", [{ ...member, endDate }, { key_id: "k" }], 'must be written "keyId"'],
    ["createProject", ["p1", { idempotencyKey: "k" }], "must be in the third argument"],
  ])("is refused by %s in the wrong argument: %j", async (method, given, problem) => {
    expect(await call(tenure.memberships, method, ...given)).toMatchObject(refused("", problem))
  })

  it.each([
    ["create", { projectId: "p1", url: "https://b.example/", disabled: true }],
    ["delete", { ...hook, dryRun: true }],
    ["ping", { ...hook, since: 0 }],
    ["rotateSecret", { ...hook, url: "https://b.example/" }],
  ])("is refused by webhooks.%s: %j", async (method, given) => {
    expect(await call(tenure.webhooks, method, given)).toMatchObject(
      refused("", "must be left out"),
    )
  })

  it("is refused beside what it does not go with", async () => {
    expect(
      await call(tenure.memberships, "extend", { ...member, endDate, from: "end" }),
    ).toMatchObject(refused("from", "must be left out: there is an end date"))
    const lengthening = { projectId: "p1", by: "P3D", mode: "set", idempotencyKey: "k" }
    expect(await call(tenure.memberships, "extendAll", lengthening)).toMatchObject(
      refused("mode", "must be left out: there is a duration"),
    )
  })
})

describe("another field", () => {
  // Additional fields as in a host's database rows and ORM objects.
  const wide = {
    id: 5,
    name: "Ada",
    email: "ada@example.com",
    plan: "gold",
    season: 3,
    code: "A",
    user: { id: 7 },
    project: { id: "p1" },
    createdAt: new Date(),
    model: "x",
    note: "paid",
    ["x".repeat(5000)]: true,
  }

  it("is ignored", async () => {
    const extended = await tenure.memberships.extend({ ...wide, ...member, endDate })
    expect(extended).toMatchObject({ ...member, endDate: granted.endDate })
    await tenure.memberships.import({
      projectId: "p1",
      memberships: [{ ...wide, ...member, endDate }],
    })
    expect(await tenure.memberships.isActive({ ...wide, ...member })).toBe(true)
    expect(await tenure.webhooks.find({ ...wide, ...hook })).toMatchObject({ id: webhook.id })
  })

  it("is ignored if it has no value", async () => {
    const untyped = { ...member, endDate, dry_run: undefined, metadata: undefined }
    expect(await call(tenure.memberships, "extend", untyped)).toMatchObject(member)
  })

  it("is ignored in what was returned", async () => {
    const { memberships, webhooks } = tenure
    // A date and a last day are two dates.
    const { through: _, ...found } = await memberships.find(member)
    expect(await memberships.grant(found)).toMatchObject(member)
    expect(await memberships.extend({ ...found, endDate })).toMatchObject(member)
    expect(await memberships.isActive(granted)).toBe(true)
    expect(await memberships.history(found)).not.toEqual([])
    const all = await memberships.list({ projectId: "p1" })
    expect(await memberships.import({ projectId: "p1", memberships: all })).toEqual({ total: 1 })
    expect(await memberships.move({ ...found, to: "1002" })).toMatchObject({ userId: "1002" })
    await memberships.move({ ...member, userId: "1002", to: member.userId })
    const project = { ...(await memberships.findProject("p1")), projectId: "p1" }
    expect(await memberships.history(project)).not.toEqual([])
    await webhooks.enable({ ...webhook, webhookId: webhook.id })
    const [delivery] = await webhooks.deliveries(hook)
    if (delivery === undefined) throw new Error("there is no delivery")
    await webhooks.replay({ ...hook, ...delivery })
    const event = await tenure.events.find({ ...hook, ...delivery })
    expect(await tenure.events.find({ ...event, eventId: event.id })).toEqual(event)
  })

  it.each([
    { user_id: "1001", project_id: "p1", end_date: endDate },
    { user_id: 1001, dry_run: undefined },
  ])("is ignored if it says the same as the right one: %j", async (row) => {
    expect(await call(tenure.memberships, "grant", { ...row, ...member, endDate })).toMatchObject(
      member,
    )
  })

  it("is refused if it says something else", async () => {
    const given = { ...member, endDate, dryRun: false, dry_run: true }
    expect(await call(tenure.memberships, "extend", given)).toMatchObject(
      refused("dry_run", 'must be written "dryRun"'),
    )
    const counted = { projectId: "p1", endDate, memberships: [member] }
    expect(await call(tenure.memberships, "extendAll", counted)).toMatchObject(
      refused("memberships", "must be left out"),
    )
  })

  it("is ignored if it comes from a prototype", async () => {
    const inherited = Object.assign(Object.create({ dry_run: true }), { ...member, endDate })
    expect(await call(tenure.memberships, "extend", inherited)).toMatchObject(member)
  })
})

it("an object that throws rejects the promise", async () => {
  const ownKeys = (): never => {
    throw new Error("from the host")
  }
  const given = new Proxy({ ...member, endDate }, { ownKeys })
  await expect(tenure.memberships.extend(given)).rejects.toThrow("from the host")
})
