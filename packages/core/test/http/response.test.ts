import { expect, it } from "vitest"
import { pageReply } from "../../src/http/response.ts"

it.each([
  [0, { total: 0, next: null, data: [] }],
  [1, { total: 1, next: null, data: [{ item: 0 }] }],
  [2, { total: 2, next: null, data: [{ item: 0 }, { item: 1 }] }],
  [3, { total: 2, next: "after 1", data: [{ item: 0 }, { item: 1 }] }],
  [5, { total: 2, next: "after 1", data: [{ item: 0 }, { item: 1 }] }],
])("a page of two from %s items has a next page only if there are more", (count, page) => {
  const items = Array.from({ length: count }, (_, index) => index)
  const after = (item: number) => `after ${item}`
  expect(pageReply(items, 2, after, (item) => ({ item }))).toEqual(page)
})
