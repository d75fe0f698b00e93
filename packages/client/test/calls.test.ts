import { describe, expect, it } from "vitest"
import { isTenureError } from "../src/response.ts"
import { answering, errorOf, failure, losing, recordedSleep, serving, success } from "./support.ts"

const extend = "2099-01-01T00:00:00.000Z"
const project = { project_id: "p1" }
const ended = "2001-09-09T01:46:40.000Z"

/** Returns a list's items: all, or the first `most`. */
const collect = async <Item>(list: AsyncIterable<Item>, most = Infinity) => {
  const items: Array<Item> = []
  for await (const item of list) {
    items.push(item)
    if (items.length === most) break
  }
  return items
}

it("memberships are extended, and read one by one and as a list", () =>
  serving(async ({ client }) => {
    const { memberships } = client()
    const member = { ...project, user_id: "1001" }
    const metadata = { plan: "gold" }
    expect((await memberships.extend({ ...member, extend })).data).toEqual({ new_end_date: extend })
    await memberships.update({ ...member, metadata })
    const instant = {
      through: null,
      kept_day: null,
      grace_until: null,
      paused_at: null,
      resumes_at: null,
    }
    const active = { user_id: "1001", end_date: extend, ...instant, state: "active", metadata }
    const expired = { end_date: ended, ...instant, state: "expired", metadata: {} }
    expect((await memberships.get(member)).data).toEqual(active)
    expect(await collect(memberships.list({ ...project, limit: 1 }))).toEqual([
      active,
      { user_id: "1002", ...expired },
      { user_id: "1003", ...expired },
    ])
    expect((await memberships.extendAll({ ...project, extend })).total).toBe(3)
  }))

it("a webhook is created once although responses were lost, listed and deleted", () =>
  serving(async ({ client }) => {
    const { fetch, keys } = losing(2)
    const { webhooks } = client({ fetch, sleep: recordedSleep().sleep })
    const { data } = await webhooks.create({ ...project, url: "https://receiver.example/" })
    expect(data.secret).toMatch(/^whsec_/)
    expect(keys).toHaveLength(3)
    const { id, secret } = data
    expect(await webhooks.list(project)).toMatchObject({ total: 1, data: [{ id, secret }] })
    expect((await webhooks.delete({ ...project, webhook_id: id })).data).toBe(null)
    expect((await webhooks.list(project)).total).toBe(0)
  }))

it("memberships are imported line by line, once although the response was lost", () =>
  serving(async ({ client, tenure }) => {
    const { fetch, keys } = losing(1)
    const { memberships } = client({ fetch, sleep: recordedSleep().sleep })
    function* lines() {
      for (const user_id of ["1003", "2001"]) yield { user_id, end_date: extend }
    }
    expect((await memberships.import({ ...project, lines: lines() })).total).toBe(2)
    expect(keys).toHaveLength(2)
    const history = await tenure.memberships.history({ projectId: "p1" })
    expect(history.filter(({ action }) => action === "imported")).toHaveLength(3 + 2)
    const bad = ["1", "a b"].map((user_id) => ({ user_id, end_date: extend }))
    const error = await errorOf(memberships.import({ ...project, lines: bad }))
    expect(isTenureError(error, "VALIDATION_ERROR") && error.problems).toMatchObject([{ line: 2 }])
  }))

it("an import is only tried in a dry run, which tells the webhooks", () =>
  serving(async ({ client, tenure }) => {
    const before = await tenure.memberships.list({ projectId: "p1" })
    const lines = [{ user_id: "2001", end_date: extend }]
    const dry = { dry_run: "true", events: "true" } as const
    const { data, total } = await client().memberships.import({ ...project, ...dry, lines })
    expect(total).toBe(1)
    expect(data).toEqual({
      would_grant: 1,
      would_shorten: 0,
      would_stay: 0,
      announcements: { expiring: 0, overdue: 0, expired: 0, next_24_hours: 0 },
      events: { total: 0, by_type: {}, first: [] },
    })
    expect(await tenure.memberships.list({ projectId: "p1" })).toEqual(before)
  }))

