/** Pages of lists. */

import type { Success } from "./Envelope.ts"

/**
 * Makes a page of a list that was read with one item more than the page may have, which tells whether
 * there is a next page.
 *
 * @param cursorOf - returns the cursor of the page after an item
 * @param dataOf - returns what the response has of an item
 */
export const of = <A>(
  items: ReadonlyArray<A>,
  limit: number,
  cursorOf: (item: A) => string,
  dataOf: (item: A) => object,
): Required<Pick<Success, "data" | "next" | "total">> => {
  const page = items.slice(0, limit)
  const last = items.length > limit ? page.at(-1) : undefined
  return {
    total: page.length,
    next: last === undefined ? null : cursorOf(last),
    data: page.map(dataOf),
  }
}
