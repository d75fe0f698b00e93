import { expect, it } from "vitest"
import { pageReply } from "../../src/http/response.ts"

const pageOf = (count: number, limit: number) =>
  pageReply(
    Array.from({ length: count }, (_, index) => index),
    limit,
    (item) => `after ${item}`,
    (item) => ({ item }),
  )

it.each([
  [0, { total: 0, next: null, data: [] }],
  [1, { total: 1, next: null, data: [{ item: 0 }] }],
  [2, { total: 2, next: null, data: [{ item: 0 }, { item: 1 }] }],
  [3, { total: 2, next: "after 1", data: [{ item: 0 }, { item: 1 }] }],
])("a page of two from %s items has a next page only if there is one more", (count, page) => {
  expect(pageOf(count, 2)).toEqual(page)
})

it("the cursor is that of the last item of the page", () => {
  expect(pageOf(5, 3)).toMatchObject({ total: 3, next: "after 2" })
})