it("a conflict tells what the end date is", () =>
  serving(async ({ client }) => {
    const expected_end_date = "2030-01-01T00:00:00.000Z"
    const member = { ...project, user_id: "1001", extend, expected_end_date }
    const error = await errorOf(client().memberships.extend(member))
    const problems = isTenureError(error, "END_DATE_CONFLICT") ? error.problems : []
    expect(problems.map((problem) => problem.current_end_date)).toEqual([ended])
  }))

it.each(["a/b", "ü", "x".repeat(300)])("a project that nobody has is not found: %s", (project_id) =>
  serving(async ({ client }) => {
    const error = await errorOf(client().webhooks.list({ project_id }))
    expect(isTenureError(error, "PROJECT_NOT_FOUND") && error.requestId).toMatch(/^[0-9a-f-]+$/)
  }),
)

/** Starts a server that lists the numbers 1 to 5 in pages with two each, and fails after `pages` requests. */
const paging = (
  test: (
    list: (after?: string) => AsyncIterable<unknown>,
    paths: () => ReadonlyArray<string>,
  ) => Promise<void>,
  pages = Infinity,
) =>
  answering(
    (response, request, count) => {
      const error = { error_code: "FORBIDDEN", message: "No longer." }
      if (count > pages) return void response.writeHead(403).end(failure(403, error))
      const after = Number(new URL(`http://a${request.url}`).searchParams.get("after"))
      const data = [after + 1, after + 2].filter((number) => number <= 5)
      const next = after + 2 < 5 ? String(after + 2) : null
      response.end(success(data, { total: data.length, next }))
    },
    ({ client, received }) =>
      test(
        (after) => client().apiKeys.list({ after }),
        () => received.map((request) => request.url ?? ""),
      ),
  )

describe("a list", () => {
  it("has the items of all pages", () =>
    serving(async ({ client, tenure }) => {
      const names = ["a", "b", "c", "d"]
      for (const name of names) await tenure.apiKeys.issue({ projects: ["p1"], name })
      const { apiKeys } = client()
      for (const limit of [1, 2, 3, 100, undefined]) {
        const keys = await collect(apiKeys.list({ limit }))
        expect(keys.map(({ name }) => name)).toEqual([null, ...names])
      }
      const first = await apiKeys.list({ limit: 2 })
      expect(first).toMatchObject({ total: 2, next: expect.any(String) })
      const second = await apiKeys.list({ limit: 2, after: String(first.next) })
      expect(second.data.map(({ name }) => name)).toEqual(["b", "c"])
    }))

  it("requests a page when its first item is needed", () =>
    paging(async (list, paths) => {
      expect(await collect(list(), 2)).toEqual([1, 2])
      expect(paths()).toEqual(["/v2/api-keys"])
      expect(await collect(list(), 3)).toEqual([1, 2, 3])
      expect(paths().slice(1)).toEqual(["/v2/api-keys", "/v2/api-keys?after=2"])
    }))

  it("can be iterated over again, and has no items if there are none", () =>
    paging(async (list) => {
      const all = list()
      for (const _ of ["first", "again"]) expect(await collect(all)).toEqual([1, 2, 3, 4, 5])
      expect(await collect(list("5"))).toEqual([])
    }))

  it("fails where a page fails, after the items before it", () =>
    paging(async (list) => {
      const seen: Array<unknown> = []
      const reading = async () => {
        for await (const key of list()) seen.push(key)
      }
      await expect(reading()).rejects.toMatchObject({ code: "FORBIDDEN" })
      expect(seen).toEqual([1, 2])
    }, 1))
})

it("a replay of many events goes on to the end, with a key for each call", () =>
  answering(
    (response, { headers }) => {
      const next = headers["idempotency-key"] === "outage-2" ? null : "a cursor"
      response.end(success({ replayed: 3, next }))
    },
    async ({ client, received }) => {
      const events = { ...project, webhook_id: "w", since: 0 }
      const idempotencyKey = "outage"
      expect(await client().webhooks.replayMany(events, { idempotencyKey })).toBe(9)
      const keys = received.map(({ headers }) => headers["idempotency-key"])
      expect(keys).toEqual(["outage", "outage-1", "outage-2"])
    },
  ))
