import { describe, expect, it } from "vitest"
import { createClient } from "../src/create-client.ts"
import { answering, failure, serving, stores, success } from "./support.ts"

/** The items of a list, to the last or to the first `most`. */
const collect = async <Item>(list: AsyncIterable<Item>, most = Infinity) => {
  const items: Array<Item> = []
  for await (const item of list) {
    items.push(item)
    if (items.length === most) break
  }
  return items
}

/** A server of pages of two numbers, from 1 to `last`. */
const paging = (
  last: number,
  test: (url: string, paths: () => ReadonlyArray<string>) => Promise<void>,
) =>
  answering(
    (response, request) => {
      const after = Number(new URL(`http://a${request.url}`).searchParams.get("after"))
      const data = [after + 1, after + 2].filter((number) => number <= last)
      const next = after + 2 < last ? String(after + 2) : null
      response.end(success(data, { total: data.length, next }))
    },
    ({ received, url }) => test(url, () => received.map((request) => request.url ?? "")),
  )

describe("a list", () => {
  it.each(Object.entries(stores))("has the items of all pages, on %s", async (_, store) => {
    await serving({ stores: store() }, async ({ client, tenure }) => {
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
    })
  })

  it("requests a page when its first item is needed", () =>
    paging(5, async (url, paths) => {
      const { apiKeys } = createClient({ baseUrl: url, token: "t" })
      expect(await collect(apiKeys.list(), 2)).toEqual([1, 2])
      expect(paths()).toEqual(["/v2/api-keys"])
      expect(await collect(apiKeys.list(), 3)).toEqual([1, 2, 3])
      expect(paths().slice(1)).toEqual(["/v2/api-keys", "/v2/api-keys?after=2"])
    }))

  it("can be iterated over again, and has no items if there are none", () =>
    paging(5, async (url) => {
      const { apiKeys } = createClient({ baseUrl: url, token: "t" })
      const list = apiKeys.list()
      expect(await collect(list)).toEqual([1, 2, 3, 4, 5])
      expect(await collect(list)).toEqual([1, 2, 3, 4, 5])
      expect(await collect(apiKeys.list({ after: "5" }))).toEqual([])
    }))

  it("fails where a page fails, after the items before it", () =>
    answering(
      (response, _, count) =>
        void (count === 1
          ? response.end(success([1, 2], { total: 2, next: "2" }))
          : response
              .writeHead(403)
              .end(failure(403, { error_code: "FORBIDDEN", message: "No longer." }))),
      async ({ url }) => {
        const { apiKeys } = createClient({ baseUrl: url, token: "t" })
        const seen: Array<unknown> = []
        const reading = async () => {
          for await (const key of apiKeys.list()) seen.push(key)
        }
        await expect(reading()).rejects.toMatchObject({ code: "FORBIDDEN" })
        expect(seen).toEqual([1, 2])
      },
    ))
})

describe("a replay of many events", () => {
  it("goes on to the end, with a key for each call", () =>
    answering(
      (response, { headers }) => {
        const next = headers["idempotency-key"] === "outage-2" ? null : "a cursor"
        response.end(success({ replayed: 3, next }))
      },
      async ({ received, url }) => {
        const { webhooks } = createClient({ baseUrl: url, token: "t" })
        const events = { project_id: "p1", webhook_id: "w", since: 0 }
        expect(await webhooks.replayMany(events, { idempotencyKey: "outage" })).toBe(9)
        const keys = received.map(({ headers }) => headers["idempotency-key"])
        expect(keys).toEqual(["outage", "outage-1", "outage-2"])
      },
    ))
})
